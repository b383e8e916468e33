// The block codecs behind codec.h, one pair of functions an encoding: a decoder reads one block and writes its
// elements, an encoder does the reverse. Layouts are ggml's (ggml-common.h). Private to src/formats/quant.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "formats/half.h"

namespace candor::quant {

inline constexpr int kBlock = 32;   ///< elements of a q4_0 … q8_1, iq4_nl or mxfp4 block
inline constexpr int kSuper = 256;  ///< elements of a K-quant, importance or ternary block

template <typename T>
[[nodiscard]] T load(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void store(std::uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

[[nodiscard]] inline float load_half(const std::uint8_t* from) {
  return f16_to_f32(load<std::uint16_t>(from));
}
inline void store_half(std::uint8_t* to, float value) {
  store(to, f32_to_f16(value));
}

/// The 6-bit scale and minimum of a sub-block of q4_k and q5_k, from the 12 bytes that pack eight of each.
struct ScaleMin {
  std::uint8_t scale;
  std::uint8_t min;
};
[[nodiscard]] inline ScaleMin unpack_scale_min(const std::uint8_t* packed, int sub) {
  const auto byte = [&](int i) { return static_cast<unsigned>(packed[i]); };
  if (sub < 4) return {static_cast<std::uint8_t>(byte(sub) & 63), static_cast<std::uint8_t>(byte(sub + 4) & 63)};
  return {static_cast<std::uint8_t>((byte(sub + 4) & 15) | (byte(sub - 4) >> 6) << 4),
          static_cast<std::uint8_t>(byte(sub + 4) >> 4 | (byte(sub) >> 6) << 4)};
}

void decode_q4_0(const std::uint8_t* block, float* out);
void decode_q4_1(const std::uint8_t* block, float* out);
void decode_q5_0(const std::uint8_t* block, float* out);
void decode_q5_1(const std::uint8_t* block, float* out);
void decode_q8_0(const std::uint8_t* block, float* out);
void decode_q8_1(const std::uint8_t* block, float* out);
void decode_q2_k(const std::uint8_t* block, float* out);
void decode_q3_k(const std::uint8_t* block, float* out);
void decode_q4_k(const std::uint8_t* block, float* out);
void decode_q5_k(const std::uint8_t* block, float* out);
void decode_q6_k(const std::uint8_t* block, float* out);
void decode_q8_k(const std::uint8_t* block, float* out);
void decode_iq2_xxs(const std::uint8_t* block, float* out);
void decode_iq2_xs(const std::uint8_t* block, float* out);
void decode_iq2_s(const std::uint8_t* block, float* out);
void decode_iq3_xxs(const std::uint8_t* block, float* out);
void decode_iq3_s(const std::uint8_t* block, float* out);
void decode_iq1_s(const std::uint8_t* block, float* out);
void decode_iq1_m(const std::uint8_t* block, float* out);
void decode_iq4_nl(const std::uint8_t* block, float* out);
void decode_iq4_xs(const std::uint8_t* block, float* out);
void decode_tq1_0(const std::uint8_t* block, float* out);
void decode_tq2_0(const std::uint8_t* block, float* out);
void decode_mxfp4(const std::uint8_t* block, float* out);

void encode_q4_0(const float* in, std::uint8_t* block);
void encode_q4_1(const float* in, std::uint8_t* block);
void encode_q5_0(const float* in, std::uint8_t* block);
void encode_q5_1(const float* in, std::uint8_t* block);
void encode_q8_0(const float* in, std::uint8_t* block);
void encode_q4_k(const float* in, std::uint8_t* block);
void encode_q5_k(const float* in, std::uint8_t* block);
void encode_q6_k(const float* in, std::uint8_t* block);
/// The squared error of element i counts weights[i] times.
void encode_q4_k_weighted(const float* in, const float* weights, std::uint8_t* block);
void encode_q5_k_weighted(const float* in, const float* weights, std::uint8_t* block);

}  // namespace candor::quant
