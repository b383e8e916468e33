// Sixteen-bit floats, one value at a time: IEEE 754 binary16 and bfloat16. Narrowing rounds to nearest even and keeps
// subnormals; NaN stays NaN (quiet, sign and leading payload bits kept, as x86 F16C and ARM do), so that vector code
// may use the instructions and give the same bits. Not a goal: speed over arrays; kernels have their own loops.
#pragma once

#include <bit>
#include <cstdint>

namespace candor {

/// The binary32 value of binary16 bits; exact.
[[nodiscard]] constexpr float f16_to_f32(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  if (exponent == 31) {
    const std::uint32_t quiet = fraction != 0 ? 0x0040'0000u : 0u;
    return std::bit_cast<float>(sign | 0x7f80'0000u | quiet | fraction << 13);
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

/// The nearest binary16 (ties to even); magnitudes from 65520 become infinity.
[[nodiscard]] constexpr std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fff'ffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f80'0000u) {
    half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x4780'0000u) {  // 65536 and above
    half = 0x7c00u;
  } else if (magnitude <
             0x3880'0000u) {  // below 2^-14: a multiple of 2^-24, which is the spacing of floats in [0.5, 1)
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f00'0000u;
  } else {
    const std::uint32_t odd = (magnitude >> 13) & 1u;
    half = (magnitude + 0xfffu + odd - (112u << 23)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

/// The binary32 value of bfloat16 bits; exact.
[[nodiscard]] constexpr float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// The nearest bfloat16 (ties to even).
[[nodiscard]] constexpr std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fff'ffffu) > 0x7f80'0000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  const std::uint32_t odd = (bits >> 16) & 1u;
  return static_cast<std::uint16_t>((bits + 0x7fffu + odd) >> 16);
}

}  // namespace candor
