// Layering a compiled plan into a runtime configuration of the older format.
#pragma once

#include <optional>

#include "base/js_value.h"
#include "plan/execution_plan.h"

namespace candor::plan {

struct ApplyInput {
  js::Value runtime_config = nullptr;
  js::Value manifest = nullptr;
  js::Value model_id = nullptr;    ///< undefined or null: the manifest's modelId
  js::Value num_layers = nullptr;  ///< no integer: the manifest's architecture.numLayers
  const kernels::KernelRegistry* registry = nullptr;
};

struct AppliedConfig {
  Json runtime_config;  ///< as it was where there is no plan
  std::optional<ExecutionPlan> plan;
};

/// Compiles the manifest's execution under the configuration's `inference` {session, executionPatch} and merges the
/// plan's runtime patch into it. Of `modelOverrides`, the configuration's win. Throws as compile() does.
[[nodiscard]] AppliedConfig apply_runtime_config(const ApplyInput& input);

/// A `modelId` as compile() takes it: empty for what is falsy.
[[nodiscard]] std::string model_id_text(js::Value model_id);
/// A `numLayers` as compile() takes it: 0 for what is no integer.
[[nodiscard]] std::int64_t layer_count(js::Value num_layers);

}  // namespace candor::plan
