// What one run computes: rows of tokens, whose sequences they belong to, and how each sequence's next token is drawn.
// The same for every backend.
#pragma once

#include <cstdint>
#include <span>

namespace candor {

/// What sampling writes when logits hold a NaN or have no finite maximum; never a token.
inline constexpr std::uint32_t kNoToken = 0xffff'ffff;

/// How a sequence's next token is drawn. Temperature 0 is greedy, and then only the penalty applies.
struct SamplerParameters {
  float temperature = 0;
  std::uint32_t top_k = 0;               ///< 0: off
  float top_p = 1;                       ///< 1: off
  float min_p = 0;                       ///< 0: off
  float repetition_penalty = 1;          ///< 1: off (CTRL, Keskar et al. 2019: logits > 0 divided, others multiplied)
  std::uint32_t repetition_window = 64;  ///< tokens looked back on
  std::uint64_t seed = 0;
  std::uint64_t sequence = 0;  ///< with seed and position, the counter of Philox 4×32-10
};

/// Rows of one batch that belong to one sequence, in order of position.
struct Segment {
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  std::uint32_t first_position = 0;         ///< position in its sequence of the first row
  const std::uint32_t* kv_pages = nullptr;  ///< the sequence's page table: position p lies in page kv_pages[p / page]
  const SamplerParameters* sampler = nullptr;
  std::span<const std::uint32_t> history = {};  ///< the sequence's tokens up to and including its last row
};

/// The rows being computed: `tokens`, `positions` and `types` have one entry a row; segments cover all rows, in order.
struct Batch {
  std::span<const std::uint32_t> tokens;
  std::span<const std::uint32_t> positions;
  std::span<const Segment> segments;
  std::span<const std::uint32_t> types = {};  ///< of tokens, where a model tells sorts of text apart; empty: all 0
};

}  // namespace candor
