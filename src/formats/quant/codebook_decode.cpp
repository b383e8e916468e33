// Decoding of the types whose codes index a codebook: iq1 to iq3 (points of four or eight elements with signs), iq4 and
// mxfp4 (sixteen levels), and the ternary tq types.
#include <array>
#include <bit>

#include "formats/quant/blocks.h"
#include "formats/quant/iq_grids.h"

namespace candor::quant {
namespace {

constexpr std::array<float, 4> kTwoBitLevels = {8, 25, 43, 0};
constexpr std::array<float, 8> kIq3XxsLevels = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr std::array<float, 8> kIq3SLevels = {1, 3, 5, 7, 9, 11, 13, 15};
constexpr std::array<float, 16> kIq4Levels = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
/// Twice the values of E2M1 (OCP Microscaling 1.0, table 5), as the stored exponent is one too small.
constexpr std::array<float, 16> kFp4Levels = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr float kIq1Delta = 0.125f;

/// Eight signs stored as seven: the eighth makes the number of minus signs even.
unsigned expand_signs(unsigned seven) {
  return seven | (std::popcount(seven) & 1u ? 128u : 0u);
}

float apply_sign(float value, unsigned signs, int element) {
  return (signs >> element) & 1u ? -value : value;
}

/// Eight elements of a two-bit codebook.
void put_point8(float scale, std::uint16_t point, unsigned signs, float* out) {
  for (int i = 0; i < 8; ++i) out[i] = apply_sign(scale * kTwoBitLevels[(point >> 2 * i) & 3u], signs, i);
}

/// Four elements of a three-bit codebook, whose signs begin at bit `first`.
void put_point4(float scale, std::uint16_t point, const std::array<float, 8>& levels, unsigned signs, int first,
                float* out) {
  for (int i = 0; i < 4; ++i) out[i] = apply_sign(scale * levels[(point >> 3 * i) & 7u], signs, first + i);
}

void put_iq1_point(float scale, unsigned index, float delta, float* out) {
  const unsigned point = kIq1Grid[index];
  for (int i = 0; i < 8; ++i) out[i] = scale * (static_cast<float>((point >> 2 * i) & 3u) - 1.0f + delta);
}

}  // namespace

/// d, then for each 32 elements four codebook indices and a word of four 7-bit signs and a 4-bit scale.
void decode_iq2_xxs(const std::uint8_t* block, float* out) {
  const float d = load_half(block);
  for (int group = 0; group < 8; ++group) {
    const std::uint8_t* indices = block + 2 + 8 * group;
    const auto word = load<std::uint32_t>(indices + 4);
    const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.25f;
    for (int i = 0; i < 4; ++i, out += 8)
      put_point8(scale, kIq2XxsGrid[indices[i]], expand_signs((word >> 7 * i) & 127u), out);
  }
}

/// d, 32 words of a 9-bit index and 7-bit signs, 4-bit scales of 16 elements.
void decode_iq2_xs(const std::uint8_t* block, float* out) {
  const float d = load_half(block);
  for (int i = 0; i < 32; ++i, out += 8) {
    const auto word = load<std::uint16_t>(block + 2 + 2 * i);
    const unsigned nibble = (block[66 + i / 4] >> (i % 4 / 2 * 4)) & 15u;
    const float scale = d * (0.5f + static_cast<float>(nibble)) * 0.25f;
    put_point8(scale, kIq2XsGrid[word & 511u], expand_signs(word >> 9), out);
  }
}

/// d, low index bytes[32], sign bytes[32], high index pairs[8], 4-bit scales of 16 elements.
void decode_iq2_s(const std::uint8_t* block, float* out) {
  const float d = load_half(block);
  for (int i = 0; i < 32; ++i, out += 8) {
    const unsigned high = (block[66 + i / 4] >> (i % 4 * 2)) & 3u;
    const unsigned nibble = (block[74 + i / 4] >> (i % 4 / 2 * 4)) & 15u;
    const float scale = d * (0.5f + static_cast<float>(nibble)) * 0.25f;
    put_point8(scale, kIq2SGrid[block[2 + i] | high << 8], block[34 + i], out);
  }
}

/// d, index bytes[64] of four elements each, then for each 32 elements a word of four 7-bit signs and a 4-bit scale.
void decode_iq3_xxs(const std::uint8_t* block, float* out) {
  const float d = load_half(block);
  for (int i = 0; i < 32; ++i, out += 8) {
    const auto word = load<std::uint32_t>(block + 66 + i / 4 * 4);
    const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
    const unsigned signs = expand_signs((word >> 7 * (i % 4)) & 127u);
    put_point4(scale, kIq3XxsGrid[block[2 + 2 * i]], kIq3XxsLevels, signs, 0, out);
    put_point4(scale, kIq3XxsGrid[block[3 + 2 * i]], kIq3XxsLevels, signs, 4, out + 4);
  }
}

/// d, low index bytes[64], ninth index bits[8], sign bytes[32], 4-bit scales of 32 elements.
void decode_iq3_s(const std::uint8_t* block, float* out) {
  const float d = load_half(block);
  for (int i = 0; i < 64; ++i, out += 4) {
    const unsigned ninth = (block[66 + i / 8] >> (i % 8)) & 1u;
    const unsigned nibble = (block[106 + i / 16] >> (i / 8 % 2 * 4)) & 15u;
    const float scale = d * static_cast<float>(1 + 2 * nibble);
    put_point4(scale, kIq3SGrid[block[2 + i] | ninth << 8], kIq3SLevels, block[74 + i / 2], i % 2 * 4, out);
  }
}

/// d, low index bytes[32], then for each 32 elements a word: four 3-bit high indices, a 3-bit scale, the shift's sign.
void decode_iq1_s(const std::uint8_t* block, float* out) {
  const float d = load_half(block);
  for (int i = 0; i < 32; ++i, out += 8) {
    const auto word = load<std::uint16_t>(block + 34 + i / 4 * 2);
    const float scale = d * static_cast<float>(2 * ((word >> 12) & 7) + 1);
    const float delta = word & 0x8000 ? -kIq1Delta : kIq1Delta;
    put_iq1_point(scale, block[2 + i] | ((word >> 3 * (i % 4)) & 7u) << 8, delta, out);
  }
}

/// low index bytes[32], nibbles of a 3-bit high index and the shift's sign[16], four words of four 3-bit scales each,
/// whose top nibbles together are d.
void decode_iq1_m(const std::uint8_t* block, float* out) {
  std::array<std::uint16_t, 4> words{};
  unsigned d_bits = 0;
  for (unsigned i = 0; i < 4; ++i) {
    words[i] = load<std::uint16_t>(block + 48 + 2 * i);
    d_bits |= static_cast<unsigned>(words[i] >> 12) << 4 * i;
  }
  const float d = f16_to_f32(static_cast<std::uint16_t>(d_bits));
  for (unsigned i = 0; i < 32; ++i, out += 8) {
    const unsigned scale_bits = (words[i / 8] >> (i / 2 % 4 * 3)) & 7u;
    const float scale = d * static_cast<float>(2 * scale_bits + 1);
    const unsigned nibble = (block[32 + i / 2] >> (i % 2 * 4)) & 15u;
    put_iq1_point(scale, block[i] | (nibble & 7u) << 8, nibble & 8u ? -kIq1Delta : kIq1Delta, out);
  }
}

void decode_iq4_nl(const std::uint8_t* block, float* out) {
  const float d = load_half(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * kIq4Levels[block[2 + i] & 15u];
    out[i + 16] = d * kIq4Levels[block[2 + i] >> 4];
  }
}

/// d, high scale pairs (one word), low scale nibbles[4], codes[128]; a scale is six bits minus 32.
void decode_iq4_xs(const std::uint8_t* block, float* out) {
  const float d = load_half(block);
  const auto high = load<std::uint16_t>(block + 2);
  for (int group = 0; group < 8; ++group, out += 32) {
    const int low = (block[4 + group / 2] >> (group % 2 * 4)) & 15;
    const float scale = d * static_cast<float>((low | ((high >> 2 * group) & 3) << 4) - 32);
    const std::uint8_t* codes = block + 8 + 16 * group;
    for (int i = 0; i < 16; ++i) {
      out[i] = scale * kIq4Levels[codes[i] & 15u];
      out[i + 16] = scale * kIq4Levels[codes[i] >> 4];
    }
  }
}

/// An exponent byte and sixteen bytes of E2M1 codes; the scale is 2^(exponent − 128).
void decode_mxfp4(const std::uint8_t* block, float* out) {
  const std::uint32_t exponent = block[0];
  const float scale = std::bit_cast<float>(exponent < 2 ? 0x0020'0000u << exponent : (exponent - 1) << 23);
  for (int i = 0; i < 16; ++i) {
    out[i] = kFp4Levels[block[1 + i] & 15u] * scale;
    out[i + 16] = kFp4Levels[block[1 + i] >> 4] * scale;
  }
}

namespace {

/// Digit `n` of a byte that stores a base-3 fraction: the byte times 3^n (mod 256), times 3, is digit·256 + rest.
float ternary_digit(std::uint8_t byte, int n) {
  constexpr std::array<unsigned, 5> kPowers = {1, 3, 9, 27, 81};
  const unsigned shifted = byte * kPowers[static_cast<std::size_t>(n)] & 255u;
  return static_cast<float>(shifted * 3 >> 8) - 1.0f;
}

/// Elements of `width` bytes: digit 0 of each, then digit 1 of each, …
float* put_ternary(const std::uint8_t* bytes, int width, int digits, float d, float* out) {
  for (int n = 0; n < digits; ++n)
    for (int i = 0; i < width; ++i) *out++ = ternary_digit(bytes[i], n) * d;
  return out;
}

}  // namespace

/// 48 bytes of five digits (in runs of 32 and 16), four bytes of four digits, d.
void decode_tq1_0(const std::uint8_t* block, float* out) {
  const float d = load_half(block + 52);
  out = put_ternary(block, 32, 5, d, out);
  out = put_ternary(block + 32, 16, 5, d, out);
  put_ternary(block + 48, 4, 4, d, out);
}

/// codes[64] of two bits, d.
void decode_tq2_0(const std::uint8_t* block, float* out) {
  const float d = load_half(block + 64);
  for (int i = 0; i < kSuper; ++i) {
    const int code = (block[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3;
    out[i] = static_cast<float>(code - 1) * d;
  }
}

}  // namespace candor::quant
