// What a compiled plan changes in a runtime configuration of the older format: compute and KV settings, batching, the
// inline kernel path, the layer pipeline, and overrides of the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/js_value.h"
#include "plan/execution_plan.h"

namespace candor::plan {

/// The layer pipeline of resolved steps; nothing if no step is of section "layer" or one has an op that pipelines do
/// not know.
[[nodiscard]] std::optional<Json> build_layer_pipeline(const std::vector<const ResolvedStep*>& steps);

/// {compute?, kvcache?, batching?} of a resolved session.
[[nodiscard]] Json build_session_patch(const Json& session);

}  // namespace candor::plan
