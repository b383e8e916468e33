#include "base/js_value.h"

#include <gtest/gtest.h>

#include <cmath>

namespace candor::js {
namespace {

Json parse(const char* text) {
  return parse_json(text, "test");
}

TEST(JsValue, FindsOwnKeysOfPlainObjectsOnly) {
  const Json object = parse(R"({"a":{"b":null},"list":[1]})");
  EXPECT_NE(get(&object, "a"), nullptr);
  EXPECT_EQ(get(&object, "constructor"), nullptr);
  EXPECT_EQ(get(get(&object, "list"), "0"), nullptr);
  EXPECT_EQ(get(nullptr, "a"), nullptr);
  EXPECT_TRUE(at_path(&object, {"a", "b"})->is_null());
  EXPECT_EQ(at_path(&object, {"a", "b", "c"}), nullptr);
}

TEST(JsValue, Truthiness) {
  for (const char* falsy : {"null", "false", "0", "-0.0", "\"\""}) {
    const Json value = parse(falsy);
    EXPECT_FALSE(truthy(&value)) << falsy;
  }
  for (const char* truthy_text : {"true", "1", "-1", "0.5", "\" \"", "\"0\"", "[]", "{}"}) {
    const Json value = parse(truthy_text);
    EXPECT_TRUE(truthy(&value)) << truthy_text;
  }
  EXPECT_FALSE(truthy(nullptr));
}

TEST(JsValue, TextForms) {
  EXPECT_EQ(to_string(nullptr), "undefined");
  const std::pair<const char*, const char*> cases[] = {{"null", "null"},
                                                       {"[null,[1,[2.5]],{}]", ",1,2.5,[object Object]"},
                                                       {"{}", "[object Object]"},
                                                       {"1e21", "1e+21"},
                                                       {"-0.0", "0"},
                                                       {"50.0", "50"},
                                                       {"true", "true"},
                                                       {"[]", ""},
                                                       {"\"text\"", "text"}};
  for (const auto& [json, text] : cases) {
    const Json value = parse(json);
    EXPECT_EQ(to_string(&value), text);
  }
}

TEST(JsValue, Integers) {
  for (const char* integer : {"0", "3.0", "-0.0", "-7", "1e300"}) {
    const Json value = parse(integer);
    EXPECT_TRUE(is_integer(&value)) << integer;
  }
  for (const char* other : {"1.5", "\"1\"", "null", "[1]", "true"}) {
    const Json value = parse(other);
    EXPECT_FALSE(is_integer(&value)) << other;
  }
}

TEST(JsValue, NumbersOfOtherValues) {
  const std::pair<const char*, double> cases[] = {{"\"\"", 0},
                                                  {"\" 12 \"", 12},
                                                  {"\"0x1f\"", 31},
                                                  {"\"0b101\"", 5},
                                                  {"\"1e3\"", 1000},
                                                  {"\".5\"", 0.5},
                                                  {"\"-5.\"", -5},
                                                  {"null", 0},
                                                  {"true", 1},
                                                  {"[\"7\"]", 7},
                                                  {"[]", 0},
                                                  {"\"-Infinity\"", -INFINITY},
                                                  {"\"1e999\"", INFINITY}};
  for (const auto& [json, number] : cases) {
    const Json value = parse(json);
    EXPECT_EQ(to_number(&value), number) << json;
  }
  for (const char* none : {"\"1x\"", "\"0x\"", "\"0b2\"", "\"inf\"", "\"nan\"", "{}", "[1,2]", "\"-\"", "\"--1\""}) {
    const Json value = parse(none);
    EXPECT_TRUE(std::isnan(to_number(&value))) << none;
  }
}

TEST(JsValue, StrictEquality) {
  const Json one = 1;
  const Json one_point_zero = 1.0;
  const Json text = "1";
  const Json a = Json::object();
  const Json b = Json::object();
  EXPECT_TRUE(strict_equal(&one, &one_point_zero));
  EXPECT_FALSE(strict_equal(&one, &text));
  EXPECT_FALSE(strict_equal(&a, &b));
  EXPECT_TRUE(strict_equal(&a, &a));
  EXPECT_FALSE(strict_equal(&one, nullptr));
  EXPECT_TRUE(strict_equal(&text, "1"));
}

TEST(JsValue, TrimsWhatJavaScriptTrims) {
  EXPECT_EQ(trim("\xef\xbb\xbf \t\r\n\xc2\xa0\xe2\x80\xa8"
                 "a b"
                 "\xe3\x80\x80\xe2\x80\xaf"),
            "a b");
  EXPECT_EQ(trim("\xe2\x80\x8b"
                 "a"),
            "\xe2\x80\x8b"
            "a")
      << "a zero-width space stays";
  EXPECT_EQ(trim(" \xc2\xa0 "), "");
  EXPECT_EQ(trim("\x80\xff"), "\x80\xff") << "broken text stays";
}

TEST(JsValue, LowersAsUnicodeDoes) {
  EXPECT_EQ(to_lower("F16 ÀÉ"), "f16 àé");
  EXPECT_EQ(to_lower("İ"), "i\xcc\x87");
  EXPECT_EQ(to_lower("ΟΔΟΣ"), "οδος") << "a final sigma";
  EXPECT_EQ(to_lower("ΣΑΣ Σ"), "σας σ");
  EXPECT_EQ(to_lower("\xe2\x84\xaa"), "k") << "the Kelvin sign";
}

TEST(JsValue, SpreadsObjectsListsAndTexts) {
  const Json list = parse("[5,6]");
  const Json text = parse("\"a\xf0\x9f\x98\x80\"");
  const Json number = 3;
  EXPECT_EQ(to_js_json(spread(&list)), R"({"0":5,"1":6})");
  EXPECT_EQ(to_js_json(spread(&text)), "{\"0\":\"a\",\"1\":\"\xef\xbf\xbd\",\"2\":\"\xef\xbf\xbd\"}");
  EXPECT_EQ(to_js_json(spread(&number)), "{}");
  EXPECT_EQ(keys(&text), (std::vector<std::string>{"0", "1", "2"}));
}

TEST(JsValue, NewKeysTakeJavaScriptsPlace) {
  Json object = parse(R"({"b":1,"5":2})");
  set(object, "a", 3);
  set(object, "1", 4);
  set(object, "b", 5);
  EXPECT_EQ(to_js_json(object), R"({"1":4,"5":2,"b":5,"a":3})");
  ObjectBuilder builder(object);
  builder["3"] = 6;
  builder["a"] = 7;
  EXPECT_EQ(to_js_json(builder.take()), R"({"1":4,"3":6,"5":2,"b":5,"a":7})");
}

}  // namespace
}  // namespace candor::js
