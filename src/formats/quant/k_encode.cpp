// K-quant blocks from what the search found: scales and codes in their places.
#include <array>

#include "formats/quant/blocks.h"
#include "formats/quant/k_search.h"

namespace candor::quant {

// One of each compiled from k_search.cpp.
namespace portable {
KSearch search();
}
#if defined(__x86_64__)
namespace avx2 {
KSearch search();
}
#endif

std::span<const KSearch> k_searches() {
#if defined(__x86_64__)
  static const std::array<KSearch, 2> all{avx2::search(), portable::search()};
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  return std::span(all).subspan(has_avx2 ? 0 : 1);
#else
  static const std::array<KSearch, 1> all{portable::search()};
  return all;
#endif
}

namespace {

std::uint8_t to_byte(float value) {
  return static_cast<std::uint8_t>(value);
}

void pack_scale_min(const AffineBlock& block, std::uint8_t* packed) {
  for (std::size_t i = 0; i < 4; ++i) {
    const unsigned s = to_byte(block.scale[i]), s4 = to_byte(block.scale[i + 4]);
    const unsigned m = to_byte(block.min[i]), m4 = to_byte(block.min[i + 4]);
    packed[i] = static_cast<std::uint8_t>(s | s4 >> 4 << 6);
    packed[i + 4] = static_cast<std::uint8_t>(m | m4 >> 4 << 6);
    packed[i + 8] = static_cast<std::uint8_t>((s4 & 15) | (m4 & 15) << 4);
  }
}

void pack_low_nibbles(const AffineBlock& block, std::uint8_t* out) {
  for (std::size_t i = 0; i < kSuper / 2; ++i) {
    const std::size_t first = i / 32 * 64 + i % 32;
    out[i] =
        static_cast<std::uint8_t>((to_byte(block.codes[first]) & 15) | (to_byte(block.codes[first + 32]) & 15) << 4);
  }
}

constexpr std::array<float, kSuper> kEqualWeights = [] {
  std::array<float, kSuper> weights{};
  for (float& weight : weights) weight = 1.0f;
  return weights;
}();

}  // namespace

void encode_q4_k(const float* in, std::uint8_t* block) {
  encode_q4_k_weighted(in, kEqualWeights.data(), block);
}

void encode_q5_k(const float* in, std::uint8_t* block) {
  encode_q5_k_weighted(in, kEqualWeights.data(), block);
}

void encode_q4_k_weighted(const float* in, const float* weights, std::uint8_t* block) {
  const AffineBlock found = k_searches().front().affine(in, weights, 15.0f);
  store_half(block, found.d);
  store_half(block + 2, found.dmin);
  pack_scale_min(found, block + 4);
  pack_low_nibbles(found, block + 16);
}

void encode_q5_k_weighted(const float* in, const float* weights, std::uint8_t* block) {
  const AffineBlock found = k_searches().front().affine(in, weights, 31.0f);
  store_half(block, found.d);
  store_half(block + 2, found.dmin);
  pack_scale_min(found, block + 4);
  for (std::size_t i = 0; i < 32; ++i) {
    unsigned bits = 0;
    for (std::size_t sub = 0; sub < kAffineSubs; ++sub) bits |= (to_byte(found.codes[sub * 32 + i]) >> 4 & 1u) << sub;
    block[16 + i] = static_cast<std::uint8_t>(bits);
  }
  pack_low_nibbles(found, block + 48);
}

void encode_q6_k(const float* in, std::uint8_t* block) {
  const SymmetricBlock found = k_searches().front().symmetric(in);
  const auto code = [&](std::size_t i) { return static_cast<unsigned>(found.codes[i] - kLowSixCode); };
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t i = 0; i < 64; ++i) {
      const std::size_t first = half * 128 + i;
      block[half * 64 + i] = static_cast<std::uint8_t>((code(first) & 15) | (code(first + 64) & 15) << 4);
    }
    for (std::size_t i = 0; i < 32; ++i) {
      unsigned bits = 0;
      for (std::size_t pair = 0; pair < 4; ++pair) bits |= code(half * 128 + pair * 32 + i) >> 4 << 2 * pair;
      block[128 + half * 32 + i] = static_cast<std::uint8_t>(bits);
    }
  }
  for (std::size_t sub = 0; sub < kSymmetricSubs; ++sub)
    block[192 + sub] = static_cast<std::uint8_t>(static_cast<std::int8_t>(found.scale[sub]));
  store_half(block + 208, found.d);
}

}  // namespace candor::quant
