// Choosing the next token of each segment from its logits.
//
// In this order: repetition penalty (Keskar et al. 2019) for each token among the last repetition_window of the
// history; at temperature 0 the largest logit, the lowest id among equals; otherwise probabilities exp((logit -
// largest) / temperature) in double; top-k, the k most probable; top-p (Holtzman et al. 2020), the fewest most probable
// whose sum reaches top_p of the sum left; min-p, those of at least min_p times the largest; then one draw with Philox
// 4×32-10 indexed by (seed, sequence, position of the segment's last row). Candidates are in falling order, equal ones
// by id, where top-k or top-p is set, and by id otherwise. Logits that hold a NaN or have no finite maximum give
// kNoToken.
//
// Scalar and compiled once: the same code on every instruction set.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cpu/kernel.h"

namespace candor::cpu::sample {

/// One candidate: its logit after the penalty, later its probability.
struct Candidate {
  double value;
  std::uint32_t id;
};

/// The token for one row of logits. `work` holds at least as many candidates as there are logits.
[[nodiscard]] std::uint32_t choose(std::span<const float> logits, const SamplerParameters& parameters,
                                   std::span<const std::uint32_t> history, std::uint32_t position,
                                   std::span<Candidate> work);

void run(const KernelArguments&);
std::uint64_t scratch_bytes(const KernelShapes&, const Constants&);

}  // namespace candor::cpu::sample
