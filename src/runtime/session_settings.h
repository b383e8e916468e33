// The session's settings that the runtime obeys: `kvcache` and `decodeLoop`. Every key is known or refused, what is
// obeyed shows in the Program, and what an overlay asks for without effect is an error that says what would work. Not a
// goal: the dtypes of the steps; the compiler settles those.
#pragma once

#include <cstdint>

#include "backends/program.h"
#include "base/json.h"

namespace candor::plan {
struct Dataflow;
struct ExecutionPlan;
}  // namespace candor::plan

namespace candor::runtime {

inline constexpr std::uint32_t kDefaultPagePositions = 256;
inline constexpr std::uint32_t kPageGranularity = 16;  ///< a page holds a multiple of this many positions

struct KvSettings {
  CacheLayout layout = CacheLayout::contiguous;
  std::uint32_t page_positions = kDefaultPagePositions;  ///< pageSize, of layouts paged and sliding
  std::uint32_t window = 0;                              ///< windowSize, of layout sliding; 0: the attention steps' own
  std::uint32_t max_positions = 0;                       ///< maxSeqLen; 0: not stated
};

/// `session` is the plan's resolved session. Throws Error(plan) for an unknown key, a value out of range, rings too
/// small for what waits in them, or a setting that this backend has no use for, whoever made it.
[[nodiscard]] KvSettings kv_settings(const Json& session);
[[nodiscard]] DecodeLoop decode_loop_settings(const Json& session);

/// Throws Error(plan) for a setting of the overlay that would do nothing with this plan, saying what would work.
void check_session_overlay(const Json& overlay, const plan::ExecutionPlan& plan);

/// The positions that layout sliding must keep: windowSize, or the widest window of the attention steps. Throws
/// Error(plan), naming the step, if one sees more.
[[nodiscard]] std::uint32_t sliding_window(const KvSettings& settings, const plan::Dataflow& flow);

}  // namespace candor::runtime
