#include "plan/validate.h"

#include <fmt/ranges.h>

#include <string>
#include <unordered_set>
#include <vector>

#include "kernels/kernel_ref.h"
#include "plan/schema.h"

namespace candor::plan {
namespace {

bool is_filled_text(js::Value value) {
  return js::is_string(value) && !js::trimmed_text(value).empty();
}

void check_layers(js::Value layers, const std::string& label) {
  if (js::strict_equal(layers, "all")) return;
  if (!js::is_array(layers)) refuse("{}.layers must be \"all\" or number[]", label);
  for (const Json& layer : *layers)
    if (!js::is_integer(&layer) || layer.get<double>() < 0)
      refuse("{}.layers must contain non-negative integers", label);
}

void check_cast(js::Value step, const std::string& label) {
  (void)normalize_dtype(js::get(step, "toDtype"), label + ".toDtype");
  const js::Value from = js::get(step, "fromDtype");
  if (!js::nullish(from)) (void)normalize_dtype(from, label + ".fromDtype");
}

/// The ref the step's kernel has now; the error says why there is none.
kernels::KernelRef expected_ref(js::Value step, const kernels::KernelRegistry& registry, std::string_view where,
                                std::string_view binding) {
  try {
    return kernels::build_kernel_ref(registry, kernels::kernel_name(js::get(step, "kernel")),
                                     kernels::entry_name(js::get(step, "entry")));
  } catch (const Error& error) {
    refuse("{} kernel \"{}\" cannot be content-pinned: {}", where, binding, error.what());
  }
}

void check_kernel(js::Value step, const kernels::KernelRegistry& registry, const std::string& label) {
  const std::string where = fmt::format("{} \"{}\"", label, js::to_string(js::get(step, "id")));
  const js::Value kernel = js::get(step, "kernel");
  if (!is_filled_text(kernel)) refuse("{} requires kernel (non-cast op)", where);
  const js::Value ref = js::get(step, "kernelRef");
  if (!js::is_plain_object(ref)) refuse("{} requires kernelRef {{id, version, digest}} (non-cast op)", where);
  check_kernel_ref(ref, label + ".kernelRef");
  const js::Value entry = js::get(step, "entry");
  const std::string binding = fmt::format("{}#{}", js::to_string(kernel), kernels::entry_name(entry));
  const kernels::KernelRef expected = expected_ref(step, registry, where, binding);
  if (!kernels::is_bound(registry, ref, kernel, entry))
    refuse("{} kernelRef does not match kernel binding (\"{}\"). Expected {}@{} {}.", where, binding, expected.id,
           expected.version, expected.digest);
}

void validate_step(js::Value step, std::size_t index, const kernels::KernelRegistry& registry) {
  const std::string label = fmt::format("execution.steps[{}]", index);
  if (!js::is_object(step)) refuse("{} must be an object", label);
  for (const std::string_view key : {"id", "op"})
    if (!is_filled_text(js::get(step, key))) refuse("{}.{} is required", label, key);
  (void)normalize_phase(js::get(step, "phase"), label + ".phase");
  (void)normalize_section(js::get(step, "section"), label + ".section");
  (void)normalize_slot(js::get(step, "src"), label + ".src");
  (void)normalize_slot(js::get(step, "dst"), label + ".dst");
  check_layers(js::get(step, "layers"), label);
  if (js::strict_equal(js::get(step, "op"), "cast")) {
    check_cast(step, label);
  } else {
    check_kernel(step, registry, label);
  }
}

}  // namespace

void check_overlay_keys(js::Value runtime_inference) {
  if (!js::is_object(runtime_inference)) return;
  std::vector<std::string> unknown;
  for (auto& key : js::keys(runtime_inference))
    if (key != "session" && key != "executionPatch") unknown.push_back(std::move(key));
  if (!unknown.empty())
    refuse("runtime.inference overlay supports only session, executionPatch; got unsupported keys: {}.",
           fmt::join(unknown, ", "));
}

void validate_steps(std::span<const Json> steps, const kernels::KernelRegistry& registry) {
  for (std::size_t i = 0; i < steps.size(); ++i) validate_step(&steps[i], i, registry);
  std::unordered_set<std::string_view> ids;
  for (const Json& step : steps) {
    const std::string& id = js::get(&step, "id")->get_ref<const std::string&>();
    if (!ids.insert(id).second) refuse("duplicate step id \"{}\"", id);
  }
}

void check_kernel_ref(js::Value kernel_ref, std::string_view label) {
  if (!js::truthy(kernel_ref)) return;
  if (!is_filled_text(js::get(kernel_ref, "id"))) refuse("{}.id is required", label);
  const js::Value version = js::get(kernel_ref, "version");
  if (!is_semver(version)) refuse("{}.version must be semver; got \"{}\"", label, js::to_string(version));
  if (!is_digest(js::get(kernel_ref, "digest"))) refuse("{}.digest must match sha256:<64-hex>", label);
}

}  // namespace candor::plan
