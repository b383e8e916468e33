// The backward registry: for each operation, the operation that computes its gradients and which operands they are of.
// The training tape walks it; here it is only checked.
#pragma once

#include "base/json.h"

namespace candor::kernels {

/// Checks a backward registry {ops: {<operation>: {backward, grads, requires_transpose?, params?, notes?}}} and returns
/// it. Throws Error(format), naming the operation and the field.
const Json& validate_backward_registry(const Json& registry);

}  // namespace candor::kernels
