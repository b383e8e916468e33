// Golden logits: what a model's plan computed when its artifact was written, kept in the manifest, so that a change of
// kernels can be judged by its effect. Small: of each position the largest logit, and a digest over all bits. Not a
// goal: quality; a wrong model has golden logits too.
#pragma once

#include <cstddef>

#include "base/json.h"
#include "engine/engine.h"

namespace candor {

/// The manifest's `golden` section: {tokens, largest: [{token, logit}], digest}. `engine` was compiled with
/// RowSelection::all.
[[nodiscard]] Json record_golden(Engine& engine);

struct GoldenComparison {
  std::size_t positions = 0;
  std::size_t other_tokens = 0;   ///< positions whose largest logit is another token's
  double largest_difference = 0;  ///< of a recorded logit to the same now, over the largest of all recorded
  bool same_bits = false;         ///< every logit, recorded or not
};

/// Computes `golden` again and compares. Throws Error(format) if it is not as record_golden() writes it.
[[nodiscard]] GoldenComparison compare_golden(Engine& engine, const Json& golden);

}  // namespace candor
