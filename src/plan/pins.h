// Pins: every kernelRef of a manifest against the kernels of this build. The compiler refuses a ref that does not
// match, too; this check runs before it and says what was found as well as what was expected, for all steps that
// differ.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace candor::kernels {
class KernelRegistry;
}

namespace candor::plan {

struct PinDifference {
  std::string step;
  std::string kernel;    ///< "file#entry"
  std::string expected;  ///< digest of the kernel in this build; empty if the build has none
  std::string found;     ///< digest in the manifest
};

/// Steps of `inference.execution` whose kernelRef digest is not that of their kernel. Malformed steps are left to the
/// compiler.
[[nodiscard]] std::vector<PinDifference> pin_differences(const Json& inference,
                                                         const kernels::KernelRegistry& registry);

/// Throws Error(integrity) naming the first step that differs, expected and found digest, and how many more there are.
void check_pins(const Json& inference, const kernels::KernelRegistry& registry);

/// Pins every step, and every kernel profile of a step's kernel, to the kernels of this build. Throws Error(plan) for a
/// kernel that the build does not have, or without a list of steps.
void pin_anew(Json& inference, const kernels::KernelRegistry& registry);

}  // namespace candor::plan
