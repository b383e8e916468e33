// What matrix products are measured against: multiply-adds with operands in registers, and memory read as the products
// read weights.
#include "kernels/cpu/simd.h"
#include "kernels/cpu/table.h"

namespace candor::cpu::CANDOR_ISA {

std::uint64_t run_fma_chains(std::uint32_t steps) {
  F32x16 chain[kTileRows];
  unroll<kTileRows>([&](auto i) CANDOR_INLINE_LAMBDA { chain[i] = broadcast(static_cast<float>(i)); });
  F32x16 factor = broadcast(0.5f);
  F32x16 term = broadcast(0.25f);
  for (std::uint32_t step = 0; step < steps; ++step) {
    keep_in_register(factor);
    keep_in_register(term);
    unroll<kTileRows>([&](auto i) CANDOR_INLINE_LAMBDA { chain[i] = fma(chain[i], factor, term); });
  }
  F32x16 sum = broadcast(0.0f);
  unroll<kTileRows>([&](auto i) CANDOR_INLINE_LAMBDA { sum = sum + chain[i]; });
  volatile float result = reduce_add(sum);  // so that the chains are computed
  (void)result;
  return std::uint64_t{steps} * kTileRows * kLanes * 2;
}

std::uint64_t run_dot_chains(std::uint32_t steps) {
  // As the products with 4-bit weights: as many groups of four as 16 bits hold are added before they widen.
  constexpr int kGroups = 8;
  alignas(64) std::uint8_t weights[kGroups * 64] = {};
  alignas(64) std::int8_t values[kIntegerTileRows * 4] = {};
  I32x16 sum[kIntegerTileRows];
  unroll<kIntegerTileRows>([&](auto r) CANDOR_INLINE_LAMBDA { sum[r] = broadcast(0); });
  for (std::uint32_t step = 0; step < steps; ++step) {
    __asm__ volatile("" : : "r"(weights), "r"(values) : "memory");  // read anew: otherwise a product is computed once
    PartialDot partial[kIntegerTileRows];
    unroll<kIntegerTileRows>([&](auto r) CANDOR_INLINE_LAMBDA { partial[r] = partial_zero(); });
    unroll<kGroups>([&](auto group) CANDOR_INLINE_LAMBDA {
      const I8x64 w = load_i8(weights + group * 64);
      unroll<kIntegerTileRows>(
          [&](auto r) CANDOR_INLINE_LAMBDA { partial[r] = dot_unsigned(partial[r], w, broadcast4(values + r * 4)); });
    });
    unroll<kIntegerTileRows>([&](auto r) CANDOR_INLINE_LAMBDA { sum[r] = add_partial(sum[r], partial[r]); });
  }
  I32x16 all = broadcast(0);
  unroll<kIntegerTileRows>([&](auto r) CANDOR_INLINE_LAMBDA { all = all + sum[r]; });
  volatile std::int32_t result = reduce_add(all);
  (void)result;
  return std::uint64_t{steps} * kGroups * kIntegerTileRows * kLanes * 4 * 2;
}

std::uint64_t read_streams(const std::byte* data, std::size_t stream_bytes, std::size_t piece) {
  // The distance that was best for the products (matmul_a8_256.h).
  constexpr std::size_t kAhead = 576;
  I8x64 sums[kReadStreams];
  unroll<kReadStreams>([&](auto s) CANDOR_INLINE_LAMBDA { sums[s] = load_i8(data + s * stream_bytes); });
  for (std::size_t i = 0; i < piece; i += 64)
    unroll<kReadStreams>([&](auto s) CANDOR_INLINE_LAMBDA {
      const std::byte* p = data + s * stream_bytes + i;
      __builtin_prefetch(p + kAhead);
      sums[s] = sums[s] | load_i8(p);
    });
  std::uint64_t words[8], all = 0;
  unroll<kReadStreams>([&](auto s) CANDOR_INLINE_LAMBDA {
    store(words, sums[s]);
    for (const std::uint64_t word : words) all |= word;
  });
  return all;
}

}  // namespace candor::cpu::CANDOR_ISA
