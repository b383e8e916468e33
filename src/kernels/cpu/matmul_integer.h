// What the matrix products with quantized weights share: the walk over panels, rows and slices of K.
//
// A Format says how a weight block of kBlock × 16 outputs is laid out and multiplied:
//   Layout                            of the activations: Activations32 or Activations256
//   kStoredBytes, kPanelBytes         of a block as stored (one output) and packed (16 outputs)
//   kStreams                          panels that one row streams in lockstep
//   pack_block(stored, lane, packed)  puts one output's block into a zeroed packed one
//   add_block<Panels, Rows>(acc, block, panel_stride, a)
//                                     continues acc[panel][row] by the block's products, panels in lockstep
// Few rows stream panels in lockstep (bound by memory); many rows take slices of K that stay in the first cache.
#pragma once

#include "kernels/cpu/activations.h"
#include "kernels/cpu/products.h"

namespace candor::cpu::CANDOR_ISA {

/// The activations of `Rows` rows at one block.
template <typename Layout, int Rows>
struct ActivationBlock {
  const std::int8_t* q[Rows];
  float scale[Rows];
  const typename Layout::Sum* sums[Rows];
};

template <typename Format>
struct IntegerMatmul {
  using Layout = typename Format::Layout;
  static constexpr std::uint32_t kBlock = Layout::kBlock;
  static constexpr std::uint32_t kGroupPanels = 8;             ///< panels a chunk of many rows computes
  static constexpr std::uint32_t kBlockRows = 120;             ///< rows of such a chunk
  static constexpr std::uint32_t kSliceBlocks = 512 / kBlock;  ///< blocks of K in a slice
  static constexpr std::uint64_t kThreadBytes = kGroupPanels * kBlockRows * kLanes * sizeof(float);

  static std::uint64_t packed_bytes(std::uint64_t rows, std::uint64_t cols) {
    return (rows + kLanes - 1) / kLanes * (cols / kBlock) * Format::kPanelBytes;
  }

  static void pack(const std::byte* stored, std::uint64_t rows, std::uint64_t cols, std::byte* packed,
                   ThreadPool& pool);

  static std::uint64_t scratch_bytes(const KernelShapes& shapes, const Constants&) {
    return shapes.rows <= kIntegerTileRows ? 0 : shapes.threads * kThreadBytes;
  }

  static void run(const KernelArguments& arguments);

 private:
  static constexpr int lockstep(int rows) { return rows == 1 ? Format::kStreams : rows == 2 ? 2 : 1; }

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
    const std::uint32_t blocks = x.cols / kBlock;
    const std::size_t panel_bytes = std::size_t{blocks} * Format::kPanelBytes;
    const std::byte* w = product.weight + panel * panel_bytes;
    F32x16 acc[Panels][Rows];
    unroll<Panels, Rows>([&](auto p, auto r) CANDOR_INLINE_LAMBDA { acc[p][r] = broadcast(0.0f); });
    for (std::uint32_t block = 0; block < blocks; ++block, w += Format::kPanelBytes) {
      const auto a = activations<Rows>(x, 0, block);
      Format::template add_block<Panels, Rows>(acc, w, panel_bytes, a);
    }
    unroll<Panels>([&](auto p) CANDOR_INLINE_LAMBDA {
      unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA {
        store_outputs(product, r, panel + static_cast<std::uint32_t>(p.value), acc[p][r]);
      });
    });
  }

  template <int Rows>
  CANDOR_INLINE static ActivationBlock<Layout, Rows> activations(const Matrix& x, std::uint32_t first_row,
                                                                 std::uint32_t block) {
    ActivationBlock<Layout, Rows> a;
    unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA {
      const std::int8_t* values = row<const std::int8_t>(x, first_row + r);
      a.q[r] = values + std::size_t{block} * kBlock;
      a.scale[r] = reinterpret_cast<const float*>(values + scales_offset<Layout>(x.cols))[block];
      a.sums[r] = reinterpret_cast<const typename Layout::Sum*>(values + sums_offset<Layout>(x.cols)) +
                  std::size_t{block} * (kBlock / Layout::kSumSpan);
    });
    return a;
  }

  static void many_rows(const KernelArguments& arguments) {
    const std::uint32_t rows = input(arguments, 0).rows;
    const std::uint32_t groups = product_chunks(arguments, kGroupPanels);
    const std::uint32_t row_blocks = (rows + kBlockRows - 1) / kBlockRows;
    arguments.pool->parallel_for(groups * row_blocks, [&](std::uint32_t chunk, unsigned worker) {
      multiply_block(input(arguments, 0), chunk / groups * kBlockRows,
                     product_chunk(arguments, chunk % groups, kGroupPanels),
                     reinterpret_cast<float*>(arguments.scratch.data() + worker * kThreadBytes));
    });
  }

  /// Rows first_row … of kBlockRows and the chunk's panels. c is [panel][row][16].
  static void multiply_block(const Matrix& x, std::uint32_t first_row, const ProductChunk& chunk, float* c) {
    const std::uint32_t rows = x.rows - first_row < kBlockRows ? x.rows - first_row : kBlockRows;
    const std::uint32_t panels = chunk.last - chunk.first;
    const std::uint32_t blocks = x.cols / kBlock;
    for (std::uint32_t block = 0; block == 0 || block < blocks; block += kSliceBlocks) {
      const std::uint32_t depth = blocks - block < kSliceBlocks ? blocks - block : kSliceBlocks;
      for (std::uint32_t panel = 0; panel < panels; ++panel) {
        const std::byte* w =
            chunk.product.weight + (std::uint64_t{chunk.first + panel} * blocks + block) * Format::kPanelBytes;
        multiply_rows(c + panel * rows * kLanes, x, first_row, rows, block, depth, w);
      }
    }
    for (std::uint32_t r = 0; r < rows; ++r)
      for (std::uint32_t panel = 0; panel < panels; ++panel)
        store_outputs(chunk.product, first_row + r, chunk.first + panel, load(c + (panel * rows + r) * kLanes));
  }

  static void multiply_rows(float* c, const Matrix& x, std::uint32_t first_row, std::uint32_t rows, std::uint32_t block,
                            std::uint32_t depth, const std::byte* w) {
    std::uint32_t r = 0;
    for (; r + kIntegerTileRows <= rows; r += kIntegerTileRows)
      multiply_tile<kIntegerTileRows>(c + r * kLanes, x, first_row + r, block, depth, w);
    if (r == rows) return;
    with_constant<kIntegerTileRows - 1>(static_cast<int>(rows - r), [&](auto rest) {
      multiply_tile<rest>(c + r * kLanes, x, first_row + r, block, depth, w);
    });
  }

  /// c[row][0 … 15], continued over `depth` blocks; from zero if `block` is the first.
  template <int Rows>
  static void multiply_tile(float* c, const Matrix& x, std::uint32_t first_row, std::uint32_t block,
                            std::uint32_t depth, const std::byte* w) {
    F32x16 acc[1][Rows];
    unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA { acc[0][r] = block == 0 ? broadcast(0.0f) : load(c + r * kLanes); });
    for (std::uint32_t i = 0; i < depth; ++i)
      Format::template add_block<1, Rows>(acc, w + i * Format::kPanelBytes, 0,
                                          activations<Rows>(x, first_row, block + i));
    unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA { store(c + r * kLanes, acc[0][r]); });
  }
};

// Not inline, and compiled once for each format, where its matrix product is: other kernels use that code.
template <typename Format>
void IntegerMatmul<Format>::pack(const std::byte* stored, std::uint64_t rows, std::uint64_t cols, std::byte* packed,
                                 ThreadPool& pool) {
  const std::uint64_t blocks = cols / kBlock;
  pool.parallel_for(panel_count(rows), [&](std::uint32_t panel, unsigned) {
    const std::uint64_t first = std::uint64_t{panel} * kLanes;
    const std::uint64_t lanes = rows - first < kLanes ? rows - first : kLanes;
    std::byte* out = packed + panel * blocks * Format::kPanelBytes;
    __builtin_memset(out, 0, blocks * Format::kPanelBytes);
    for (std::uint64_t lane = 0; lane < lanes; ++lane)
      for (std::uint64_t block = 0; block < blocks; ++block)
        Format::pack_block(stored + ((first + lane) * blocks + block) * Format::kStoredBytes,
                           static_cast<std::uint32_t>(lane), out + block * Format::kPanelBytes);
  });
}

template <typename Format>
void IntegerMatmul<Format>::run(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  if (x.rows == 0) return;
  if (x.rows <= static_cast<std::uint32_t>(kIntegerTileRows)) {
    with_constant<kIntegerTileRows>(static_cast<int>(x.rows), [&](auto rows) { few_rows<rows>(arguments); });
  } else {
    many_rows(arguments);
  }
}

}  // namespace candor::cpu::CANDOR_ISA
