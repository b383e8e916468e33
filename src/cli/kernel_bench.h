// Each CPU kernel at the shapes of real models, as a share of what the machine can do. Decoding is held against the
// read bandwidth, prefill against the peak of multiply-adds of the kind that the weights need. Machines have fast and
// slow spells, so each round measures the limit right before the kernel, and medians of ratios are reported.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"

namespace candor::cli {

struct KernelBenchOptions {
  unsigned threads = 0;  ///< 0: one for each processor
  std::string isa;       ///< empty: the best
  std::string filter;    ///< only kernels whose name holds this text
  std::uint32_t rounds = 7;
  bool progress = true;  ///< a bar on standard error, if that is a terminal
};

/// {isa, threads, kernels: [{name, seconds, bytesPerSecond or operationsPerSecond, limit, limitPerSecond, share}]}.
/// Throws Error(device) for an instruction set that this processor lacks, Error(usage) for a filter that fits none.
[[nodiscard]] Json measure_kernels(const KernelBenchOptions& options);

void print_kernel_rates(const Json& measured);

}  // namespace candor::cli
