#include "kernels/kernel_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "kernels/active_kernel_path.h"
#include "kernels/kernel_path_registry.h"

namespace candor::kernels {
namespace {

using testing::ElementsAre;

Json parse(const std::string& text) {
  return parse_json(text, "test");
}

template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

KernelPathRegistry load(const std::string& registry) {
  return {parse(registry),
          [](const std::string& file) { return file == "empty.json" ? Json() : parse(R"({"id":")" + file + "\"}"); }};
}

TEST(KernelPathRegistry, ResolvesNamesToTheVeryPath) {
  const auto paths = load(R"({"entries":[{"id":"short","aliasOf":" middle "},{"id":"middle","aliasOf":"long"},
                              {"id":" long ","file":" a.json ","status":"experimental"},{"id":"7","file":"a.json"}]})");
  EXPECT_EQ(paths.find("short"), paths.find("long"));
  EXPECT_EQ(paths.find("7"), paths.find("long")) << "two entries of one file";
  EXPECT_EQ((*paths.find("short"))["id"], "a.json");
  EXPECT_THAT(paths.ids(), ElementsAre("7", "long", "middle", "short"))
      << "targets first, integer-like keys before all";
  EXPECT_EQ(paths.entries()[2].status, "experimental");
  EXPECT_EQ(paths.entries()[0].status, "canonical");
}

TEST(KernelPathRegistry, AFileWinsOverAName) {
  const auto paths = load(R"({"entries":[{"id":"a","file":"a.json","aliasOf":"nowhere"}]})");
  EXPECT_EQ((*paths.find("a"))["id"], "a.json");
}

TEST(KernelPathRegistry, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"7", "Kernel path registry must be a JSON object"},
      {"{}", "Kernel path registry has no entries"},
      {R"({"entries":{}})", "Kernel path registry has no entries"},
      {R"({"entries":[null]})", "Kernel path registry entry must be an object"},
      {R"({"entries":[{"id":" "}]})", "Kernel path registry entry is missing required string id"},
      {R"({"entries":[{"id":"a"}]})", "Kernel path registry entry \"a\" must include file or aliasOf"},
      {R"({"entries":[{"id":"a","file":"x"},{"id":" a ","file":7}]})", "Duplicate kernel path registry id: a"},
      {R"({"entries":[{"id":"a","aliasOf":"b"}]})", "Unknown kernel path in registry: b"},
      {R"({"entries":[{"id":"a","aliasOf":"b"},{"id":"b","aliasOf":"c"},{"id":"c","aliasOf":"b"}]})",
       "Kernel path alias cycle detected: a -> b -> c -> b"},
      {R"({"entries":[{"id":"a","aliasOf":"a"}]})", "Kernel path alias cycle detected: a -> a"},
      {R"({"entries":[{"id":"a","file":"empty.json"}]})",
       "Kernel path registry entry a references missing file: empty.json"},
  };
  for (const auto& [registry, message] : cases) EXPECT_EQ(error_of([&] { (void)load(registry); }), message);
  const auto paths = load(R"({"entries":[{"id":"a","file":"x"},{"id":"b","file":"y"}]})");
  EXPECT_EQ(error_of([&] { (void)paths.get("c"); }), "Unknown kernel path: c. Available: a, b");
}

TEST(KernelPathRegistry, ALongChainOfNamesIsFollowed) {
  std::string registry = R"({"entries":[)";
  for (int i = 0; i < 100'000; ++i)
    registry += R"({"id":"n)" + std::to_string(i) + R"(","aliasOf":"n)" + std::to_string(i + 1) + "\"},";
  registry += R"({"id":"n100000","file":"a.json"}]})";
  EXPECT_EQ((*load(registry).find("n0"))["id"], "a.json");
}

KernelRegistry variants() {
  return {parse(R"({"operations":{"matmul":{"variants":{
      "plain":{"file":"one.wgsl"},
      "tiled_a":{"file":"two.wgsl","wgslOverrides":{"TILE":4}},
      "decode_b":{"file":"two.wgsl","wgslOverrides":{"TILE":8}},
      "prefill_c":{"file":"two.wgsl","wgslOverrides":{"TILE":8,"VEC":true}},
      "many":{"file":"three.wgsl","entryPoint":"x"},
      "more":{"file":"three.wgsl","entryPoint":"y"}}}}})"),
          Json::object()};
}

std::string variant_of(const char* kernel, const char* entry, const char* phase, const char* constants) {
  const Json kernel_json = parse(kernel);
  const Json entry_json = parse(entry);
  const Json constants_json = parse(constants);
  return find_variant(variants(), "matmul", &kernel_json, &entry_json, phase, &constants_json).value_or("none");
}

TEST(FindVariant, TakesTheOnlyOneOfAnEntry) {
  EXPECT_EQ(variant_of("\"one.wgsl\"", "null", "", "null"), "plain");
  EXPECT_EQ(variant_of("\" folder/one.wgsl \"", "\"main\"", "", "null"), "plain") << "folders and blanks do not count";
  EXPECT_EQ(variant_of("\"three.wgsl\"", "\"y\"", "", "null"), "more");
}

TEST(FindVariant, TakesTheOnlyOneOfAFileWhateverTheEntry) {
  EXPECT_EQ(variant_of("\"one.wgsl\"", "\"other\"", "", "null"), "plain");
  EXPECT_EQ(variant_of("\"three.wgsl\"", "\"z\"", "", "null"), "none");
}

TEST(FindVariant, ComparesOverridableConstants) {
  EXPECT_EQ(variant_of("\"two.wgsl\"", "null", "", R"({"TILE":4})"), "tiled_a");
  EXPECT_EQ(variant_of("\"two.wgsl\"", "null", "", R"({"TILE":8,"OTHER":1})"), "decode_b") << "others do not count";
  EXPECT_EQ(variant_of("\"two.wgsl\"", "null", "", R"({"TILE":8,"VEC":true})"), "prefill_c");
  EXPECT_EQ(variant_of("\"two.wgsl\"", "null", "", R"({"TILE":8,"VEC":1})"), "none");
}

TEST(FindVariant, FallsBackToThePhasesPrefix) {
  EXPECT_EQ(variant_of("\"two.wgsl\"", "null", "prefill", R"({"TILE":5})"), "prefill_c");
  EXPECT_EQ(variant_of("\"two.wgsl\"", "null", "decode", "null"), "decode_b");
  EXPECT_EQ(variant_of("\"two.wgsl\"", "null", "both", "null"), "none");
}

TEST(FindVariant, KnowsNoOtherOperation) {
  const Json kernel = "one.wgsl";
  EXPECT_EQ(find_variant(variants(), "attention", &kernel, nullptr, "", nullptr), std::nullopt);
}

const char* kPath = R"({"id":"p","decode":{"steps":[{"op":"gate_proj","kernel":"one.wgsl","constants":{"A":1}},
    {"op":"q_proj","kernel":"three.wgsl","entry":"x"}]},"prefill":{"steps":[{"op":"ffn_gate","kernel":"two.wgsl"}]},
    "postLayer":[{"op":"lm_head","kernel":"one.wgsl"},{"op":"lm_head_prefill","kernel":"three.wgsl","entry":"y"}],
    "layerOverrides":[{"layers":[3],"steps":[{"op":"own","kernel":"one.wgsl"}]}]})";

TEST(KernelPath, FindsTheStepOfARole) {
  const Json path = parse(kPath);
  const Json layer = 0;
  const Json third = 3;
  const KernelRegistry registry = variants();
  EXPECT_EQ(matmul_variant(registry, &path, "ffn_gate", "decode", &layer), "plain") << "by its second name";
  EXPECT_EQ(matmul_variant(registry, &path, "ffn_gate", "prefill", &layer), "prefill_c");
  EXPECT_EQ(matmul_variant(registry, &path, "qkv_proj", "decode", &layer), "many") << "q_proj stands for it";
  EXPECT_EQ(matmul_variant(registry, &path, "lm_head", "decode", &layer), "plain");
  EXPECT_EQ(matmul_variant(registry, &path, "lm_head", "prefill", &layer), "more");
  EXPECT_EQ(matmul_variant(registry, &path, "own", "decode", &third), "plain") << "an override, and any other op";
  EXPECT_EQ(matmul_variant(registry, &path, "q_proj", "decode", &third), std::nullopt);
  EXPECT_EQ((*matmul_constants(&path, "ffn_gate", "decode", &layer))["A"], 1);
  EXPECT_EQ(attention_variant(registry, &path, "decode", &layer), std::nullopt);
}

TEST(KernelPath, WrongTypesAreErrorsThatNameThePlace) {
  const Json layer = 0;
  const Json no_decode = parse("{}");
  const Json bad_override = parse(R"({"layerOverrides":[{"layers":3,"steps":[]}]})");
  const Json bad_steps = parse(R"({"decode":{"steps":{}}})");
  EXPECT_EQ(error_of([&] { (void)layer_steps(&no_decode, &layer, "decode"); }),
            "[ExecutionV0] kernel path: decode must be an object; got undefined");
  EXPECT_EQ(error_of([&] { (void)layer_steps(&bad_override, &layer, "decode"); }),
            "[ExecutionV0] kernel path: layerOverrides[].layers must be an array of layers; got 3");
  EXPECT_EQ(error_of([&] { (void)find_matmul_step(&bad_steps, "q_proj", "decode", &layer); }),
            "[ExecutionV0] kernel path: a layer's steps must be an array of steps; got [object Object]");
  EXPECT_EQ(error_of([&] { (void)validate_kernel_path(nullptr); }),
            "[ExecutionV0] kernel path: the path must be an object; got undefined");
}

TEST(ActiveKernelPath, EachObjectHoldsItsOwn) {
  ActiveKernelPath one;
  ActiveKernelPath other;
  const Json path = parse(kPath);
  const Json policy = parse(R"({"mode":"capability-aware"})");
  one.set(&path, "config", &policy);
  EXPECT_EQ(one.source(), "config");
  EXPECT_EQ(one.policy().mode, "capability-aware");
  EXPECT_EQ(other.source(), "none");
  EXPECT_TRUE(other.path()->is_null());
}

}  // namespace
}  // namespace candor::kernels
