// The reference's own answers, line by line, key order and number forms included.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/js_value.h"
#include "cli/conformance_session.h"

namespace candor::cli {
namespace {

namespace fs = std::filesystem;

const fs::path kShared = CANDOR_SHARED_DIR;
const fs::path kRegistry = kShared / "reference" / "original-registry";

fs::path golden(const std::string& name, const std::string& kind) {
  return kShared / "goldens" / "execution-v0" / (name + "." + kind + ".jsonl");
}

/// Where the reference raises a TypeError our text is our own; the rest of the answer is the same.
void expect_same(const std::string& expected, const std::string& answer) {
  const Json want = parse_json(expected, "expected");
  if (!js::strict_equal(js::get(&want, "errorName"), "TypeError")) {
    EXPECT_EQ(answer, to_js_json(want));
    return;
  }
  Json got = parse_json(answer, "answer");
  EXPECT_TRUE(got["error"].get<std::string>().starts_with("[ExecutionV0] ")) << answer;
  js::set(got, "error", want["error"]);
  EXPECT_EQ(to_js_json(got), to_js_json(want));
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, EveryAnswerIsTheReferences) {
  if (!fs::exists(kRegistry)) GTEST_SKIP() << "no reference data at " << kShared;
  ConformanceSession session(kRegistry);
  std::ifstream calls(golden(GetParam(), "in"));
  std::ifstream answers(golden(GetParam(), "expected"));
  std::string call;
  std::string expected;
  std::size_t lines = 0;
  while (std::getline(calls, call)) {
    ASSERT_TRUE(std::getline(answers, expected));
    SCOPED_TRACE(call.substr(0, 400));
    expect_same(expected, session.answer(call));
    ++lines;
    if (HasFailure()) break;
  }
  EXPECT_GT(lines, 0u);
}

INSTANTIATE_TEST_SUITE_P(ExecutionV0, Golden,
                         testing::Values("compile", "kernel_path", "edge", "refs", "apply", "generate", "policy"),
                         [](const auto& test) { return std::string(test.param); });

struct ClosePipe {
  void operator()(std::FILE* pipe) const { pclose(pipe); }
};

TEST(ConformanceProgram, AnswersLineByLine) {
  if (!fs::exists(kRegistry)) GTEST_SKIP() << "no reference data at " << kShared;
  const std::string command = std::string(CANDOR_CONFORMANCE) + " --registry '" + kRegistry.string() + "' < '" +
                              golden("edge", "in").string() + "'";
  const std::unique_ptr<std::FILE, ClosePipe> pipe(popen(command.c_str(), "r"));
  ASSERT_NE(pipe, nullptr);
  std::string output;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe.get())) > 0;) output.append(buffer, n);

  std::ifstream answers(golden("edge", "expected"));
  std::string expected;
  while (std::getline(answers, expected)) {
    const auto end = output.find('\n');
    ASSERT_NE(end, std::string::npos);
    expect_same(expected, output.substr(0, end));
    output.erase(0, end + 1);
  }
  EXPECT_EQ(output, "");
}

}  // namespace
}  // namespace candor::cli
