#include "kernels/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "kernels/backward_registry.h"
#include "kernels/builtin.h"
#include "kernels/kernel_ref.h"

namespace candor::kernels {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kDigest = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

KernelRegistry make(const char* operations, const char* digests = "{}") {
  return {parse_json(std::string(R"({"operations":)") + operations + "}", "registry"), parse_json(digests, "digests")};
}

std::string error_of(const char* operations, const char* digests = "{}") {
  try {
    (void)make(operations, digests);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(KernelRegistry, KeepsOrderAndFillsDefaults) {
  const auto registry = make(R"({"norm":{"baseBindings":[{"index":0,"name":"u"}],"baseUniforms":{"size":16},"variants":{
      "z":{"wgsl":"norm.wgsl"},
      "a":{"file":"cpu/norm.cpp","entryPoint":"rms","workgroup":[64,1,1],"requires":["subgroups"],"outputDtype":"F32",
           "sharedMemory":1024,"own":{"x":1},"variantMetadata":{"tile":4}}}}})");
  const KernelOperation& norm = *registry.find_operation("norm");
  EXPECT_EQ(norm.variants[0].name, "z");
  EXPECT_EQ(norm.variants[0].entry, "main");
  EXPECT_EQ(norm.variants[0].uniforms["size"], 16);
  const KernelVariant& a = *registry.find("cpu/norm.cpp", "rms");
  EXPECT_EQ(a.operation, "norm");
  EXPECT_THAT(a.workgroup, ElementsAre(64u, 1u, 1u));
  EXPECT_THAT(a.required_features, ElementsAre("subgroups"));
  EXPECT_EQ(a.shared_memory, 1024u);
  EXPECT_EQ(a.raw["own"]["x"], 1) << "fields of one reader stay at hand";
  EXPECT_THAT(*registry.output_dtypes("cpu/norm.cpp", "rms"), ElementsAre("f32"));
  EXPECT_TRUE(registry.output_dtypes("norm.wgsl", "main")->empty());
  EXPECT_EQ(registry.output_dtypes("norm.wgsl", "other"), nullptr);
  EXPECT_EQ(&registry.get("norm", "a"), &a);
}

TEST(KernelRegistry, CollectsTheOutputDtypesOfOneKernel) {
  const auto registry =
      make(R"({"a":{"variants":{"x":{"file":"k","outputDtype":"f16"},"y":{"file":"k","outputDtype":"f32"}}},
                                 "b":{"variants":{"z":{"file":"k","outputDtype":"f16"}}}})");
  EXPECT_THAT(*registry.output_dtypes("k", "main"), ElementsAre("f16", "f32"));
  EXPECT_EQ(registry.find("k", "main")->name, "x") << "the first variant stands for the kernel";
}

TEST(KernelRegistry, PutsBindingOverridesOverTheBase) {
  const auto registry = make(R"({"m":{"baseBindings":[{"index":0,"name":"u"},{"index":2,"name":"B"}],"variants":{
      "v":{"file":"m","bindingsOverride":[{"index":1,"name":"A"},{"index":2,"name":"W"}]}}}})");
  const Json& bindings = registry.get("m", "v").bindings;
  ASSERT_EQ(bindings.size(), 3u);
  EXPECT_EQ(bindings[0]["name"], "u");
  EXPECT_EQ(bindings[1]["name"], "A");
  EXPECT_EQ(bindings[2]["name"], "W");
}

TEST(KernelRegistry, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(error_of("[]"), HasSubstr("the document.operations must be an object"));
  EXPECT_THAT(error_of(R"({"m":{}})"), HasSubstr("operations.m.variants must be an object"));
  EXPECT_THAT(error_of(R"({"m":{"variants":{"v":7}}})"), HasSubstr("operations.m.variants.v must be an object"));
  EXPECT_THAT(error_of(R"({"m":{"variants":{"v":{}}}})"), HasSubstr("operations.m.variants.v.file"));
  EXPECT_THAT(error_of(R"({"m":{"variants":{"v":{"file":3}}}})"), HasSubstr("file must be a string"));
  EXPECT_THAT(error_of(R"({"m":{"variants":{"v":{"file":"a","workgroup":[1,2]}}}})"), HasSubstr("three integers"));
  EXPECT_THAT(error_of(R"({"m":{"variants":{"v":{"file":"a","workgroup":[1,2,1e12]}}}})"), HasSubstr("32-bit"));
  EXPECT_THAT(error_of(R"({"m":{"variants":{"v":{"file":"a","requires":[1]}}}})"), HasSubstr("an array of strings"));
  EXPECT_THAT(error_of(R"({"m":{"variants":{"v":{"file":"a","bindingsOverride":[{}]}}}})"), HasSubstr("`index`"));
  EXPECT_THAT(error_of(R"({"m":{"variants":{"v":{"file":"a","sharedMemory":-1}}}})"), HasSubstr("sharedMemory"));
  EXPECT_THAT(error_of("{}", R"({"a#main":"abc"})"), HasSubstr("\"a#main\" must be 64 lower-case hexadecimal digits"));
  EXPECT_THAT(error_of("{}", "[]"), HasSubstr("kernel digests"));
}

TEST(KernelRegistry, SaysWhichKernelIsUnknown) {
  const auto registry = make(R"({"m":{"variants":{"v":{"file":"a"}}}})");
  for (const char* operation : {"m", "n"}) {
    try {
      (void)registry.get(operation, "w");
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), std::string("Unknown kernel: ") + operation + "/w");
    }
  }
}

TEST(KernelRegistry, LooksDigestsUpByFileAndEntry) {
  const auto registry = make("{}", (std::string(R"({"k#main":")") + kDigest + "\"}").c_str());
  EXPECT_EQ(registry.digest("k", "main"), kDigest);
  EXPECT_EQ(registry.digest("k", "other"), std::nullopt);
}

TEST(KernelRef, PinsTheKernelsContent) {
  const auto registry = make("{}", (std::string(R"({"cpu/x_y.cpp#main":")") + kDigest + "\"}").c_str());
  const KernelRef ref = build_kernel_ref(registry, "cpu/x_y.cpp", "main");
  EXPECT_EQ(ref.id, "cpu.x.y.cpp.main");
  EXPECT_EQ(ref.version, "1.0.0");
  EXPECT_EQ(ref.digest, std::string("sha256:") + kDigest);
  const Json json = ref.to_json();
  const Json kernel = "cpu/x_y.cpp";
  EXPECT_TRUE(is_bound(registry, &json, &kernel, nullptr));
}

TEST(BuiltinRegistry, HasADigestForEveryKernel) {
  for (const KernelOperation& operation : builtin_registry().operations())
    for (const KernelVariant& variant : operation.variants)
      EXPECT_TRUE(builtin_registry().digest(variant.file, variant.entry)) << variant.file << "#" << variant.entry;
}

TEST(BuiltinRegistry, AgreesWithTheSources) {
  for (const DigestDifference& difference : verify(std::filesystem::path(CANDOR_SOURCE_DIR) / "src"))
    ADD_FAILURE() << difference.file << "#" << difference.entry << ": " << difference.compiled << " compiled, "
                  << difference.source << " in the sources";
}

TEST(BackwardRegistry, TheBuiltInOneIsValid) {
  const Json& registry = validate_backward_registry(builtin_backward_registry());
  EXPECT_EQ(registry["ops"].size(), 19u);
  EXPECT_EQ(registry["ops"]["matmul"]["requires_transpose"], true);
}

TEST(BackwardRegistry, NamesWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"null", "Backward registry must be an object"},
      {"{}", "Backward registry ops must be an object"},
      {R"({"ops":{"a":null}})", "Backward registry op \"a\" must be an object"},
      {R"({"ops":{"a":{"grads":[]}}})", "Backward registry op \"a\" is missing \"backward\""},
      {R"({"ops":{"a":{"backward":"b"}}})", "Backward registry op \"a\" is missing \"grads\""},
      {R"({"ops":{"a":{"backward":"","grads":[]}}})", "Backward registry op \"a\".backward must be a non-empty string"},
      {R"({"ops":{"a":{"backward":"b","grads":[1]}}})", "Backward registry op \"a\".grads must be an array of strings"},
      {R"({"ops":{"a":{"backward":"b","grads":[],"requires_transpose":1}}})",
       "Backward registry op \"a\".requires_transpose must be a boolean"},
      {R"({"ops":{"a":{"backward":"b","grads":[],"notes":[]}}})", "Backward registry op \"a\".notes must be a string"},
      {R"({"ops":[{}]})", "Backward registry op \"0\" is missing \"backward\""},
  };
  for (const auto& [json, message] : cases) {
    try {
      (void)validate_backward_registry(parse_json(json, "test"));
      ADD_FAILURE() << json;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), message);
    }
  }
  EXPECT_NO_THROW((void)validate_backward_registry(
      parse_json(R"({"ops":{"a":{"backward":"b","grads":["x"],"requires_transpose":null,"notes":null}}})", "test")));
}

}  // namespace
}  // namespace candor::kernels
