// Perplexity of a text: how surprised a model is by it, in windows that overlap, so that a token is predicted from at
// least `window - stride` tokens before it once the text is that long (Press et al. 2020 call it a sliding window).
// Bits a byte compare models with different tokenizers; perplexity a token does not.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/engine.h"

namespace candor {

struct PerplexityOptions {
  std::uint32_t window = 0;  ///< tokens computed at once; 0: the context, but at most 512
  std::uint32_t stride = 0;  ///< tokens a window moves on; 0: half of it
  std::function<void(std::uint64_t scored, std::uint64_t total)> progress;
};

struct Perplexity {
  std::uint64_t tokens = 0;  ///< scored: all but the first
  std::uint64_t bytes = 0;   ///< of text in them
  double nats = 0;           ///< -Σ log p
  std::uint32_t window = 0, stride = 0;

  [[nodiscard]] double nats_per_token() const;
  [[nodiscard]] double per_token() const;  ///< perplexity: e to the mean of nats
  [[nodiscard]] double bits_per_byte() const;
};

/// The plan must select all rows. `bytes_of_first` are the text's bytes in the first token, which nothing predicts (0
/// for BOS); `bytes` are the text's. Throws Error(usage) for fewer than two tokens, a window outside the context or a
/// stride outside the window.
[[nodiscard]] Perplexity perplexity(Engine& engine, std::span<const std::uint32_t> tokens, std::uint64_t bytes,
                                    std::uint64_t bytes_of_first, const PerplexityOptions& options);

/// The same of a text, with BOS first where the tokenizer adds one.
[[nodiscard]] Perplexity perplexity_of_text(Engine& engine, std::string_view text, const PerplexityOptions& options);

}  // namespace candor
