#include "models/config_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace candor::models {
namespace {

using ::testing::HasSubstr;

template <typename Function>
std::string error_of(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(ConfigReader, ReadsTypedValuesAndTreatsNullAsAbsent) {
  const Json config{{"layers", 2}, {"eps", 1e-5}, {"tied", true}, {"act", "silu"}, {"window", nullptr}};
  ConfigReader reader(config, "config.json");
  EXPECT_EQ(reader.positive("layers"), 2u);
  EXPECT_EQ(reader.number("eps"), 1e-5);
  EXPECT_TRUE(reader.boolean("tied", false));
  EXPECT_EQ(reader.string("act"), "silu");
  EXPECT_FALSE(reader.optional_positive("window"));
  EXPECT_NO_THROW(reader.finish());
}

TEST(ConfigReader, AnUnusedKeyIsRefusedByName) {
  const Json config{{"layers", 2}, {"attention_sink", 4}};
  ConfigReader reader(config, "config.json");
  (void)reader.positive("layers");
  EXPECT_THAT(error_of([&] { reader.finish(); }), HasSubstr("unknown key attention_sink = 4"));
  reader.harmless({"attention_sink"});
  EXPECT_NO_THROW(reader.finish());
}

TEST(ConfigReader, WrongTypesNameTheKeyAndTheValue) {
  const Json config{{"layers", "two"}, {"heads", 0}, {"width", 1.5}, {"eps", nullptr}, {"tied", 1}};
  ConfigReader reader(config, "config.json");
  EXPECT_THAT(error_of([&] { (void)reader.positive("layers"); }),
              HasSubstr("layers must be a positive integer; got \"two\""));
  EXPECT_THAT(error_of([&] { (void)reader.positive("heads"); }), HasSubstr("heads must be a positive integer; got 0"));
  EXPECT_THAT(error_of([&] { (void)reader.positive("width"); }), HasSubstr("1.5"));
  EXPECT_THAT(error_of([&] { (void)reader.number("eps"); }), HasSubstr("eps is missing"));
  EXPECT_THAT(error_of([&] { (void)reader.boolean("tied", false); }), HasSubstr("true or false"));
  EXPECT_THAT(error_of([] {
                const Json list = Json::array();
                ConfigReader bad(list, "config.json");
              }),
              HasSubstr("must be a JSON object"));
}

TEST(ConfigReader, RequireRefusesAnotherValue) {
  const Json config{{"bias", true}};
  ConfigReader reader(config, "config.json");
  EXPECT_THAT(error_of([&] { reader.require("bias", false, "biases are not part of this family"); }),
              HasSubstr("bias is true; biases are not part of this family"));
  EXPECT_NO_THROW(reader.require("bias", true, ""));
  EXPECT_NO_THROW(reader.require("absent", true, ""));
}

}  // namespace
}  // namespace candor::models
