// The shape of a manifest's steps and of a runtime overlay, checked before anything is resolved. The first fault is
// thrown; the order of the checks is part of the schema.
#pragma once

#include <span>

#include "base/js_value.h"
#include "kernels/registry.h"

namespace candor::plan {

/// Throws unless an object overlay has only the keys `session` and `executionPatch`.
void check_overlay_keys(js::Value runtime_inference);

/// Checks each step's fields and that its kernelRef pins its kernel, then that ids are unique.
void validate_steps(std::span<const Json> steps, const kernels::KernelRegistry& registry);

/// Checks a kernel ref's id, version and digest. A falsy one passes. `label` names it.
void check_kernel_ref(js::Value kernel_ref, std::string_view label);

}  // namespace candor::plan
