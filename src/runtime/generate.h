// The decode loop: prefill a prompt, then decode until a stop token, a limit, or the caller says so. It obeys the
// Program's decodeLoop settings: when stop conditions are looked at, and when tokens reach the caller.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/session.h"

namespace candor::runtime {

enum class StopReason : std::uint8_t { stop_token, caller, length, context, cancelled };

[[nodiscard]] std::string_view to_string(StopReason reason);

struct GenerationRequest {
  std::span<const std::uint32_t> prompt;       ///< appended to what the sequence holds
  std::uint32_t max_tokens = 0;                ///< 0: until the context is full
  std::span<const std::uint32_t> stop_tokens;  ///< end the generation; not delivered
  std::function<bool()> cancelled;             ///< asked between tokens and prefill chunks
};

struct GenerationResult {
  std::vector<std::uint32_t> tokens;  ///< generated, the stop token not included
  StopReason reason = StopReason::length;
  std::uint32_t stop_token = 0;  ///< for StopReason::stop_token
  std::uint32_t prompt_tokens = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;  ///< for the tokens after the first, which prefill yields
};

/// Calls `on_token` with each token in order; it returns false to stop (a stop string was completed).
[[nodiscard]] GenerationResult generate(Session& session, Sequence& sequence, const GenerationRequest& request,
                                        const std::function<bool(std::uint32_t)>& on_token);

}  // namespace candor::runtime
