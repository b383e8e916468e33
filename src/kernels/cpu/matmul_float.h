// Matrix products with plain weights (f32, f16, bf16) and f32 activations.
//
// Contract: y[m][n] = fma(x[m][K-1], w[n][K-1], … fma(x[m][0], w[n][0], 0)): one chain of fused multiply-adds over K in
// rising order, in f32, whatever M, the tile or the thread.
//
// Layout ("panel16_<type>"): panels of 16 outputs, [K][16] elements each, a lane an output; the last panel is padded
// with zeros. Few rows stream four panels in lockstep (bound by memory); many rows take slices of K, converted to f32
// in the first cache, through register tiles of kTileRows × 16 (bound by multiply-adds).
#pragma once

#include "kernels/cpu/products.h"
#include "kernels/cpu/tile.h"

namespace candor::cpu::CANDOR_ISA {

inline constexpr std::uint32_t kGroupPanels = 8;   ///< panels a chunk of many rows computes: 128 outputs
inline constexpr std::uint32_t kBlockRows = 120;   ///< rows a chunk computes: its results stay in the second cache
inline constexpr std::uint32_t kSliceDepth = 256;  ///< K converted at once: 16 KiB of f32
static_assert(kBlockRows % kTileRows == 0 || kTileRows == 4);

template <typename Element>
struct FloatMatmul {
  static constexpr std::uint32_t kStepBytes = kLanes * Element::kBytes;

  static std::uint64_t packed_bytes(std::uint64_t rows, std::uint64_t cols) {
    return (rows + kLanes - 1) / kLanes * cols * kStepBytes;
  }

  static void pack(const std::byte* stored, std::uint64_t rows, std::uint64_t cols, std::byte* packed,
                   ThreadPool& pool);

  /// Scratch of one thread: a slice of a panel in f32, then the results of a chunk.
  static constexpr std::uint64_t kSliceBytes = kSliceDepth * kLanes * sizeof(float);
  static constexpr std::uint64_t kThreadBytes = kSliceBytes + kGroupPanels * kBlockRows * kLanes * sizeof(float);

  static std::uint64_t scratch_bytes(const KernelShapes& shapes, const Constants&) {
    return shapes.rows <= kTileRows ? 0 : shapes.threads * kThreadBytes;
  }

  static void run(const KernelArguments& arguments);

 private:
  /// Panels in lockstep: as many streams as accumulators allow, four at most.
  static constexpr int lockstep(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }

  template <int Rows>
  static void few_rows(const KernelArguments& arguments) {
    constexpr std::uint32_t kChunkPanels = 4;
    arguments.pool->parallel_for(product_chunks(arguments, kChunkPanels), [&](std::uint32_t index, unsigned) {
      const ProductChunk chunk = product_chunk(arguments, index, kChunkPanels);
      const Matrix& x = input(arguments, 0);
      std::uint32_t panel = chunk.first;
      constexpr std::uint32_t kStep = lockstep(Rows);
      for (; panel + kStep <= chunk.last; panel += kStep) stream_panels<Rows, kStep>(x, chunk.product, panel);
      for (; panel < chunk.last; ++panel) stream_panels<Rows, 1>(x, chunk.product, panel);
    });
  }

  template <int Rows, int Panels>
  static void stream_panels(const Matrix& x, const Product& product, std::uint32_t panel) {
    const std::size_t panel_bytes = std::size_t{x.cols} * kStepBytes;
    F32x16 acc[Rows][Panels];
    unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA {
      unroll<Panels>([&](auto p) CANDOR_INLINE_LAMBDA { acc[r][p] = broadcast(0.0f); });
    });
    multiply_accumulate<Element, Rows, Panels>(acc, row<const float>(x, 0), x.row_bytes / sizeof(float),
                                               product.weight + panel * panel_bytes, panel_bytes, x.cols);
    unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA {
      unroll<Panels>([&](auto p) CANDOR_INLINE_LAMBDA {
        store_outputs(product, r, panel + static_cast<std::uint32_t>(p.value), acc[r][p]);
      });
    });
  }

  static void many_rows(const KernelArguments& arguments) {
    const std::uint32_t rows = input(arguments, 0).rows;
    const std::uint32_t groups = product_chunks(arguments, kGroupPanels);
    const std::uint32_t blocks = (rows + kBlockRows - 1) / kBlockRows;
    arguments.pool->parallel_for(groups * blocks, [&](std::uint32_t chunk, unsigned worker) {
      std::byte* scratch = arguments.scratch.data() + worker * kThreadBytes;
      multiply_block(input(arguments, 0), chunk / groups * kBlockRows,
                     product_chunk(arguments, chunk % groups, kGroupPanels), reinterpret_cast<float*>(scratch),
                     reinterpret_cast<float*>(scratch + kSliceBytes));
    });
  }

  /// Rows first_row … of kBlockRows and the chunk's panels. c is [panel][row][16].
  static void multiply_block(const Matrix& x, std::uint32_t first_row, const ProductChunk& chunk, float* slice,
                             float* c) {
    const std::uint32_t rows = x.rows - first_row < kBlockRows ? x.rows - first_row : kBlockRows;
    const std::uint32_t panels = chunk.last - chunk.first;
    const std::byte* w = chunk.product.weight + std::uint64_t{chunk.first} * x.cols * kStepBytes;
    for (std::uint32_t k = 0; k == 0 || k < x.cols; k += kSliceDepth) {
      const std::uint32_t depth = x.cols - k < kSliceDepth ? x.cols - k : kSliceDepth;
      for (std::uint32_t panel = 0; panel < panels; ++panel) {
        const std::byte* source = w + (std::uint64_t{panel} * x.cols + k) * kStepBytes;
        const float* panel_slice = reinterpret_cast<const float*>(source);
        if constexpr (Element::kBytes != 4) {
          for (std::uint32_t i = 0; i < depth; ++i)
            store(slice + i * kLanes, Element::load16(source + std::uint64_t{i} * kStepBytes));
          panel_slice = slice;
        }
        multiply_rows(c + panel * rows * kLanes, k == 0, x, first_row, rows, k, panel_slice, depth);
      }
    }
    for (std::uint32_t r = 0; r < rows; ++r)
      for (std::uint32_t panel = 0; panel < panels; ++panel)
        store_outputs(chunk.product, first_row + r, chunk.first + panel, load(c + (panel * rows + r) * kLanes));
  }

  static void multiply_rows(float* c, bool first, const Matrix& x, std::uint32_t first_row, std::uint32_t rows,
                            std::uint32_t k, const float* w, std::uint32_t depth) {
    const std::size_t stride = x.row_bytes / sizeof(float);
    std::uint32_t r = 0;
    for (; r + kTileRows <= rows; r += kTileRows)
      multiply_tile<kTileRows>(c + r * kLanes, kLanes, first, row<const float>(x, first_row + r) + k, stride, w, depth);
    if (r == rows) return;
    with_constant<kTileRows - 1>(static_cast<int>(rows - r), [&](auto rest) {
      multiply_tile<rest>(c + r * kLanes, kLanes, first, row<const float>(x, first_row + r) + k, stride, w, depth);
    });
  }
};

// Not inline, and compiled once for each type, where its matrix product is: other kernels use that code.
template <typename Element>
void FloatMatmul<Element>::pack(const std::byte* stored, std::uint64_t rows, std::uint64_t cols, std::byte* packed,
                                ThreadPool& pool) {
  pool.parallel_for(panel_count(rows), [&](std::uint32_t panel, unsigned) {
    std::byte* out = packed + panel * cols * kStepBytes;
    const std::uint64_t first = std::uint64_t{panel} * kLanes;
    const std::uint64_t lanes = rows - first < kLanes ? rows - first : kLanes;
    if (lanes < kLanes) __builtin_memset(out, 0, cols * kStepBytes);
    const std::byte* source = stored + first * cols * Element::kBytes;
    for (std::uint64_t k = 0; k < cols; ++k)
      for (std::uint64_t lane = 0; lane < lanes; ++lane)
        __builtin_memcpy(out + k * kStepBytes + lane * Element::kBytes, source + (lane * cols + k) * Element::kBytes,
                         Element::kBytes);
  });
}

template <typename Element>
void FloatMatmul<Element>::run(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  if (x.rows == 0) return;
  if (x.rows <= static_cast<std::uint32_t>(kTileRows)) {
    with_constant<kTileRows>(static_cast<int>(x.rows), [&](auto rows) { few_rows<rows>(arguments); });
  } else {
    many_rows(arguments);
  }
}

extern template struct FloatMatmul<F32Element>;
extern template struct FloatMatmul<F16Element>;
extern template struct FloatMatmul<Bf16Element>;

}  // namespace candor::cpu::CANDOR_ISA
