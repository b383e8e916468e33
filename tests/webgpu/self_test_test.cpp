// The kernels' self-test: every kernel has a case, the cases pass here, and what failed or was damaged is tested again.
#include "backends/webgpu/self_test.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "kernels/registry.h"
#include "webgpu/kernel_program.h"

namespace candor::webgpu::testing {
namespace {

TEST(WebGpuSelfTest, EveryKernelHasACaseForEachEncoding) {
  std::set<std::string> tested;
  for (const SelfTestCase& test : self_test_cases()) {
    tested.insert(test.kernel + "#" + test.entry);
    for (const std::string& encoding : test.encodings) tested.insert(test.kernel + "#" + test.entry + " " + encoding);
    EXPECT_FALSE(test.raw.at("answers").empty()) << test.name();
  }
  for (const auto& operation : kernels::builtin_registry().operations())
    for (const auto& variant : operation.variants) {
      if (variant.raw.value("backend", "") != "webgpu") continue;
      const std::string kernel = variant.file + "#" + variant.entry;
      EXPECT_TRUE(tested.contains(kernel)) << kernel;
      for (const auto& [operand, encodings] : variant.raw["encodings"].items()) {
        if (encodings.size() < 2) continue;
        for (const auto& name : encodings) {
          EXPECT_TRUE(tested.contains(kernel + " " + name.get<std::string>())) << kernel << " " << name;
        }
      }
    }
}

TEST(WebGpuSelfTest, TheAnswersAreThoseOfTheKernels) {
  SKIP_WITHOUT_DEVICE();
  // CANDOR_WRITE_ANSWERS=FILE writes the file anew, once the tests of the kernels pass.
  const char* written = std::getenv("CANDOR_WRITE_ANSWERS");
  std::string lines;
  for (const SelfTestCase& test : self_test_cases()) {
    const std::vector<double> got = run_case(test, *device());
    if (written == nullptr) {
      EXPECT_EQ(difference(test, got), "") << test.name();
      std::vector<double> other = got;
      other[other.size() / 2] += 1;
      EXPECT_NE(difference(test, other), "") << test.name();
      continue;
    }
    Json filled = test.raw;
    filled["answers"] = got;
    lines += (lines.empty() ? "[\n" : ",\n") + filled.dump();
  }
  if (written != nullptr) write_file_atomically(written, lines + "\n]\n");
}

/// A cache folder of the test's own.
class CacheFolder {
 public:
  CacheFolder() : path_(std::filesystem::temp_directory_path() / "candor-self-test-cache") {
    std::filesystem::remove_all(path_);
    if (const char* had = std::getenv("XDG_CACHE_HOME")) had_ = had;
    setenv("XDG_CACHE_HOME", path_.c_str(), 1);
  }
  ~CacheFolder() {
    had_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", had_.c_str(), 1);
    std::filesystem::remove_all(path_);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

 private:
  std::filesystem::path path_;
  std::string had_;
};

TEST(WebGpuSelfTest, WhatPassedIsRememberedAndDamageForgets) {
  SKIP_WITHOUT_DEVICE();
  const CacheFolder folder;
  const auto library = std::make_shared<const Library>("");
  const char* name = std::getenv("CANDOR_WEBGPU_ADAPTER");
  const WebGpuOptions options{.library = {}, .adapter = name != nullptr ? name : ""};
  const Adapter adapter = choose_adapter(library, options.adapter);
  const auto find = [](const std::string& entry) -> const SelfTestCase& {
    for (const SelfTestCase& test : self_test_cases())
      if (test.entry == entry) return test;
    throw std::logic_error(entry);
  };
  Program program;
  Instruction step;
  step.kernel = "webgpu/elements.wgsl";
  step.entry = "scaled";
  program.phases[0].instructions.push_back(step);
  EXPECT_FALSE(SelfTestCache(adapter, library->path()).passed(find("scaled")));
  self_test(program, adapter, options);
  EXPECT_TRUE(SelfTestCache(adapter, library->path()).passed(find("scaled")));
  EXPECT_FALSE(SelfTestCache(adapter, library->path()).passed(find("softcap")));
  EXPECT_FALSE(SelfTestCache(adapter, "/nowhere").passed(find("scaled")));  // another library
  for (const char* damage : {"", "{\"passed\": 3}", "[", "{\"passed\": [1, null]}"}) {
    write_file_atomically(SelfTestCache::file(), damage);
    EXPECT_FALSE(SelfTestCache(adapter, library->path()).passed(find("scaled"))) << damage;
    self_test(program, adapter, options);
    EXPECT_TRUE(SelfTestCache(adapter, library->path()).passed(find("scaled"))) << damage;
  }
}

}  // namespace
}  // namespace candor::webgpu::testing
