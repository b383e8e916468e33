// A batch as kernels see it: one block of 32-bit words. A run of several tokens has a block for each, one after the
// other, and a kernel sees the one at its dynamic offset.
//
//   words 0, 1    rows of tokens, rows of sequences
//   words 2, 3    where positions and types begin
//   words 4, 5    where each row's segment and the segments begin
//   a segment     16 words: first row, rows, first position, where its pages begin, where its history begins and how
//                 long it is, temperature, top-k, top-p, min-p, repetition penalty, seed (2), sequence (2), 0
#pragma once

#include <cstdint>
#include <span>

#include "backends/program.h"
#include "kernels/batch.h"

namespace candor::webgpu {

class BatchBlock {
 public:
  explicit BatchBlock(const ProgramLimits& limits);

  /// Bytes of a block, a multiple of 256.
  [[nodiscard]] std::uint64_t bytes() const { return std::uint64_t{words_} * 4; }
  /// Where a block has an external input, in bytes, a multiple of 256; for tokens, positions and types.
  [[nodiscard]] std::uint64_t offset_of(ExternalInput external) const;
  [[nodiscard]] std::uint64_t external_bytes() const { return std::uint64_t{rows_} * 4; }

  /// Fills `out`, which has bytes() / 4 words.
  void encode(const Batch& batch, std::span<std::uint32_t> out) const;

 private:
  std::uint32_t rows_, sequences_, pages_, context_, page_positions_;
  std::uint32_t tokens_at_, positions_at_, types_at_, row_segments_at_, segments_at_, pages_at_, history_at_, words_;
};

}  // namespace candor::webgpu
