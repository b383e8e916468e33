// Blocks of 32 with one scale: q4_0, q5_0, q8_0 (symmetric), q4_1, q5_1 (with a minimum), and q8_1. In the four- and
// five-bit types byte i holds elements i (low nibble) and i + 16 (high nibble); fifth bits stand in one 32-bit word.
#include <algorithm>
#include <cmath>

#include "formats/quant/blocks.h"

namespace candor::quant {
namespace {

constexpr int kHalf = kBlock / 2;

int nibble(const std::uint8_t* codes, int element) {
  return element < kHalf ? codes[element] & 15 : codes[element - kHalf] >> 4;
}

int fifth_bit(std::uint32_t bits, int element) {
  return static_cast<int>((bits >> element) & 1u) << 4;
}

/// `value` truncated to an integer in [0, limit]; NaN gives 0.
int to_code(float value, int limit) {
  if (!(value > 0.0f)) return 0;
  return value < static_cast<float>(limit) ? static_cast<int>(value) : limit;
}

void store_nibbles(const int* codes, std::uint8_t* out) {
  for (int i = 0; i < kHalf; ++i) out[i] = static_cast<std::uint8_t>((codes[i] & 15) | (codes[i + kHalf] & 15) << 4);
}

std::uint32_t collect_fifth_bits(const int* codes) {
  std::uint32_t bits = 0;
  for (int i = 0; i < kBlock; ++i) bits |= static_cast<std::uint32_t>(codes[i] >> 4) << i;
  return bits;
}

/// The value of largest magnitude, the first of equals; NaN is passed over.
float extreme(const float* in) {
  float found = 0.0f;
  for (int i = 0; i < kBlock; ++i)
    if (std::fabs(in[i]) > std::fabs(found)) found = in[i];
  return found;
}

float inverse_or_zero(float value) {
  return value != 0.0f ? 1.0f / value : 0.0f;
}

/// Codes of a symmetric block whose largest value maps to −`steps` exactly: round(x / d) + steps, clamped to 2·steps
/// − 1.
float symmetric_codes(const float* in, int steps, int* codes) {
  const float scale = extreme(in) / static_cast<float>(-steps);
  const float inverse = inverse_or_zero(scale);
  const float offset = static_cast<float>(steps) + 0.5f;
  for (int i = 0; i < kBlock; ++i) codes[i] = to_code(in[i] * inverse + offset, 2 * steps - 1);
  return scale;
}

struct ScaleAndMinimum {
  float scale;
  float min;
};

/// Codes of a block stretched from its minimum (0) to its maximum (`top`).
ScaleAndMinimum affine_codes(const float* in, int top, int* codes) {
  float low = in[0];
  float high = in[0];
  for (int i = 1; i < kBlock; ++i) {
    if (in[i] < low) low = in[i];
    if (in[i] > high) high = in[i];
  }
  const float scale = (high - low) / static_cast<float>(top);
  const float inverse = inverse_or_zero(scale);
  for (int i = 0; i < kBlock; ++i) codes[i] = to_code((in[i] - low) * inverse + 0.5f, top);
  return {scale, low};
}

}  // namespace

void decode_q4_0(const std::uint8_t* block, float* out) {
  const float scale = load_half(block);
  for (int i = 0; i < kBlock; ++i) out[i] = static_cast<float>(nibble(block + 2, i) - 8) * scale;
}

void decode_q4_1(const std::uint8_t* block, float* out) {
  const float scale = load_half(block);
  const float min = load_half(block + 2);
  for (int i = 0; i < kBlock; ++i) out[i] = static_cast<float>(nibble(block + 4, i)) * scale + min;
}

void decode_q5_0(const std::uint8_t* block, float* out) {
  const float scale = load_half(block);
  const auto high = load<std::uint32_t>(block + 2);
  for (int i = 0; i < kBlock; ++i)
    out[i] = static_cast<float>((nibble(block + 6, i) | fifth_bit(high, i)) - 16) * scale;
}

void decode_q5_1(const std::uint8_t* block, float* out) {
  const float scale = load_half(block);
  const float min = load_half(block + 2);
  const auto high = load<std::uint32_t>(block + 4);
  for (int i = 0; i < kBlock; ++i) out[i] = static_cast<float>(nibble(block + 8, i) | fifth_bit(high, i)) * scale + min;
}

void decode_q8_0(const std::uint8_t* block, float* out) {
  const float scale = load_half(block);
  for (int i = 0; i < kBlock; ++i) out[i] = static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * scale;
}

void decode_q8_1(const std::uint8_t* block, float* out) {
  const float scale = load_half(block);  // bytes 2–3 hold scale × sum of the codes, which decoding does not need
  for (int i = 0; i < kBlock; ++i) out[i] = static_cast<float>(static_cast<std::int8_t>(block[4 + i])) * scale;
}

void encode_q4_0(const float* in, std::uint8_t* block) {
  int codes[kBlock];
  store_half(block, symmetric_codes(in, 8, codes));
  store_nibbles(codes, block + 2);
}

void encode_q5_0(const float* in, std::uint8_t* block) {
  int codes[kBlock];
  store_half(block, symmetric_codes(in, 16, codes));
  store(block + 2, collect_fifth_bits(codes));
  store_nibbles(codes, block + 6);
}

void encode_q4_1(const float* in, std::uint8_t* block) {
  int codes[kBlock];
  const ScaleAndMinimum affine = affine_codes(in, 15, codes);
  store_half(block, affine.scale);
  store_half(block + 2, affine.min);
  store_nibbles(codes, block + 4);
}

void encode_q5_1(const float* in, std::uint8_t* block) {
  int codes[kBlock];
  const ScaleAndMinimum affine = affine_codes(in, 31, codes);
  store_half(block, affine.scale);
  store_half(block + 2, affine.min);
  store(block + 4, collect_fifth_bits(codes));
  store_nibbles(codes, block + 8);
}

void encode_q8_0(const float* in, std::uint8_t* block) {
  const float scale = std::fabs(extreme(in)) / 127.0f;
  const float inverse = inverse_or_zero(scale);
  store_half(block, scale);
  for (int i = 0; i < kBlock; ++i) {
    const float code = std::round(in[i] * inverse);  // halves away from zero
    block[2 + i] =
        static_cast<std::uint8_t>(std::isnan(code) ? 0 : static_cast<std::int8_t>(std::clamp(code, -127.0f, 127.0f)));
  }
}

}  // namespace candor::quant
