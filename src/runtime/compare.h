// Two models on the same tokens, step by step: which step's values differ first, and by how much. Goals: an answer to
// "where does it begin" for two plans, two encodings of one model, or two instruction sets. Steps are matched by what
// they are for, (layer, op, how many such before it), because ids count on where another plan has a step more. Not a
// goal: judging which of the two is right.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/session.h"

namespace candor::runtime {

/// One step that both plans have, over all tokens.
struct StepDifference {
  std::string step_a, step_b;  ///< ids
  std::string op, slot;        ///< slot as A's plan names it
  std::int32_t layer = -1;     ///< -1 outside the layers
  std::uint32_t cols = 0;
  std::uint64_t values = 0;                ///< compared
  std::uint64_t different = 0;             ///< not the same number; NaN is the same as NaN
  double scale = 0;                        ///< the largest |a|
  double largest = 0;                      ///< the largest |a - b|; infinite where only one is finite
  double squares = 0;                      ///< the sum of (a - b)²
  std::optional<std::uint64_t> first_row;  ///< the first row with a difference, counted over all tokens

  [[nodiscard]] double relative() const;  ///< largest / scale; infinite if only `scale` is 0
  [[nodiscard]] double rms() const;       ///< root of the mean of (a - b)²
};

/// A step that only one of the plans has, or whose shape differs.
struct UnmatchedStep {
  bool in_a = false;
  std::string step;
  std::int32_t layer = -1;
  std::string reason;  ///< "only in A", "256 columns in A, 512 in B"
};

struct Comparison {
  std::vector<StepDifference> steps;  ///< in A's order
  std::vector<UnmatchedStep> unmatched;

  /// The first step whose relative difference exceeds `bound`; null if none does.
  [[nodiscard]] const StepDifference* first_above(double bound) const;
};

/// Computes `tokens` in one phase on both, a batch at a time. Both plans must select all rows (RowSelection::all), and
/// and the chunks are the smaller of the two models' prefill rows. Throws what Session::compute throws.
[[nodiscard]] Comparison compare(LoadedModel& a, LoadedModel& b, std::span<const std::uint32_t> tokens, Phase phase);

}  // namespace candor::runtime
