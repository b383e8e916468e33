#include "plan/apply.h"

#include <algorithm>
#include <utility>

#include "plan/merge.h"
#include "plan/schema.h"

namespace candor::plan {
namespace {

Json overlay_of(js::Value inference) {
  Json overlay = Json::object();
  for (const char* key : {"session", "executionPatch"})
    if (const js::Value value = js::get(inference, key); js::truthy(value)) overlay[key] = *value;
  return overlay;
}

std::int64_t to_layers(double layers) {
  constexpr double kLargest = 1e15;  // exact in both types; compile() refuses far smaller counts
  return static_cast<std::int64_t>(std::clamp(layers, -kLargest, kLargest));
}

Json manifest_layers(js::Value manifest) {
  static const Json kZero = 0;
  return js::to_number(js::coalesce(js::at_path(manifest, {"architecture", "numLayers"}), &kZero));
}

}  // namespace

std::string model_id_text(js::Value model_id) {
  return js::truthy(model_id) ? js::to_string(model_id) : "";
}

std::int64_t layer_count(js::Value num_layers) {
  return js::is_integer(num_layers) ? to_layers(num_layers->get<double>()) : 0;
}

AppliedConfig apply_runtime_config(const ApplyInput& input) {
  AppliedConfig applied;
  if (!js::nullish(input.runtime_config)) applied.runtime_config = *input.runtime_config;
  const js::Value manifest_inference = js::get(input.manifest, "inference");
  if (!js::truthy(input.runtime_config) || !has_execution(manifest_inference)) return applied;

  const js::Value inference = js::get(input.runtime_config, "inference");
  const Json overlay = overlay_of(inference);
  const Json layers = manifest_layers(input.manifest);
  CompileInput compile_input{*manifest_inference, &overlay};
  compile_input.model_id = model_id_text(js::coalesce(input.model_id, js::get(input.manifest, "modelId")));
  compile_input.layers = layer_count(js::is_integer(input.num_layers) ? input.num_layers : &layers);
  compile_input.registry = input.registry;
  applied.plan = compile(compile_input);

  Json patch = applied.plan->result["runtimeInferencePatch"];
  if (const js::Value overrides = js::get(&patch, "modelOverrides")) {
    static const Json kNone = Json::object();
    Json merged = merge_runtime_values(overrides, js::coalesce(js::get(inference, "modelOverrides"), &kNone));
    js::set(patch, "modelOverrides", std::move(merged));
  }
  Json config = js::spread(input.runtime_config);
  js::set(config, "inference", merge_runtime_values(inference, &patch));
  applied.runtime_config = std::move(config);
  return applied;
}

}  // namespace candor::plan
