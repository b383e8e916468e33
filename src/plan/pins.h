// Pins: every kernelRef of a manifest, of steps and of kernel profiles, against the kernels of this build. The compiler
// refuses a ref that does not match, too; this check runs before it and says what was found as well as what was
// expected, for all that differ, and what to do about it.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace candor::kernels {
class KernelRegistry;
}

namespace candor::plan {

struct PinDifference {
  std::string place;     ///< "step \"embed\"", or "kernel profile 0, of step \"embed\"" (the first that uses it)
  std::string kernel;    ///< "file#entry"
  std::string expected;  ///< digest of the kernel in this build, or "id@version" where only those differ; empty if the
                         ///< build has no such kernel
  std::string found;     ///< the same of the manifest

  /// "step "…": kernel "…" is expected to be sha256:…; found sha256:…"
  [[nodiscard]] std::string text() const;
};

/// Steps of `inference.execution` whose kernelRef is not that of their kernel, then kernel profiles whose kernelRef has
/// the id of a step's kernel and is not its ref. What is malformed is left to the compiler.
[[nodiscard]] std::vector<PinDifference> pin_differences(const Json& inference,
                                                         const kernels::KernelRegistry& registry);

/// Throws Error(integrity) naming the first that differs, expected and found, and how many more there are.
void check_pins(const Json& inference, const kernels::KernelRegistry& registry);

/// Pins every step, and every kernel profile of a step's kernel, to the kernels of this build. Throws Error(plan) for a
/// kernel that the build does not have, or without a list of steps.
void pin_anew(Json& inference, const kernels::KernelRegistry& registry);

}  // namespace candor::plan
