// Matrix products with super-blocks of 256 (Q4_K, Q5_K, Q6_K) and activations in a8_256.
//
// Contract: for each super-block b, in rising order,
//   acc = fma(Σ_j scale_j · Σ_k (q - offset) · a, d[n][b] · da[m][b], acc), and where the format has minimums
//   acc = fma(-Σ_j min_j · Σ_k a, dmin[n][b] · da[m][b], acc):
// both sums exact in int32, then converted to f32; products of the two scales rounded to f32.
//
// Packed: for each 64 of K ("unit") 8 vectors of low nibbles (group g of 4 K in vector g/2, half g%2), then kHighBits
// vectors for every 8 groups of high bits, then int8 scales of two sub-blocks side by side, lane by lane, then
// corrections the same way; after the four units 16 d and, with minimums, 16 dmin.
#pragma once

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/matmul_integer.h"

namespace candor::cpu::CANDOR_ISA {

template <typename Stored>
struct SuperBlockPanel {
  using Layout = Activations256;
  static constexpr int kUnits = 4;
  static constexpr int kGroups = 16;                              ///< groups of 4 K in a unit
  static constexpr int kSubBlocks = Stored::kSubBlocks / kUnits;  ///< in a unit
  static constexpr int kSubGroups = kGroups / kSubBlocks;         ///< groups in a sub-block
  static constexpr int kHighVectorGroups = 8 / (Stored::kHighBits == 0 ? 1 : Stored::kHighBits);
  static constexpr std::uint32_t kHigh = 512;
  static constexpr std::uint32_t kScales = kHigh + 128 * Stored::kHighBits;
  static constexpr std::uint32_t kMins = kScales + kSubBlocks * kLanes;
  static constexpr std::uint32_t kUnitBytes = kMins + (Stored::kHasMin ? kSubBlocks * kLanes : 0);
  static constexpr std::uint32_t kFactors = kUnits * kUnitBytes;
  static constexpr std::uint32_t kStoredBytes = Stored::kBytes;
  /// Putting high bits in place takes the registers that two more panels' sums would.
  static constexpr int kStreams = Stored::kHighBits == 0 ? 4 : 2;
  static constexpr std::uint32_t kPanelBytes = kFactors + (Stored::kHasMin ? 64 : 32);
  /// Groups whose products may be added before they are scaled.
  static constexpr int kMaxWeight = (16 << Stored::kHighBits) - 1;
  static constexpr int kRun = partial_groups(kMaxWeight) < kSubGroups ? partial_groups(kMaxWeight) : kSubGroups;
  static_assert(kSubGroups % kRun == 0);

  CANDOR_INLINE static void pack_block(const std::byte* stored, std::uint32_t lane, std::byte* packed) {
    const Block256 block = Stored::read(stored);
    // A group's four values are one word, so that four bytes are put together at once: the time to load a model.
    const auto group_bits = [&](int unit, int group, int first, std::uint32_t mask) CANDOR_INLINE_LAMBDA {
      return load_scalar<std::uint32_t>(block.q + unit * 64 + group * 4) >> first & mask * 0x01010101u;
    };
    const auto put = [](std::byte* at, std::uint32_t word)
                         CANDOR_INLINE_LAMBDA { __builtin_memcpy(at, &word, sizeof word); };
    for (int u = 0; u < kUnits; ++u) {
      std::byte* unit = packed + u * kUnitBytes + lane * 4;
      for (int group = 0; group < kGroups; group += 2)
        put(unit + group / 2 * 64, group_bits(u, group, 0, 15) | group_bits(u, group + 1, 0, 15) << 4);
      if constexpr (Stored::kHighBits > 0) {
        constexpr std::uint32_t kMask = (1u << Stored::kHighBits) - 1;
        for (int first = 0; first < kGroups; first += kHighVectorGroups) {
          std::uint32_t word = 0;
          for (int i = 0; i < kHighVectorGroups; ++i)
            word |= group_bits(u, first + i, 4, kMask) << (i * Stored::kHighBits);
          put(unit + kHigh + first / kHighVectorGroups * 64, word);
        }
      }
    }
    for (int sub = 0; sub < Stored::kSubBlocks; ++sub) {
      const int in_unit = sub % kSubBlocks;
      std::byte* unit = packed + sub / kSubBlocks * kUnitBytes + in_unit / 2 * 32 + lane * 2 + in_unit % 2;
      unit[kScales] = static_cast<std::byte>(block.scale[sub]);
      if constexpr (Stored::kHasMin) unit[kMins] = static_cast<std::byte>(block.min[sub]);
    }
    __builtin_memcpy(packed + kFactors + lane * 2, &block.d, 2);
    if constexpr (Stored::kHasMin) __builtin_memcpy(packed + kFactors + 32 + lane * 2, &block.dmin, 2);
  }

  /// Group `Group`'s weights of a unit, 0 … kMaxWeight.
  template <int Group>
  CANDOR_INLINE static I8x64 weights(const std::byte* unit) {
    const I8x64 low = bit_field<Group % 2 * 4, 4>(load_i8(unit + Group / 2 * 64));
    if constexpr (Stored::kHighBits == 0) {
      return low;
    } else {
      constexpr int kFirst = Group % kHighVectorGroups * Stored::kHighBits;
      return low | bit_field<kFirst, Stored::kHighBits, 4>(load_i8(unit + kHigh + Group / kHighVectorGroups * 64));
    }
  }

  template <int Panels, int Rows>
  CANDOR_INLINE static void add_block(F32x16 (&acc)[Panels][Rows], const std::byte* w, std::size_t panel_stride,
                                      const ActivationBlock<Activations256, Rows>& a) {
    I32x16 sum[Panels][Rows];          // Σ scale · Σ q · a
    I32x16 corrections[Panels][Rows];  // Σ min · Σ a, or Σ scale · Σ a where the format has an offset instead
    unroll<Panels, Rows>([&](auto p, auto r) CANDOR_INLINE_LAMBDA {
      sum[p][r] = broadcast(std::int32_t{0});
      corrections[p][r] = broadcast(std::int32_t{0});
    });
    for (int unit = 0; unit < kUnits; ++unit)
      add_unit<Panels, Rows>(sum, corrections, w + unit * kUnitBytes, panel_stride, a, unit);
    unroll<Panels>([&](auto p) CANDOR_INLINE_LAMBDA {
      const std::byte* factors = w + p * panel_stride + kFactors;
      const F32x16 d = load_f16(factors);
      unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA {
        if constexpr (!Stored::kHasMin) {
          static_assert(Stored::kOffset == 32);
          sum[p][r] = sum[p][r] - shift_left<5>(corrections[p][r]);
        }
        acc[p][r] = fma(to_f32(sum[p][r]), d * broadcast(a.scale[r]), acc[p][r]);
      });
      if constexpr (Stored::kHasMin) {
        const F32x16 dmin = load_f16(factors + 32);
        unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA {
          const F32x16 negative = to_f32(broadcast(std::int32_t{0}) - corrections[p][r]);
          acc[p][r] = fma(negative, dmin * broadcast(a.scale[r]), acc[p][r]);
        });
      }
    });
  }

 private:
  /// The processor's own prefetching falls behind four streams: nine cache lines ahead was best with every format.
  /// What is past the weight's end is not read.
  template <int Group>
  CANDOR_INLINE static void prefetch(const std::byte* unit) {
    if constexpr (Group % 2 == 0) __builtin_prefetch(unit + 576 + Group / 2 * 64);
  }

  template <int Panels, int Rows>
  CANDOR_INLINE static void add_unit(I32x16 (&sum)[Panels][Rows], I32x16 (&corrections)[Panels][Rows],
                                     const std::byte* w, std::size_t panel_stride,
                                     const ActivationBlock<Activations256, Rows>& a, int unit) {
    unroll<kSubBlocks / 2>([&](auto pair) CANDOR_INLINE_LAMBDA {
      add_sub_block<Panels, Rows, 2 * pair>(sum, w, panel_stride, a, unit);
      add_sub_block<Panels, Rows, 2 * pair + 1>(sum, w, panel_stride, a, unit);
      unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA {
        std::int16_t sums[2];  // of the activations of the two sub-blocks
        sub_block_sums(a.sums[r] + unit * 4, pair, sums);
        unroll<Panels>([&](auto p) CANDOR_INLINE_LAMBDA {
          const std::byte* factors = w + p * panel_stride + (Stored::kHasMin ? kMins : kScales) + pair * 32;
          corrections[p][r] = madd(corrections[p][r], load_i8_as_i16(factors), broadcast_pair(sums));
        });
      });
    });
  }

  CANDOR_INLINE static void sub_block_sums(const std::int16_t* unit_sums, int pair, std::int16_t (&sums)[2]) {
    if constexpr (kSubBlocks == 4) {
      sums[0] = unit_sums[2 * pair];
      sums[1] = unit_sums[2 * pair + 1];
    } else {
      sums[0] = static_cast<std::int16_t>(unit_sums[0] + unit_sums[1]);
      sums[1] = static_cast<std::int16_t>(unit_sums[2] + unit_sums[3]);
    }
  }

  template <int Panels, int Rows, int SubBlock>
  CANDOR_INLINE static void add_sub_block(I32x16 (&sum)[Panels][Rows], const std::byte* w, std::size_t panel_stride,
                                          const ActivationBlock<Activations256, Rows>& a, int unit) {
    unroll<kSubGroups / kRun>([&](auto run) CANDOR_INLINE_LAMBDA {
      PartialDot partial[Panels][Rows];
      unroll<Panels, Rows>([&](auto p, auto r) CANDOR_INLINE_LAMBDA { partial[p][r] = partial_zero(); });
      unroll<kRun>([&](auto i) CANDOR_INLINE_LAMBDA {
        constexpr int kGroup = SubBlock * kSubGroups + run * kRun + i;
        unroll<Panels>([&](auto p) CANDOR_INLINE_LAMBDA {
          if constexpr (Panels > 1) prefetch<kGroup>(w + p * panel_stride);
          const I8x64 q = weights<kGroup>(w + p * panel_stride);
          unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA {
            partial[p][r] = dot_unsigned(partial[p][r], q, broadcast4(a.q[r] + unit * 64 + kGroup * 4));
          });
        });
      });
      unroll<Panels>([&](auto p) CANDOR_INLINE_LAMBDA {
        const I16x32 scales = load_i8_as_i16(w + p * panel_stride + kScales + SubBlock / 2 * 32);
        const LaneScale scale = lane_scale<SubBlock % 2>(scales);
        unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA { sum[p][r] = add_scaled(sum[p][r], partial[p][r], scale); });
      });
    });
  }
};

extern template struct IntegerMatmul<SuperBlockPanel<Q4_K>>;
extern template struct IntegerMatmul<SuperBlockPanel<Q5_K>>;
extern template struct IntegerMatmul<SuperBlockPanel<Q6_K>>;

}  // namespace candor::cpu::CANDOR_ISA
