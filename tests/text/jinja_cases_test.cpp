// Templates against Jinja2 in Hugging Face's environment: the small ones of jinja_cases.jsonl (see make_jinja_cases.py)
// and the real ones of the reference data.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "text/chat_template.h"

namespace candor {
namespace {

const LocalTime kNow{2026, 3, 14, 9, 26, 53};

/// What a template made of a context: its text, or why there is none.
struct Outcome {
  std::optional<std::string> text;
  std::string error;
};

Outcome render(const std::string& source, const Json& context) {
  try {
    return {ChatTemplate(source, "template").render(context, kNow), {}};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::text) << error.what();
    return {std::nullopt, error.what()};
  }
}

/// Checks one case; `expected` is absent where rendering must fail.
void check(const std::string& name, const std::string& source, const Json& context,
           const std::optional<std::string>& expected) {
  const Outcome outcome = render(source, context);
  EXPECT_EQ(outcome.text.has_value(), expected.has_value())
      << name << (outcome.text ? "\nrenders, but must fail: " + *outcome.text : "\nfails: " + outcome.error);
  if (outcome.text && expected) {
    EXPECT_EQ(*outcome.text, *expected) << name;
  }
}

/// Calls check(case) for each line of a file of JSON lines; returns how many there were.
template <typename Check>
int for_each_line(const std::filesystem::path& path, const Check& check_line) {
  std::ifstream file(path);
  std::string line;
  int count = 0;
  while (std::getline(file, line)) {
    check_line(parse_json(line, path.filename().string()));
    ++count;
  }
  return count;
}

TEST(JinjaCases, AgreeWithJinja2) {
  const int count = for_each_line(CANDOR_SOURCE_DIR "/tests/text/jinja_cases.jsonl", [](const Json& line) {
    const auto source = line.at("template").get<std::string>();
    std::optional<std::string> expected;
    if (!line.contains("error")) expected = line.at("output").get<std::string>();
    check(source, source, line.at("context"), expected);
  });
  EXPECT_GE(count, 800);
}

TEST(JinjaCases, RealTemplatesRenderAsInHuggingFace) {
  const std::filesystem::path folder = CANDOR_SHARED_DIR "/goldens/chat-templates";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no reference data at " << folder;
  std::map<std::string, std::string> sources;
  const int count = for_each_line(folder / "cases.jsonl", [&](const Json& line) {
    const auto name = line.at("template").get<std::string>();
    auto& source = sources[name];
    if (source.empty()) source = read_file(folder / "templates" / name, limits::template_bytes);
    std::optional<std::string> expected;
    if (line.at("ok").get<bool>()) expected = line.at("output").get<std::string>();
    check(name + ", case " + line.at("case").get<std::string>(), source, line.at("context"), expected);
  });
  EXPECT_EQ(count, 288);
}

}  // namespace
}  // namespace candor
