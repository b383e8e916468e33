// Decoding of K-quants: 256 elements in sub-blocks of 16 or 32 whose scales (and minimums) are themselves quantized.
#include "formats/quant/blocks.h"

namespace candor::quant {

/// scales[16] (scale in the low nibble, minimum in the high), codes[64] of two bits, d, dmin.
void decode_q2_k(const std::uint8_t* block, float* out) {
  const std::uint8_t* codes = block + 16;
  const float d = load_half(block + 80);
  const float dmin = load_half(block + 82);
  for (int i = 0; i < kSuper; ++i) {
    const std::uint8_t packed = block[i / 16];
    const int code = (codes[(i / 128) * 32 + i % 32] >> ((i / 32) % 4 * 2)) & 3;
    out[i] = d * static_cast<float>(packed & 15) * static_cast<float>(code) - dmin * static_cast<float>(packed >> 4);
  }
}

namespace {

/// The signed scale of a q3_k sub-block of 16: four low bits in bytes 0–7, two high bits in bytes 8–11, minus 32.
int q3_k_scale(const std::uint8_t* packed, int sub) {
  const int low = sub < 8 ? packed[sub] & 15 : packed[sub - 8] >> 4;
  const int high = (packed[8 + sub % 4] >> (sub / 4 * 2)) & 3;
  return (low | high << 4) - 32;
}

}  // namespace

/// high bits[32], codes[64] of two bits, scales[12], d. A code is three bits minus 4.
void decode_q3_k(const std::uint8_t* block, float* out) {
  const std::uint8_t* codes = block + 32;
  const float d = load_half(block + 108);
  for (int i = 0; i < kSuper; ++i) {
    const float scale = d * static_cast<float>(q3_k_scale(block + 96, i / 16));
    const int low = (codes[(i / 128) * 32 + i % 32] >> ((i / 32) % 4 * 2)) & 3;
    const int high = (block[i % 32] >> (i / 32)) & 1;
    out[i] = scale * static_cast<float>((low | high << 2) - 4);
  }
}

/// d, dmin, scales and minimums[12], codes[128]: of each 64 elements the first 32 stand in the low nibbles.
void decode_q4_k(const std::uint8_t* block, float* out) {
  const float d = load_half(block);
  const float dmin = load_half(block + 2);
  for (int sub = 0; sub < 8; ++sub) {
    const ScaleMin packed = unpack_scale_min(block + 4, sub);
    const float scale = d * static_cast<float>(packed.scale);
    const float min = dmin * static_cast<float>(packed.min);
    const std::uint8_t* codes = block + 16 + sub / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      const int code = sub % 2 == 0 ? codes[i] & 15 : codes[i] >> 4;
      out[sub * 32 + i] = scale * static_cast<float>(code) - min;
    }
  }
}

/// As q4_k, with fifth bits[32] before the codes: bit b of byte i belongs to element 32·b + i.
void decode_q5_k(const std::uint8_t* block, float* out) {
  const float d = load_half(block);
  const float dmin = load_half(block + 2);
  for (int sub = 0; sub < 8; ++sub) {
    const ScaleMin packed = unpack_scale_min(block + 4, sub);
    const float scale = d * static_cast<float>(packed.scale);
    const float min = dmin * static_cast<float>(packed.min);
    const std::uint8_t* codes = block + 48 + sub / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      const int low = sub % 2 == 0 ? codes[i] & 15 : codes[i] >> 4;
      const int high = (block[16 + i] >> sub) & 1;
      out[sub * 32 + i] = scale * static_cast<float>(low | high << 4) - min;
    }
  }
}

/// low nibbles[128], high pairs[64], int8 scales[16], d. Of each 128 elements, element i has its low nibble in byte
/// i mod 64 and its high pair in byte i mod 32.
void decode_q6_k(const std::uint8_t* block, float* out) {
  const float d = load_half(block + 208);
  for (int i = 0; i < kSuper; ++i) {
    const int half = i / 128;
    const int within = i % 128;
    const std::uint8_t nibbles = block[half * 64 + within % 64];
    const int low = within < 64 ? nibbles & 15 : nibbles >> 4;
    const int high = (block[128 + half * 32 + within % 32] >> (within / 32 * 2)) & 3;
    const auto scale = static_cast<float>(static_cast<std::int8_t>(block[192 + i / 16]));
    out[i] = d * scale * static_cast<float>((low | high << 4) - 32);
  }
}

/// float32 d, int8 codes[256], sums of sixteen codes (which decoding does not need).
void decode_q8_k(const std::uint8_t* block, float* out) {
  const auto d = load<float>(block);
  for (int i = 0; i < kSuper; ++i) out[i] = d * static_cast<float>(static_cast<std::int8_t>(block[4 + i]));
}

}  // namespace candor::quant
