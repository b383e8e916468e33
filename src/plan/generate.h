// Writing the execution of a manifest from a kernel path of the older format.
#pragma once

#include <optional>

#include "base/js_value.h"
#include "kernels/kernel_path_registry.h"
#include "kernels/registry.h"

namespace candor::plan {

/// {schema, sessionDefaults, execution {steps, policies}} of a kernel path, given by id or as an object: preLayer, the
/// layer's decode and prefill steps, postLayer, sampling, each with a kernel ref, and a profile for each ref. Nothing
/// if the path is falsy or gives no step. Throws Error(not_found) for an unknown id, Error(plan) for a kernel without a
/// digest, Error(format) for a section that is no list.
[[nodiscard]] std::optional<Json> build_execution_from_kernel_path(js::Value path,
                                                                   const kernels::KernelPathRegistry& paths,
                                                                   const kernels::KernelRegistry& registry);

}  // namespace candor::plan
