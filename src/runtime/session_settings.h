// The session's settings that the runtime obeys: `kvcache` and `decodeLoop`. Every key is known or refused; what is
// obeyed shows in the Program.
#pragma once

#include <cstdint>

#include "base/json.h"

namespace candor::runtime {

enum class KvLayout : std::uint8_t { contiguous, paged };

inline constexpr std::uint32_t kDefaultPagePositions = 256;
inline constexpr std::uint32_t kPageGranularity = 16;  ///< a page holds a multiple of this many positions

struct KvSettings {
  KvLayout layout = KvLayout::contiguous;
  std::uint32_t page_positions = kDefaultPagePositions;  ///< pageSize
  std::uint32_t max_positions = 0;                       ///< maxSeqLen; 0: not stated
};

struct DecodeLoopSettings {
  std::uint32_t batch_size = 1;         ///< tokens decoded between two looks at the stop conditions
  bool stop_check_per_token = true;     ///< stopCheckMode per-token; false: after each batch
  std::uint32_t readback_interval = 1;  ///< batches between two deliveries of tokens to the caller
};

/// `session` is the plan's resolved session. Throws Error(plan) for an unknown key or a value out of range.
[[nodiscard]] KvSettings kv_settings(const Json& session);
[[nodiscard]] DecodeLoopSettings decode_loop_settings(const Json& session);

}  // namespace candor::runtime
