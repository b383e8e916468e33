#include "models/rope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/error.h"

namespace candor::models {
namespace {

RopeTable table(const Json& scaling, std::uint64_t rotary_dim = 8, double theta = 10000,
                std::uint64_t max_positions = 4096, std::uint64_t wanted_positions = 0) {
  RopeSettings settings;
  settings.theta = theta;
  settings.rotary_dim = rotary_dim;
  settings.max_positions = max_positions;
  settings.wanted_positions = wanted_positions;
  if (!scaling.is_null()) settings.scaling = &scaling;
  return rope_table(settings, "test");
}

TEST(Rope, DefaultFrequenciesAreInversePowersOfTheta) {
  const RopeTable plain = table({});
  ASSERT_EQ(plain.inverse_frequencies.size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(plain.inverse_frequencies[i], std::pow(10.0F, static_cast<float>(-i)));
  EXPECT_EQ(plain.attention_scale, 1);
}

TEST(Rope, LinearDividesAll) {
  const RopeTable scaled = table({{"type", "linear"}, {"factor", 4.0}});
  EXPECT_FLOAT_EQ(scaled.inverse_frequencies[0], 0.25F);
  EXPECT_FLOAT_EQ(scaled.inverse_frequencies[3], 0.00025F);
}

TEST(Rope, Llama3KeepsShortWavelengthsAndDividesLongOnes) {
  const Json scaling{{"rope_type", "llama3"},
                     {"factor", 8.0},
                     {"low_freq_factor", 1.0},
                     {"high_freq_factor", 4.0},
                     {"original_max_position_embeddings", 64}};
  const RopeTable scaled = table(scaling);
  const RopeTable plain = table({});
  EXPECT_FLOAT_EQ(scaled.inverse_frequencies[0], plain.inverse_frequencies[0]);      // wavelength 6.3 < 16
  EXPECT_FLOAT_EQ(scaled.inverse_frequencies[2], plain.inverse_frequencies[2] / 8);  // wavelength 628 > 64
  const double wavelength = 2 * std::numbers::pi / 0.1;                              // 62.8, between: blended
  const double smooth = (64 / wavelength - 1) / 3;
  EXPECT_FLOAT_EQ(scaled.inverse_frequencies[1], static_cast<float>((1 - smooth) * 0.1 / 8 + smooth * 0.1));
}

TEST(Rope, YarnInterpolatesBetweenTheRampsAndScalesAttention) {
  const RopeTable scaled =
      table({{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 2048}}, 64, 10000, 8192);
  const RopeTable plain = table({}, 64);
  EXPECT_FLOAT_EQ(scaled.inverse_frequencies[0], plain.inverse_frequencies[0]);
  EXPECT_FLOAT_EQ(scaled.inverse_frequencies[31], plain.inverse_frequencies[31] / 4);
  EXPECT_NEAR(scaled.attention_scale, 0.1 * std::log(4.0) + 1, 1e-12);
  const RopeTable given = table({{"rope_type", "yarn"}, {"factor", 4.0}, {"attention_factor", 1.5}}, 64);
  EXPECT_EQ(given.attention_scale, 1.5);
}

TEST(Rope, LongRopeDividesByFactorsOfItsOwnChosenByTheContext) {
  const Json scaling{{"type", "longrope"},
                     {"long_factor", {1.0, 2.0, 4.0, 8.0}},
                     {"short_factor", {1.0, 1.0, 1.0, 1.5}},
                     {"original_max_position_embeddings", 1024}};
  const RopeTable plain = table({});
  const RopeTable extended = table(scaling, 8, 10000, 4096);
  EXPECT_FLOAT_EQ(extended.inverse_frequencies[2], plain.inverse_frequencies[2] / 4);
  EXPECT_NEAR(extended.attention_scale, std::sqrt(1 + std::log(4.0) / std::log(1024.0)), 1e-12);
  EXPECT_EQ(extended.scaling, "longrope");
  EXPECT_FALSE(extended.holds_only);
  EXPECT_EQ(table(scaling, 8, 10000, 4096, 1025).inverse_frequencies, extended.inverse_frequencies);
  // A plan for no more positions than the model was first trained on: the short factors, for no more than that; the
  // factor of cosine and sine is that of the whole model.
  const RopeTable within = table(scaling, 8, 10000, 4096, 1024);
  EXPECT_FLOAT_EQ(within.inverse_frequencies[3], plain.inverse_frequencies[3] / 1.5F);
  EXPECT_EQ(within.attention_scale, extended.attention_scale);
  EXPECT_EQ(within.holds_only, 1024u);
  const RopeTable original = table(scaling, 8, 10000, 1024);
  EXPECT_FLOAT_EQ(original.inverse_frequencies[3], plain.inverse_frequencies[3] / 1.5F);
  EXPECT_EQ(original.attention_scale, 1);
}

TEST(Rope, RefusesWhatItDoesNotKnow) {
  const auto expect = [](const Json& scaling, const char* text) {
    try {
      (void)table(scaling);
      FAIL() << to_js_json(scaling);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(text));
    }
  };
  expect({{"rope_type", "dynamic"}, {"factor", 2.0}}, "\"dynamic\" is unknown");
  expect({{"rope_type", "linear"}}, "factor is missing");
  expect({{"rope_type", "linear"}, {"factor", 0}}, "factor must be positive");
  expect({{"rope_type", "longrope"}, {"long_factor", {1.0}}}, "long_factor must be a list of 4 numbers");
  expect({{"rope_type", "linear"}, {"factor", 2.0}, {"alpha", 3.0}}, "unknown key alpha");
  expect({{"rope_type", 3}}, "rope_type must be a string");
  expect(Json::array(), "must be a JSON object");
}

}  // namespace
}  // namespace candor::models
