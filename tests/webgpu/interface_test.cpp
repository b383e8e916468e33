// What the WGSL sources say of themselves against the registry: entries, workgroup sizes, bindings and parameters. No
// device is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/webgpu/packed_weight.h"
#include "backends/webgpu/sources.h"
#include "backends/webgpu/wgsl_interface.h"
#include "base/error.h"
#include "kernels/kernel_rules.h"
#include "kernels/operations.h"
#include "kernels/registry.h"

namespace candor::webgpu {
namespace {

struct Use {
  kernels::Operation operation;
  const kernels::KernelVariant* variant;
};

/// The registry's variants of this backend, with their operations.
std::vector<Use> uses() {
  std::vector<Use> out;
  for (const auto& operation : kernels::builtin_registry().operations())
    for (const auto& variant : operation.variants)
      if (variant.raw.value("backend", "") == "webgpu")
        out.push_back({kernels::parse_operation(operation.name, operation.raw), &variant});
  return out;
}

std::set<std::string> parameter_names(const kernels::Operation& operation) {
  std::set<std::string> names{"rowsAt", "kvEncoding", "pagePositions", "pageStride"};
  for (const auto& constant : operation.constants) names.insert(constant.name);
  std::vector<std::string> slots = operation.inputs;
  slots.insert(slots.end(), {"src", "dst"});
  for (const std::string& slot : slots) names.insert({slot + "Cols", slot + "Stride"});
  std::vector<std::string> weights = operation.weights;
  if (!weights.empty()) weights.emplace_back("weight");  // the first goes by this name too
  for (const std::string& weight : weights)
    names.insert(
        {weight + "Rows", weight + "Cols", weight + "Encoding", weight + "Stride", weight + "Count", weight + "At"});
  return names;
}

std::set<std::string> binding_names(const kernels::Operation& operation) {
  std::set<std::string> names{"batch", "params", "scratch", "src", "dst", "chosen", "kv"};
  names.insert(operation.inputs.begin(), operation.inputs.end());
  names.insert(operation.weights.begin(), operation.weights.end());
  if (operation.weights.size() > 1) names.insert("weight");  // all of them, where none is called so
  for (const auto& constant : operation.constants)
    if (constant.type == kernels::ConstantType::list) names.insert(constant.name);
  return names;
}

TEST(WgslInterface, EveryEntryIsRegisteredAndEveryVariantHasItsEntry) {
  std::set<std::string> registered, written;
  for (const Use& use : uses()) registered.insert(use.variant->file + "#" + use.variant->entry);
  for (const WgslSource& source : sources())
    for (const WgslEntry& entry : source.interface.entries) written.insert(source.file + "#" + entry.name);
  EXPECT_EQ(registered, written);
  EXPECT_FALSE(registered.empty());
}

TEST(WgslInterface, BindingsParametersAndWorkgroupsAreThoseOfTheOperation) {
  std::map<std::string, std::set<std::string>> known;  // by file
  for (const Use& use : uses()) {
    SCOPED_TRACE(use.variant->file + "#" + use.variant->entry);
    const WgslSource* source = find_source(use.variant->file);
    ASSERT_NE(source, nullptr);
    const WgslEntry* entry = source->interface.find(use.variant->entry);
    ASSERT_NE(entry, nullptr);
    const auto names = parameter_names(use.operation);
    known[source->file].insert(names.begin(), names.end());
    const std::set<std::string> of_batch{"rows", "sequences", "end"};
    const auto expect_known = [&](const WgslCount& count) {
      std::vector<std::string> terms = count.factors;
      terms.insert(terms.end(), {count.divisor, count.addend});
      for (const std::string& term : terms)
        EXPECT_TRUE(of_batch.contains(term) || term == "context" || names.contains(term) ||
                    std::isdigit(static_cast<unsigned char>(term[0])) != 0)
            << term;
    };
    bool binds_scratch = false;
    for (const WgslPass& pass : entry->passes) {
      for (const WgslBinding& binding : pass.bindings) {
        EXPECT_TRUE(binding_names(use.operation).contains(binding.name)) << binding.name;
        binds_scratch = binds_scratch || binding.name == "scratch";
      }
      for (const WgslCount& count : pass.dispatch) expect_known(count);
      EXPECT_LE(pass.workgroup_size, 256u);
      EXPECT_LE(pass.workgroup_bytes, 32768u);
    }
    EXPECT_EQ(binds_scratch, !entry->scratch.empty());
    for (const WgslCount& count : entry->scratch) expect_known(count);
    EXPECT_EQ(entry->passes[0].workgroup_size, use.variant->workgroup[0]);
    for (const auto& [operand, encodings] : use.variant->raw["encodings"].items())
      if (std::find(use.operation.weights.begin(), use.operation.weights.end(), operand) != use.operation.weights.end())
        for (const auto& name : encodings) {
          EXPECT_NO_THROW((void)encoding_number(*parse_encoding(name.get<std::string>()), "weight"));
        }
  }
  for (const WgslSource& source : sources()) {
    for (const WgslParameter& parameter : source.interface.parameters)
      EXPECT_TRUE(known[source.file].contains(parameter.name)) << source.file << " " << parameter.name;
    for (const std::string& name : source.interface.overrides)
      EXPECT_TRUE(known[source.file].contains(name)) << source.file << " " << name;
    EXPECT_LE(source.interface.parameters.size(), 64u);
  }
}

TEST(WgslInterface, TheKernelPathNamesKernelsOfThisBackend) {
  for (const char* id : {"webgpu", "webgpu-fused"}) {
    const kernels::KernelRules path = kernels::builtin_kernel_rules(id);
    for (const Json& rule : path.json()["rules"]) {
      const auto& value = rule["value"];
      const auto* variant =
          kernels::builtin_registry().find(value["kernel"].get<std::string>(), value["entry"].get<std::string>());
      ASSERT_NE(variant, nullptr) << value;
      EXPECT_EQ(variant->raw.value("backend", ""), "webgpu");
    }
  }
}

TEST(WgslInterface, OtherFormsAreRefusedWithTheLine) {
  const auto refusal = [](std::string_view text) -> std::string {
    try {
      (void)parse_wgsl(text, "some.wgsl");
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(refusal("\n@group(1) @binding(0) var<storage, read> src: array<f32>;").find("some.wgsl, line 2"),
            std::string::npos);
  for (const char* text :
       {"@group(0) @binding(x) var<storage, read> src: array<f32>;",
        "@group(0) @binding(0) var<storage, write> src: array<f32>;", "// entry main(src) dispatch(1)",
        "// entry main() dispatch(1)", "override some: f32;", "struct Params {\n  eps: vec4<f32>,\n}"})
    EXPECT_NE(refusal(text), "accepted") << text;
  for (const char* text : {"// then more(src) dispatch(1)", "// entry main(dst) dispatch(1) when end > x"})
    EXPECT_NE(refusal(std::string("@group(0) @binding(3) var<storage, read_write> dst: array<f32>;\n") + text),
              "accepted")
        << text;
}

TEST(WgslInterface, PassesCountsAndWorkgroupMemoryAreRead) {
  const WgslInterface parsed = parse_wgsl(
      R"(@group(0) @binding(3) var<storage, read_write> dst: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;
struct Params {
  eps: f32,
  width: u32,  // columns
}
struct Pair {
  a: vec4<f32>,
  b: f32,
}
override a: u32;
override b: u32 = 2u;
var<workgroup> sums: array<Pair, 8>;  // of threads
var<workgroup> other: array<vec4<u32>, 100>;
fn helper() -> f32 {
  return sums[0].b;  // other
}
// entry main(params, dst) dispatch(fold(width * 2 / 64), rows) scratch(rows, width / 4 + 1, 16) single
// then second(dst) dispatch(rows / 32 + sequences) when end > 256
@compute @workgroup_size(32)
fn main() {
  dst[0] = helper();
}
@compute @workgroup_size(64)
fn second() {
  dst[1] = f32(other[0].x);
}
)",
      "some.wgsl");
  ASSERT_EQ(parsed.entries.size(), 1u);
  const WgslEntry& entry = parsed.entries[0];
  ASSERT_EQ(entry.passes.size(), 2u);
  const WgslPass& first = entry.passes[0];
  const WgslPass& second = entry.passes[1];
  EXPECT_EQ(first.bindings[1].binding, 3u);
  EXPECT_TRUE(first.bindings[1].writes);
  EXPECT_TRUE(first.bindings[0].uniform);
  EXPECT_TRUE(first.dispatch[0].fold);
  EXPECT_EQ(first.dispatch[0].divisor, "64");
  EXPECT_EQ(first.workgroup_size, 32u);
  EXPECT_EQ(first.workgroup_bytes, 160u);
  EXPECT_EQ(first.beyond, 0u);
  EXPECT_EQ(second.function, "second");
  EXPECT_EQ(second.dispatch[0].addend, "sequences");
  EXPECT_EQ(second.workgroup_bytes, 1600u);
  EXPECT_EQ(second.beyond, 256u);
  EXPECT_TRUE(entry.single);
  ASSERT_EQ(entry.scratch.size(), 3u);
  EXPECT_EQ(entry.scratch[1].addend, "1");
  EXPECT_EQ(parsed.overrides, std::vector<std::string>{"a"});
  EXPECT_TRUE(parsed.parameters[0].is_float);
  EXPECT_FALSE(parsed.parameters[1].is_float);
}

}  // namespace
}  // namespace candor::webgpu
