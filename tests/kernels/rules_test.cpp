#include "kernels/rules.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/builtin.h"
#include "kernels/kernel_path_policy.h"

namespace candor::kernels {
namespace {

/// The value that `rules` give for `context`, as text, or the error.
std::string select(const std::string& rules, const std::string& context) {
  try {
    return to_js_json(select_rule_value(parse_json(rules, "rules"), parse_json(context, "context")));
  } catch (const Error& error) {
    return error.what();
  }
}

/// Whether one match holds.
std::string holds(const std::string& match, const std::string& context) {
  return select(R"([{"match":)" + match + R"(,"value":true},{"value":false}])", context);
}

TEST(Rules, TheFirstMatchWins) {
  EXPECT_EQ(select(R"([{"match":{"a":1},"value":"x"},{"match":{},"value":"y"},{"value":"z"}])", R"({"a":1})"), "\"x\"");
  EXPECT_EQ(select(R"([{"match":{"a":1},"value":"x"},{"match":{},"value":"y"}])", R"({"a":2})"), "\"y\"");
  EXPECT_EQ(select(R"([{"match":{"a":1},"value":"x"}])", R"({"a":2})"),
            R"(RuleMatcher: no rule matched context {"a":2})");
}

TEST(Rules, PlainValuesMustBeEqual) {
  EXPECT_EQ(holds(R"({"a":1})", R"({"a":1.0})"), "true");
  EXPECT_EQ(holds(R"({"a":1})", R"({"a":"1"})"), "false");
  EXPECT_EQ(holds(R"({"a":[1]})", R"({"a":[1]})"), "false") << "lists are never equal";
  EXPECT_EQ(holds(R"({"a":null})", "{}"), "false") << "undefined is not null";
}

TEST(Rules, Operators) {
  EXPECT_EQ(holds(R"({"n":{"gt":3,"lte":5}})", R"({"n":5})"), "true");
  EXPECT_EQ(holds(R"({"n":{"gt":3,"lte":5}})", R"({"n":3})"), "false");
  EXPECT_EQ(holds(R"({"n":{"gte":3,"lt":5}})", R"({"n":3})"), "true");
  EXPECT_EQ(holds(R"({"n":{"gte":3}})", "{}"), "true") << "a missing number passes";
  EXPECT_EQ(holds(R"({"n":{"eq":3}})", "{}"), "false");
  EXPECT_EQ(holds(R"({"n":{"neq":3}})", "{}"), "true");
  EXPECT_EQ(holds(R"({"n":{"in":[1,"x"]}})", R"({"n":"x"})"), "true");
  EXPECT_EQ(holds(R"({"n":{"in":[1]}})", R"({"n":2})"), "false");
  EXPECT_EQ(holds(R"({"t":{"contains":"mma"}})", R"({"t":"gemma"})"), "true");
  EXPECT_EQ(holds(R"({"t":{"startsWith":["a","ge"],"endsWith":"a"}})", R"({"t":"gemma"})"), "true");
  EXPECT_EQ(holds(R"({"t":{"endsWith":["x","y"]}})", R"({"t":"gemma"})"), "false");
  EXPECT_EQ(holds(R"({"t":{"contains":"1"}})", R"({"t":1})"), "false") << "texts only";
  EXPECT_EQ(holds(R"({"t":{"like":"1"}})", R"({"t":1})").substr(0, 31), "rule operator \"like\" is unknown");
}

TEST(Rules, ValuesAreFilledIn) {
  EXPECT_EQ(select(R"([{"value":{"k":[{"template":"a-{x}-{y}"},{"context":"x"}]}}])", R"({"x":1,"y":"b"})"),
            R"({"k":["a-1-b",1]})");
  EXPECT_EQ(select(R"([{"value":{"context":"z"}}])", "{}"), "RuleRegistry: missing context value \"z\".");
  EXPECT_EQ(select(R"([{"value":{"template":"{z}"}}])", "{}"), "RuleRegistry: missing context value \"z\".");
}

TEST(RuleRegistry, SaysWhichNameIsUnknown) {
  RuleRegistry rules;
  rules.add("inference", "kernelPath", builtin_kernel_path_rules());
  const auto error_of = [&](const char* domain, const char* group, const char* set) -> std::string {
    try {
      (void)rules.select(domain, group, set, Json::object());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of("x", "y", "z"), "RuleRegistry: unknown domain \"x\".");
  EXPECT_EQ(error_of("inference", "y", "z"), "RuleRegistry: unknown rule group \"inference.y\".");
  EXPECT_EQ(error_of("inference", "kernelPath", "z"), "RuleRegistry: unknown rule set \"inference.kernelPath.z\".");
}

TEST(KernelPathRules, TheBuiltInOnesReplaceNothing) {
  RuleRegistry rules;
  rules.add("inference", "kernelPath", builtin_kernel_path_rules());
  KernelPathPolicy open;
  open.mode = "capability-aware";
  const Json source = "model";
  EXPECT_EQ(resolve_capability_path(rules, "any", &source, false, open), "any");
  EXPECT_EQ(finiteness_fallback(rules, "any"), std::nullopt);
}

TEST(KernelPathRules, AFallbackIsNamedByAPath) {
  RuleRegistry rules;
  rules.add(
      "inference", "kernelPath",
      parse_json(R"({"finitenessFallback":[{"match":{"kernelPathId":"f16"},"value":"f32"},{"value":null}]})", "rules"));
  EXPECT_EQ(finiteness_fallback(rules, "f16"), "f32");
  EXPECT_EQ(finiteness_fallback(rules, "f32"), std::nullopt);
}

}  // namespace
}  // namespace candor::kernels
