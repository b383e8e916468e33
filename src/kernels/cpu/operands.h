// How kernels look at their operands: typed row pointers, weight vectors in any plain encoding, loops over rows.
#pragma once

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/simd.h"

namespace candor::cpu::CANDOR_ISA {

template <typename T>
CANDOR_INLINE T* row(const Matrix& m, std::uint32_t r) {
  return reinterpret_cast<T*>(m.data + static_cast<std::uint64_t>(r) * m.row_bytes);
}

CANDOR_INLINE const Matrix& input(const KernelArguments& arguments, std::size_t i) {
  return arguments.inputs.data()[i];
}
CANDOR_INLINE const Weight& weight(const KernelArguments& arguments, std::size_t i) {
  return arguments.weights.data()[i];
}
CANDOR_INLINE double number(const Constants& constants, std::size_t i) {
  return constants.values.data()[constants.begin.data()[i]];
}
CANDOR_INLINE std::uint32_t integer(const Constants& constants, std::size_t i) {
  return static_cast<std::uint32_t>(number(constants, i));
}
CANDOR_INLINE float real(const Constants& constants, std::size_t i) {
  return static_cast<float>(number(constants, i));
}

// Plain element types: how 16 of them become floats.
struct F32Element {
  static constexpr std::uint32_t kBytes = 4;
  CANDOR_INLINE static F32x16 load16(const std::byte* p) { return load(reinterpret_cast<const float*>(p)); }
};
struct F16Element {
  static constexpr std::uint32_t kBytes = 2;
  CANDOR_INLINE static F32x16 load16(const std::byte* p) { return load_f16(p); }
};
struct Bf16Element {
  static constexpr std::uint32_t kBytes = 2;
  CANDOR_INLINE static F32x16 load16(const std::byte* p) { return load_bf16(p); }
};

/// The first `count` elements at p, the other lanes zero.
template <typename Element>
CANDOR_INLINE F32x16 load_elements(const std::byte* p, int count) {
  alignas(64) std::byte lanes[kLanes * Element::kBytes] = {};
  __builtin_memcpy(lanes, p, static_cast<std::size_t>(count) * Element::kBytes);
  return Element::load16(lanes);
}
template <typename Element>
CANDOR_INLINE F32x16 load_elements(const std::byte* p, std::integral_constant<int, kLanes>) {
  return Element::load16(p);
}

/// Calls f(Element{}) for a plain encoding: f32, f16 or bf16.
template <typename F>
CANDOR_INLINE void with_element(Encoding encoding, F&& f) {
  if (encoding == Encoding::f16) {
    f(F16Element{});
  } else if (encoding == Encoding::bf16) {
    f(Bf16Element{});
  } else {
    f(F32Element{});
  }
}

/// Calls f(integral_constant<int, n>) for n in [1, Max].
template <int Max, typename F>
CANDOR_INLINE void with_constant(int n, F&& f) {
  if constexpr (Max > 1) {
    if (n < Max) return with_constant<Max - 1>(n, f);
  }
  f(std::integral_constant<int, Max>{});
}

/// Panels of 16 outputs.
CANDOR_INLINE std::uint32_t panel_count(std::uint64_t outputs) {
  return static_cast<std::uint32_t>((outputs + kLanes - 1) / kLanes);
}

/// Elements a thread should get at once: less, and handing them out costs more than computing them.
inline constexpr std::uint32_t kChunkElements = 8192;

/// Calls f(row, worker) for each row, on the pool.
template <typename F>
CANDOR_INLINE void for_rows(ThreadPool& pool, std::uint32_t rows, std::uint32_t cols, const F& f) {
  const std::uint32_t group = cols >= kChunkElements ? 1 : kChunkElements / (cols == 0 ? 1 : cols);
  pool.parallel_for((rows + group - 1) / group, [&](std::uint32_t chunk, unsigned worker) {
    const std::uint32_t last = rows - chunk * group < group ? rows : (chunk + 1) * group;
    for (std::uint32_t r = chunk * group; r < last; ++r) f(r, worker);
  });
}

/// Calls f(row, first_column, columns) for pieces that cover the matrix, on the pool; first_column is a multiple of 16.
template <typename F>
CANDOR_INLINE void for_pieces(ThreadPool& pool, std::uint32_t rows, std::uint32_t cols, const F& f) {
  if (rows > 1 && cols <= kChunkElements) {
    for_rows(pool, rows, cols, [&](std::uint32_t r, unsigned) { f(r, 0u, cols); });
    return;
  }
  constexpr std::uint32_t kPiece = kChunkElements / 4;  // one wide row is still worth several threads
  const std::uint32_t pieces = (cols + kPiece - 1) / kPiece;
  pool.parallel_for(rows * pieces, [&](std::uint32_t chunk, unsigned) {
    const std::uint32_t first = chunk % pieces * kPiece;
    f(chunk / pieces, first, cols - first < kPiece ? cols - first : kPiece);
  });
}

/// dst[r][c] = f(src[r][c]) for 16 columns at a time.
template <typename F>
CANDOR_INLINE void map_elements(const KernelArguments& arguments, const F& f) {
  const Matrix& x = input(arguments, 0);
  const Matrix& dst = arguments.dst;
  for_pieces(*arguments.pool, x.rows, x.cols, [&](std::uint32_t r, std::uint32_t first, std::uint32_t count) {
    const float* in = row<const float>(x, r) + first;
    float* out = row<float>(dst, r) + first;
    for_each_vector(count, [&](std::uint32_t i, auto n)
                               CANDOR_INLINE_LAMBDA { store_first(out + i, f(load_first(in + i, n)), n); });
  });
}

/// dst[r][c] = f(src[r][c], second[r][c]).
template <typename F>
CANDOR_INLINE void map_elements2(const KernelArguments& arguments, const F& f) {
  const Matrix& x = input(arguments, 0);
  const Matrix& second = input(arguments, 1);
  const Matrix& dst = arguments.dst;
  for_pieces(*arguments.pool, x.rows, x.cols, [&](std::uint32_t r, std::uint32_t first, std::uint32_t count) {
    const float* a = row<const float>(x, r) + first;
    const float* b = row<const float>(second, r) + first;
    float* out = row<float>(dst, r) + first;
    for_each_vector(count, [&](std::uint32_t i, auto n) CANDOR_INLINE_LAMBDA {
      store_first(out + i, f(load_first(a + i, n), load_first(b + i, n)), n);
    });
  });
}

}  // namespace candor::cpu::CANDOR_ISA
