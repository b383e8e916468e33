// Rotary position embedding (Su et al. 2021) of the first 2·F columns of each head, F the number of frequencies; the
// other columns are copied. For pair i at position p: angle = p · f[i] in f32, (c, s) = (cos, sin) of it rounded to f32
// and multiplied by attentionScale, and (x0, x1) becomes (x0·c - x1·s, x1·c + x0·s), products and sums rounded to f32.
// Pairs are columns (i, i + F) in style half, (2i, 2i + 1) in style interleaved.
#pragma once

#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::rope {
struct SineCosine {
  double sine, cosine;
};

/// sin and cos for 0 ≤ x < 2^24: the nearest multiple of π/2 taken off in three parts, Taylor series to the 17th power.
/// Plain operations in double: error below 1e-15.
CANDOR_INLINE SineCosine sine_cosine(double x) {
  constexpr double kShift = 0x1.8p52;
  const double quarter = (x * 0x1.45f306dc9c883p-1 + kShift) - kShift;
  const double r = ((x - quarter * 0x1.921fb54p+0) - quarter * 0x1.10b4610p-30) - quarter * 0x1.a62633145c06ep-58;
  const double z = r * r;
  const double s =
      r + r * z *
              (-1.0 / 6 +
               z * (1.0 / 120 +
                    z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800 +
                                                                z * (1.0 / 6227020800 + z * (-1.0 / 1307674368000 +
                                                                                             z / 355687428096000)))))));
  const double c =
      1 + z * (-1.0 / 2 +
               z * (1.0 / 24 +
                    z * (-1.0 / 720 +
                         z * (1.0 / 40320 + z * (-1.0 / 3628800 + z * (1.0 / 479001600 + z * (-1.0 / 87178291200 +
                                                                                              z / 20922789888000)))))));
  switch (static_cast<std::int64_t>(quarter) & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

struct Rotation {
  std::uint32_t head_dim;
  bool interleaved;
  const double* frequencies;
  std::uint32_t pairs;
  float scale;
};

inline Rotation rotation(const Constants& constants) {
  const std::uint32_t first = constants.begin.data()[2];
  return {integer(constants, 0), integer(constants, 1) == 1, constants.values.data() + first,
          constants.begin.data()[3] - first, real(constants, 3)};
}

/// Fills, for each rotated column, the factor of the column itself and that of its partner.
inline void fill_factors(const Rotation& rotation, std::uint32_t position, float* own, float* partner) {
  for (std::uint32_t i = 0; i < rotation.pairs; ++i) {
    const float angle = static_cast<float>(position) * static_cast<float>(rotation.frequencies[i]);
    const SineCosine value = sine_cosine(static_cast<double>(angle));
    const float c = static_cast<float>(value.cosine) * rotation.scale;
    const float s = static_cast<float>(value.sine) * rotation.scale;
    const std::uint32_t x0 = rotation.interleaved ? 2 * i : i;
    const std::uint32_t x1 = rotation.interleaved ? 2 * i + 1 : i + rotation.pairs;
    own[x0] = own[x1] = c;
    partner[x0] = -s;
    partner[x1] = s;
  }
}

inline void rotate_halves(const float* x, float* out, const Rotation& rotation, const float* own,
                          const float* partner) {
  const std::uint32_t half = rotation.pairs;
  for_each_vector(half, [&](std::uint32_t i, auto n) CANDOR_INLINE_LAMBDA {
    const F32x16 x0 = load_first(x + i, n);
    const F32x16 x1 = load_first(x + half + i, n);
    const F32x16 c = load_first(own + i, n);
    store_first(out + i, x0 * c + x1 * load_first(partner + i, n), n);
    store_first(out + half + i, x1 * c + x0 * load_first(partner + half + i, n), n);
  });
}

inline void rotate_neighbours(const float* x, float* out, const Rotation& rotation, const float* own,
                              const float* partner) {
  for_each_vector(2 * rotation.pairs, [&](std::uint32_t i, auto n) CANDOR_INLINE_LAMBDA {
    const F32x16 v = load_first(x + i, n);
    store_first(out + i, v * load_first(own + i, n) + swap_pairs(v) * load_first(partner + i, n), n);
  });
}

/// Floats of scratch memory a thread needs.
inline std::uint64_t thread_floats(const Rotation& rotation) {
  return (std::uint64_t{rotation.pairs} * 4 + kLanes - 1) / kLanes * kLanes;
}

inline std::uint64_t rotation_scratch(const KernelShapes& shapes, const Constants& constants) {
  return shapes.threads * thread_floats(rotation(constants)) * sizeof(float);
}

/// Rotates the heads of src into dst.
inline void rotate(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  const Rotation turn = rotation(arguments.constants);
  const std::uint32_t* positions = arguments.batch->positions.data();
  float* scratch = reinterpret_cast<float*>(arguments.scratch.data());
  for_rows(*arguments.pool, x.rows, x.cols, [&](std::uint32_t r, unsigned worker) {
    float* own = scratch + worker * thread_floats(turn);
    float* partner = own + 2 * turn.pairs;
    fill_factors(turn, positions[r], own, partner);
    const std::uint32_t rest = turn.head_dim - 2 * turn.pairs;
    for (std::uint32_t column = 0; column < x.cols; column += turn.head_dim) {
      const float* in = row<const float>(x, r) + column;
      float* out = row<float>(arguments.dst, r) + column;
      (turn.interleaved ? rotate_neighbours : rotate_halves)(in, out, turn, own, partner);
      __builtin_memmove(out + 2 * turn.pairs, in + 2 * turn.pairs, rest * sizeof(float));
    }
  });
}

}  // namespace candor::cpu::CANDOR_ISA::rope
