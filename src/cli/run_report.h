// What is said about a run after it: how fast, how much memory it read, and what would reproduce it.
#pragma once

#include <optional>
#include <string>

#include "engine/engine.h"

namespace candor::cli {

struct RunReport {
  const TextResult& result;
  Engine& engine;
  SamplerParameters sampler;
  double memory_bandwidth = 0;  ///< bytes a second that this machine reads; 0: not measured

  /// Tokens a second; nothing where none was computed.
  [[nodiscard]] std::optional<double> prefill_rate() const;
  [[nodiscard]] std::optional<double> decode_rate() const;
  /// Share of memory_bandwidth that decoding read.
  [[nodiscard]] std::optional<double> bandwidth_share() const;

  /// One line for a person.
  [[nodiscard]] std::string line() const;
  [[nodiscard]] Json to_json(const std::string& prompt) const;
};

/// Bytes of this machine's largest cache; 0 if it does not say.
[[nodiscard]] std::uint64_t cache_bytes();

/// "69 %"; where more was read than memory gives, because what a token reads stays in the cache, that is said instead.
[[nodiscard]] std::string describe_bandwidth(double share, std::uint64_t bytes_per_token);

/// "stopped by <|im_end|>", "cut at the limit of tokens", …
[[nodiscard]] std::string describe_stop(const TextResult& result);

}  // namespace candor::cli
