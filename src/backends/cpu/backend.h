// The CPU backend: one arena for slots, packed weights, KV pages, and a pool of threads. Issuing an instruction is
// setting the row counts of views made at loading and calling the kernel.
#pragma once

#include <memory>

#include "backends/backend.h"
#include "kernels/cpu/kernel.h"

namespace candor::cpu {

struct CpuOptions {
  unsigned threads = 0;  ///< 0: one for each processor the process may use
  Isa isa = Isa::portable;
};

/// The best instruction set here, or the one named ("portable", "avx2", "avx512", "neon"). Throws Error(usage) for an
/// unknown name, Error(device) for a set this processor lacks, and for a processor with neither AVX2 with FMA nor NEON
/// unless "portable" was asked for by name.
[[nodiscard]] Isa choose_isa(std::string_view name);

[[nodiscard]] std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options);

}  // namespace candor::cpu
