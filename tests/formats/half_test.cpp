#include "formats/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace candor {
namespace {

TEST(Half, EveryBinary16ComesBackAndMatchesItsDefinition) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f16_to_f32(half);
    const int exponent = (half >> 10) & 31;
    const int fraction = half & 1023;
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(value), fraction != 0);
      EXPECT_EQ(f32_to_f16(value), half | (fraction != 0 ? 0x200 : 0));
      continue;
    }
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    EXPECT_EQ(static_cast<double>(value), (half & 0x8000) != 0 ? -magnitude : magnitude);
    EXPECT_EQ(std::signbit(value), (half & 0x8000) != 0);
    EXPECT_EQ(f32_to_f16(value), half);
  }
}

TEST(Half, RoundsToNearestEvenBetweenAllNeighbours) {
  for (std::uint16_t low = 0; low < 0x7c00; ++low) {
    const double a = f16_to_f32(low);
    const double b = low == 0x7bff ? 65536.0 : f16_to_f32(static_cast<std::uint16_t>(low + 1));
    const auto middle = static_cast<float>((a + b) / 2);  // exact: one bit more than a binary16
    const int high = low + 1;
    EXPECT_EQ(f32_to_f16(middle), (low & 1) != 0 ? high : low);
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), low);
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, 1e6f)), high);
    EXPECT_EQ(f32_to_f16(-middle), 0x8000 | ((low & 1) != 0 ? high : low));
  }
  EXPECT_EQ(f32_to_f16(1e30f), 0x7c00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(Half, Bfloat16RoundsToNearestEvenAndKeepsSubnormalsAndNan) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = bf16_to_f32(half);
    EXPECT_EQ(f32_to_bf16(value), std::isnan(value) ? half | 0x40 : half);
    if (!std::isfinite(value)) continue;
    const std::uint32_t odd = half & 1u;
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(bits << 16 | 0x7fffu)), half);
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(bits << 16 | 0x8000u)), half + odd);
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(bits << 16 | 0x8001u)), half + 1);
  }
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7f800001u)), 0x7fc0);
}

}  // namespace
}  // namespace candor
