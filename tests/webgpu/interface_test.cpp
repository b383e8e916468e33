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
  for (const std::string& weight : operation.weights)
    names.insert({weight + "Rows", weight + "Cols", weight + "Encoding", weight + "Stride", weight + "Count"});
  return names;
}

std::set<std::string> binding_names(const kernels::Operation& operation) {
  std::set<std::string> names{"batch", "params", "src", "dst", "chosen", "kv"};
  names.insert(operation.inputs.begin(), operation.inputs.end());
  names.insert(operation.weights.begin(), operation.weights.end());
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
    for (const WgslBinding& binding : entry->bindings)
      EXPECT_TRUE(binding_names(use.operation).contains(binding.name)) << binding.name;
    for (const WorkgroupCount& count : entry->dispatch) {
      std::vector<std::string> terms = count.factors;
      terms.push_back(count.divisor);
      for (const std::string& term : terms)
        EXPECT_TRUE(term == "rows" || std::isdigit(static_cast<unsigned char>(term[0])) != 0 || names.contains(term))
            << term;
    }
    const std::string size =
        fmt::format("@compute @workgroup_size({})\nfn {}(", use.variant->workgroup[0], entry->name);
    EXPECT_NE(source->text.find(size), std::string_view::npos) << size;
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
  const kernels::KernelRules path = kernels::builtin_kernel_rules("webgpu");
  for (const Json& rule : path.json()["rules"]) {
    const auto& value = rule["value"];
    const auto* variant =
        kernels::builtin_registry().find(value["kernel"].get<std::string>(), value["entry"].get<std::string>());
    ASSERT_NE(variant, nullptr) << value;
    EXPECT_EQ(variant->raw.value("backend", ""), "webgpu");
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
  const WgslInterface parsed = parse_wgsl(
      "@group(0) @binding(3) var<storage, read_write> dst: array<f32>;\n@group(0) @binding(1) var<uniform> params: "
      "Params;\nstruct Params {\n  eps: f32,\n  width: u32,  // columns\n}\noverride a: u32;\noverride b: u32 = "
      "2u;\n// "
      "entry main(params, dst) dispatch(fold(width * 2 / 64), rows)\n",
      "some.wgsl");
  ASSERT_EQ(parsed.entries.size(), 1u);
  EXPECT_EQ(parsed.entries[0].bindings[1].binding, 3u);
  EXPECT_TRUE(parsed.entries[0].bindings[1].writes);
  EXPECT_TRUE(parsed.entries[0].bindings[0].uniform);
  EXPECT_TRUE(parsed.entries[0].dispatch[0].fold);
  EXPECT_EQ(parsed.entries[0].dispatch[0].divisor, "64");
  EXPECT_EQ(parsed.overrides, std::vector<std::string>{"a"});
  EXPECT_TRUE(parsed.parameters[0].is_float);
  EXPECT_FALSE(parsed.parameters[1].is_float);
}

}  // namespace
}  // namespace candor::webgpu
