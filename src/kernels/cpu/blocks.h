// The quantized blocks of weight files, taken apart into whole numbers and scales. Layouts are ggml's (block_q8_0 and
// the others of ggml-common.h as published with the GGUF format). Values equal ggml's dequantization bit for bit.
#pragma once

#include "kernels/cpu/simd.h"

namespace candor::cpu::CANDOR_ISA {

/// 32 values (q - offset) · d.
struct Block32 {
  std::int8_t q[32];
  std::uint16_t d;  ///< f16
};

struct Q8_0 {
  static constexpr std::uint32_t kBytes = 34;
  static constexpr std::int32_t kOffset = 0;
  CANDOR_INLINE static Block32 read(const std::byte* p) {
    Block32 block;
    block.d = load_scalar<std::uint16_t>(p);
    __builtin_memcpy(block.q, p + 2, 32);
    return block;
  }
};

struct Q4_0 {
  static constexpr std::uint32_t kBytes = 18;
  static constexpr std::int32_t kOffset = 8;
  CANDOR_INLINE static Block32 read(const std::byte* p) {
    Block32 block;
    block.d = load_scalar<std::uint16_t>(p);
    for (int i = 0; i < 16; ++i) {
      const unsigned byte = load_scalar<std::uint8_t>(p + 2 + i);
      block.q[i] = static_cast<std::int8_t>(byte & 15);
      block.q[i + 16] = static_cast<std::int8_t>(byte >> 4);
    }
    return block;
  }
};

/// 256 values in kSubBlocks sub-blocks: (q - offset) · scale · d - min · dmin.
struct Block256 {
  std::int8_t q[256];
  std::int8_t scale[16];
  std::int8_t min[16];
  std::uint16_t d, dmin;  ///< f16
};

/// Scales and minimums of Q4_K and Q5_K: 6 bits each, packed in 12 bytes.
CANDOR_INLINE void read_packed_scales(const std::byte* p, Block256& block) {
  const auto byte = [&](int i) { return static_cast<unsigned>(load_scalar<std::uint8_t>(p + i)); };
  for (int j = 0; j < 4; ++j) {
    block.scale[j] = static_cast<std::int8_t>(byte(j) & 63);
    block.min[j] = static_cast<std::int8_t>(byte(j + 4) & 63);
    block.scale[j + 4] = static_cast<std::int8_t>((byte(j + 8) & 15) | byte(j) >> 6 << 4);
    block.min[j + 4] = static_cast<std::int8_t>(byte(j + 8) >> 4 | byte(j + 4) >> 6 << 4);
  }
}

struct Q4_K {
  static constexpr std::uint32_t kBytes = 144;
  static constexpr std::int32_t kOffset = 0;
  static constexpr int kSubBlocks = 8;
  static constexpr int kHighBits = 0;  ///< bits of q above the low four
  static constexpr bool kHasMin = true;
  CANDOR_INLINE static Block256 read(const std::byte* p) {
    Block256 block;
    block.d = load_scalar<std::uint16_t>(p);
    block.dmin = load_scalar<std::uint16_t>(p + 2);
    read_packed_scales(p + 4, block);
    for (int pair = 0; pair < 4; ++pair) {
      for (int i = 0; i < 32; ++i) {
        const unsigned byte = load_scalar<std::uint8_t>(p + 16 + pair * 32 + i);
        std::int8_t* q = block.q + pair * 64 + i;
        q[0] = static_cast<std::int8_t>(byte & 15);
        q[32] = static_cast<std::int8_t>(byte >> 4);
      }
    }
    return block;
  }
};

struct Q5_K {
  static constexpr std::uint32_t kBytes = 176;
  static constexpr std::int32_t kOffset = 0;
  static constexpr int kSubBlocks = 8;
  static constexpr int kHighBits = 1;
  static constexpr bool kHasMin = true;
  CANDOR_INLINE static Block256 read(const std::byte* p) {
    Block256 block;
    block.d = load_scalar<std::uint16_t>(p);
    block.dmin = load_scalar<std::uint16_t>(p + 2);
    read_packed_scales(p + 4, block);
    for (int pair = 0; pair < 4; ++pair) {
      for (int i = 0; i < 32; ++i) {
        const unsigned byte = load_scalar<std::uint8_t>(p + 48 + pair * 32 + i);
        const unsigned high = load_scalar<std::uint8_t>(p + 16 + i);
        std::int8_t* q = block.q + pair * 64 + i;
        q[0] = static_cast<std::int8_t>((byte & 15) | (high >> (2 * pair) & 1) << 4);
        q[32] = static_cast<std::int8_t>(byte >> 4 | (high >> (2 * pair + 1) & 1) << 4);
      }
    }
    return block;
  }
};

struct Q6_K {
  static constexpr std::uint32_t kBytes = 210;
  static constexpr std::int32_t kOffset = 32;
  static constexpr int kSubBlocks = 16;
  static constexpr int kHighBits = 2;
  static constexpr bool kHasMin = false;
  CANDOR_INLINE static Block256 read(const std::byte* p) {
    Block256 block;
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < 32; ++i) {
        const unsigned a = load_scalar<std::uint8_t>(p + 64 * half + i);
        const unsigned b = load_scalar<std::uint8_t>(p + 64 * half + 32 + i);
        const unsigned high = load_scalar<std::uint8_t>(p + 128 + 32 * half + i);
        std::int8_t* q = block.q + 128 * half + i;
        q[0] = static_cast<std::int8_t>((a & 15) | (high & 3) << 4);
        q[32] = static_cast<std::int8_t>((b & 15) | (high >> 2 & 3) << 4);
        q[64] = static_cast<std::int8_t>(a >> 4 | (high >> 4 & 3) << 4);
        q[96] = static_cast<std::int8_t>(b >> 4 | (high >> 6 & 3) << 4);
      }
    }
    __builtin_memcpy(block.scale, p + 192, 16);
    block.d = load_scalar<std::uint16_t>(p + 208);
    block.dmin = 0;
    return block;
  }
};

/// One f16 as a float.
CANDOR_INLINE float half_to_float(std::uint16_t half) {
  alignas(64) std::uint16_t halves[kLanes] = {half};
  alignas(64) float lanes[kLanes];
  store(lanes, load_f16(halves));
  return lanes[0];
}

/// The floats of one stored row of `cols` values.
template <typename Format>
CANDOR_INLINE void dequantize_blocks32(const std::byte* stored, std::uint32_t cols, float* out) {
  for (std::uint32_t k = 0; k < cols; k += 32, stored += Format::kBytes) {
    const Block32 block = Format::read(stored);
    const float d = half_to_float(block.d);
    for (int i = 0; i < 32; ++i) out[k + i] = static_cast<float>(block.q[i] - Format::kOffset) * d;
  }
}
template <typename Format>
CANDOR_INLINE void dequantize_blocks256(const std::byte* stored, std::uint32_t cols, float* out) {
  constexpr int kSize = 256 / Format::kSubBlocks;
  for (std::uint32_t k = 0; k < cols; k += 256, stored += Format::kBytes) {
    const Block256 block = Format::read(stored);
    const float d = half_to_float(block.d);
    const float dmin = half_to_float(block.dmin);
    for (int i = 0; i < 256; ++i) {
      const int sub = i / kSize;
      const float scaled = d * block.scale[sub] * static_cast<float>(block.q[i] - Format::kOffset);
      out[k + i] = Format::kHasMin ? scaled - dmin * block.min[sub] : scaled;
    }
  }
}

}  // namespace candor::cpu::CANDOR_ISA
