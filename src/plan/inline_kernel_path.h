// The kernel path a plan is equivalent to, for readers of the older format. It holds one list of steps a layer and no
// phase of its own for an override, so it says less than the plan; nothing is executed from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/js_value.h"

namespace candor::plan {

/// The kernel path of patched steps; nothing if layer 0 has none. Casts are left out. `layers` above 0 adds an override
/// for each layer whose steps differ from layer 0's.
[[nodiscard]] std::optional<Json> build_inline_kernel_path(const std::vector<Json>& steps, const Json& session,
                                                           const std::string& model_id, std::int64_t layers);

}  // namespace candor::plan
