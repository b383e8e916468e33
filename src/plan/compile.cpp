// compile(): the order in which a manifest is checked, patched and resolved. The first fault found is the one reported,
// so the order is part of the schema.
#include <utility>

#include "base/limits.h"
#include "kernels/registry.h"
#include "plan/execution_plan.h"
#include "plan/inline_kernel_path.h"
#include "plan/merge.h"
#include "plan/patch.h"
#include "plan/profiles.h"
#include "plan/provenance.h"
#include "plan/resolve.h"
#include "plan/runtime_patch.h"
#include "plan/schema.h"
#include "plan/session.h"
#include "plan/validate.h"

namespace candor::plan {

std::vector<const ResolvedStep*> all_steps(const ExecutionPlan& plan) {
  std::vector<const ResolvedStep*> all;
  for (const ResolvedStep& step : plan.prefill) all.push_back(&step);
  for (const ResolvedStep& step : plan.decode)
    if (step.phase == "decode") all.push_back(&step);
  return all;
}

namespace {

void check_schema(js::Value manifest) {
  static const Json kNull;
  const js::Value schema = js::coalesce(js::get(manifest, "schema"), &kNull);
  if (!js::strict_equal(schema, kSchemaId))
    refuse("manifest.inference.schema must be \"{}\" when execution is present; got \"{}\".", kSchemaId,
           js::to_string(schema));
}

Json resolve_policies(js::Value manifest) {
  js::ObjectBuilder policies(default_policies());
  const Json own = js::spread(js::at_path(manifest, {"execution", "policies"}));
  for (const auto& [key, value] : own.get_ref<const Json::object_t&>()) policies[key] = value;
  return policies.take();
}

/// The manifest's steps, validated, patched, and validated again.
std::vector<Json> patched_steps(js::Value manifest, js::Value patch, const kernels::KernelRegistry& registry) {
  const Json& list = *js::at_path(manifest, {"execution", "steps"});
  if (list.size() > limits::steps) refuse("execution.steps has {} steps, more than {}", list.size(), limits::steps);
  std::vector<Json> steps(list.begin(), list.end());
  validate_steps(steps, registry);
  steps = apply_patch(std::move(steps), patch);
  validate_steps(steps, registry);
  return steps;
}

template <typename Steps>
Json raw_steps(const Steps& steps) {
  Json out = Json::array();
  for (const auto& step : steps) {
    if constexpr (std::is_pointer_v<typename Steps::value_type>) {
      out.push_back(step->raw);
    } else {
      out.push_back(step.raw);
    }
  }
  return out;
}

/// What the plan changes in a runtime configuration.
Json runtime_patch(const CompileInput& input, const std::vector<Json>& steps, const ExecutionPlan& plan) {
  auto kernel_path = build_inline_kernel_path(steps, plan.session, input.model_id, input.layers);
  auto pipeline = build_layer_pipeline(all_steps(plan));
  Json patch = build_session_patch(plan.session);
  if (kernel_path) {
    patch["kernelPath"] = *std::move(kernel_path);
    patch["kernelPathSource"] = "execution-v0";
  }
  if (pipeline) patch["pipeline"] = *std::move(pipeline);
  const js::Value model = js::get(&input.manifest_inference, "model");
  if (js::is_object(model)) patch["modelOverrides"] = *model;
  return patch;
}

Json print_plan(const ExecutionPlan& plan, Json patch) {
  Json result = Json::object();
  result["sessionDefaults"] = plan.session;
  result["policies"] = plan.policies;
  Json& steps = result["resolvedSteps"];
  steps["prefill"] = raw_steps(plan.prefill);
  steps["decode"] = raw_steps(plan.decode);
  steps["all"] = raw_steps(all_steps(plan));
  result["runtimeInferencePatch"] = std::move(patch);
  result["resolvedSources"] = plan.sources;
  return result;
}

}  // namespace

std::optional<ExecutionPlan> compile(const CompileInput& input) {
  const js::Value manifest = &input.manifest_inference;
  if (!has_execution(manifest)) return std::nullopt;
  check_schema(manifest);
  check_overlay_keys(input.runtime_inference);
  const kernels::KernelRegistry& registry = input.registry ? *input.registry : kernels::builtin_registry();
  const js::Value runtime_session = js::get(input.runtime_inference, "session");
  const js::Value manifest_session = js::get(manifest, "sessionDefaults");
  const js::Value patch = js::get(input.runtime_inference, "executionPatch");

  ExecutionPlan plan;
  plan.policies = resolve_policies(manifest);
  plan.session = resolve_session(manifest_session, runtime_session);
  const std::vector<Json> steps = patched_steps(manifest, patch, registry);
  const PatchIndex patch_index = index_patch(patch);
  const SessionSources session_sources(plan.session, runtime_session, manifest_session);
  const KernelProfiles profiles(&plan.session);
  const ResolveContext context{plan.session, plan.policies, profiles, registry, session_sources, patch_index};

  StepTrace trace;
  ResolvedPhase prefill = resolve_phase("prefill", steps, context, trace);
  check_phase_boundary(steps, prefill.slots, context);
  plan.prefill = std::move(prefill.steps);
  plan.decode = resolve_phase("decode", steps, context, trace).steps;
  Json runtime = runtime_patch(input, steps, plan);
  plan.sources["session"] = session_sources.to_json();
  plan.sources["steps"] = trace.to_json();
  plan.result = print_plan(plan, std::move(runtime));
  return plan;
}

}  // namespace candor::plan
