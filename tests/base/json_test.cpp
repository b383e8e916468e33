#include "base/json.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "base/limits.h"

namespace candor {
namespace {

TEST(Json, KeepsJavaScriptKeyOrder) {
  const Json value = parse_json(R"({"b":1,"10":2,"a":3,"9":4,"01":5,"4294967295":6})", "test");
  EXPECT_EQ(to_js_json(value), R"({"9":4,"10":2,"b":1,"a":3,"01":5,"4294967295":6})");
}

TEST(Json, ARepeatedKeyKeepsItsFirstPlaceAndLastValue) {
  EXPECT_EQ(to_js_json(parse_json(R"({"a":1,"b":2,"a":3})", "test")), R"({"a":3,"b":2})");
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += "\"k" + std::to_string(i) + "\":1,";
  many += "\"k50\":7}";
  const Json value = parse_json(many, "test");
  EXPECT_EQ(value.size(), 100u);
  EXPECT_EQ(value["k50"], 7);
}

TEST(Json, PrintsNumbersAsJavaScript) {
  EXPECT_EQ(js_number(50.0), "50");
  EXPECT_EQ(js_number(-0.0), "0");
  EXPECT_EQ(js_number(0.1), "0.1");
  EXPECT_EQ(js_number(1e21), "1e+21");
  EXPECT_EQ(js_number(123456789012345680000.0), "123456789012345680000");
  EXPECT_EQ(js_number(0.000001), "0.000001");
  EXPECT_EQ(js_number(1e-7), "1e-7");
  EXPECT_EQ(js_number(-1.5e-9), "-1.5e-9");
  EXPECT_EQ(js_number(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
}

TEST(Json, CanonicalFormSortsByUtf16CodeUnits) {
  // RFC 8785, section 3.2.3: U+1F600 (surrogates from U+D83D) sorts before U+FB33.
  const Json value = parse_json("{\"\xef\xac\xb3\":1,\"\xf0\x9f\x98\x80\":2,\"\\r\":3,\"1\":4}", "test");
  EXPECT_EQ(to_canonical_json(value), "{\"\\r\":3,\"1\":4,\"\xf0\x9f\x98\x80\":2,\"\xef\xac\xb3\":1}");
}

TEST(Json, RefusesWhatIsMalformed) {
  for (const char* text : {"", "{", "[1,]", "{\"a\":}", "\"\xff\"", "nul", "1 2", "{\"a\" 1}"})
    EXPECT_THROW((void)parse_json(text, "test"), Error) << text;
}

TEST(Json, RefusesDeepNesting) {
  const std::string ok(limits::json_depth, '[');
  EXPECT_NO_THROW((void)parse_json(ok + std::string(limits::json_depth, ']'), "test"));
  const std::string deep(limits::json_depth + 1, '[');
  EXPECT_THROW((void)parse_json(deep, "test"), Error);
  EXPECT_THROW((void)parse_json_sorted(deep, "test"), Error);
}

}  // namespace
}  // namespace candor
