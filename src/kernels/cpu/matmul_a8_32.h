// Matrix products with blocks of 32 (Q8_0, Q4_0) and activations in a8_32.
//
// Contract: for each block b of 32, in rising order, acc = fma(Σ (q - offset) · a, dw[n][b] · da[m][b], acc): the sum
// of products exact in int32, converted to f32; the product of the two scales rounded to f32.
#pragma once

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/matmul_integer.h"

namespace candor::cpu::CANDOR_ISA {

/// acc[r] += sum[r] · (scales · a.scale[r]), fused.
template <int Rows>
CANDOR_INLINE void add_scaled_block(F32x16 (&acc)[Rows], const I32x16 (&sum)[Rows], const std::byte* scales,
                                    const ActivationBlock<Activations32, Rows>& a) {
  const F32x16 d = load_f16(scales);
  unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA { acc[r] = fma(to_f32(sum[r]), d * broadcast(a.scale[r]), acc[r]); });
}

/// Packed: 8 groups of 4 K, each 16 lanes × 4 int8, then 16 scales.
struct Q8_0Panel {
  using Layout = Activations32;
  static constexpr std::uint32_t kStoredBytes = Q8_0::kBytes;
  static constexpr int kStreams = 4;
  static constexpr std::uint32_t kScales = 512;
  static constexpr std::uint32_t kPanelBytes = kScales + 32;

  CANDOR_INLINE static void pack_block(const std::byte* stored, std::uint32_t lane, std::byte* packed) {
    const Block32 block = Q8_0::read(stored);
    for (std::uint32_t group = 0; group < 8; ++group)
      __builtin_memcpy(packed + group * 64 + lane * 4, block.q + group * 4, 4);
    __builtin_memcpy(packed + kScales + lane * 2, &block.d, 2);
  }

  template <int Panels, int Rows>
  CANDOR_INLINE static void add_block(F32x16 (&acc)[Panels][Rows], const std::byte* w, std::size_t panel_stride,
                                      const ActivationBlock<Activations32, Rows>& a) {
    I32x16 sum[Panels][Rows];
    unroll<Panels, Rows>([&](auto p, auto r) CANDOR_INLINE_LAMBDA { sum[p][r] = start_signed(*a.sums[r]); });
    unroll<8>([&](auto group) CANDOR_INLINE_LAMBDA {
      unroll<Panels>([&](auto p) CANDOR_INLINE_LAMBDA {
        const SignedWeights q = prepare_signed(load_i8(w + p * panel_stride + group * 64));
        unroll<Rows>(
            [&](auto r) CANDOR_INLINE_LAMBDA { sum[p][r] = dot_signed(sum[p][r], q, broadcast4(a.q[r] + group * 4)); });
      });
    });
    unroll<Panels>([&](auto p)
                       CANDOR_INLINE_LAMBDA { add_scaled_block(acc[p], sum[p], w + p * panel_stride + kScales, a); });
  }
};

/// Packed: 4 vectors of 64 bytes, whose low halves are one group of 4 K and whose high halves the next; then 16 scales.
struct Q4_0Panel {
  using Layout = Activations32;
  static constexpr std::uint32_t kStoredBytes = Q4_0::kBytes;
  static constexpr int kStreams = 4;
  static constexpr std::uint32_t kScales = 256;
  static constexpr std::uint32_t kPanelBytes = kScales + 32;
  static_assert(partial_groups(15) >= 8);

  CANDOR_INLINE static void pack_block(const std::byte* stored, std::uint32_t lane, std::byte* packed) {
    const Block32 block = Q4_0::read(stored);
    for (std::uint32_t pair = 0; pair < 4; ++pair) {
      const std::uint32_t word =
          load_scalar<std::uint32_t>(block.q + pair * 8) | load_scalar<std::uint32_t>(block.q + pair * 8 + 4) << 4;
      __builtin_memcpy(packed + pair * 64 + lane * 4, &word, sizeof word);
    }
    __builtin_memcpy(packed + kScales + lane * 2, &block.d, 2);
  }

  template <int Panels, int Rows>
  CANDOR_INLINE static void add_block(F32x16 (&acc)[Panels][Rows], const std::byte* w, std::size_t panel_stride,
                                      const ActivationBlock<Activations32, Rows>& a) {
    PartialDot partial[Panels][Rows];
    unroll<Panels, Rows>([&](auto p, auto r) CANDOR_INLINE_LAMBDA { partial[p][r] = partial_zero(); });
    unroll<4>([&](auto pair) CANDOR_INLINE_LAMBDA {
      unroll<Panels>([&](auto p) CANDOR_INLINE_LAMBDA {
        const I8x64 packed = load_i8(w + p * panel_stride + pair * 64);
        const I8x64 low = bit_field<0, 4>(packed);
        const I8x64 high = bit_field<4, 4>(packed);
        unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA {
          partial[p][r] = dot_unsigned(partial[p][r], low, broadcast4(a.q[r] + pair * 8));
          partial[p][r] = dot_unsigned(partial[p][r], high, broadcast4(a.q[r] + pair * 8 + 4));
        });
      });
    });
    unroll<Panels>([&](auto p) CANDOR_INLINE_LAMBDA {
      I32x16 sum[Rows];
      unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA {
        sum[r] = add_partial(broadcast(-Q4_0::kOffset * *a.sums[r]), partial[p][r]);
      });
      add_scaled_block(acc[p], sum, w + p * panel_stride + kScales, a);
    });
  }
};

extern template struct IntegerMatmul<Q8_0Panel>;
extern template struct IntegerMatmul<Q4_0Panel>;

}  // namespace candor::cpu::CANDOR_ISA
