// Fused steps: where a kernel path has a kernel for a fused operation, the run of steps it stands for becomes one step.
// Which those are is a table here; whether one is used is data, a rule of the path, so that a path without such rules
// keeps every step apart for those who look at them one by one. A slot that another step reads is never fused away, and
// a fused kernel says in its contract whether it is the bits of what it replaces.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/kernel_rules.h"
#include "models/lowering.h"

namespace candor::models {

/// The steps, in order, with fused ones in the place of the last of those they stand for. In each layer and phase by
/// itself: where layers mix encodings, some may be fused and others not.
[[nodiscard]] std::vector<LoweredStep> fuse_steps(std::vector<LoweredStep> steps, const kernels::KernelRules& rules,
                                                  std::uint32_t layers);

}  // namespace candor::models
