// What a kernel path asks of a device, and whether an adapter offers it. Not a goal: choosing another path; a plan's
// kernels stand in its manifest.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "backends/webgpu/adapter.h"
#include "kernels/kernel_rules.h"
#include "kernels/registry.h"

namespace candor::webgpu {

/// Features that some kernel of the path requires.
[[nodiscard]] std::set<std::string> required_features(const kernels::KernelRules& path,
                                                      const kernels::KernelRegistry& registry);

struct PathSupport {
  std::string path;
  std::vector<std::string> missing;  ///< features the adapter lacks; empty: every kernel of the path can run
};

/// The built-in kernel paths of this backend.
[[nodiscard]] std::vector<PathSupport> supported_paths(const Adapter& adapter);

}  // namespace candor::webgpu
