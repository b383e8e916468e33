#include "plan/pins.h"

#include <map>
#include <optional>

#include "base/error.h"
#include "kernels/kernel_ref.h"
#include "kernels/registry.h"
#include "plan/schema.h"

namespace candor::plan {
namespace {

std::string string_field(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_string()) return {};
  return object[key].get<std::string>();
}

/// What a step's kernel is, and its ref in this build.
struct StepKernel {
  std::string step;
  std::string name;  ///< "file#entry"
  std::optional<kernels::KernelRef> ref;
};

/// Nothing for a cast.
std::optional<StepKernel> kernel_of(const Json& step, const kernels::KernelRegistry& registry) {
  const std::string kernel = js::trimmed_text(js::get(&step, "kernel"));
  if (!js::is_string(js::get(&step, "kernel")) || kernel.empty()) return std::nullopt;
  const std::string entry = kernels::entry_name(js::get(&step, "entry"));
  StepKernel out{printable(string_field(step, "id")), kernel + "#" + entry, std::nullopt};
  if (registry.digest(kernel, entry)) out.ref = kernels::build_kernel_ref(registry, kernel, entry);
  return out;
}

/// How `found`, an object, differs from the ref that the kernel has in this build.
std::optional<PinDifference> difference(std::string place, const StepKernel& kernel, const Json& found) {
  const std::string digest = string_field(found, "digest");
  if (!kernel.ref) return PinDifference{std::move(place), kernel.name, "", digest};
  if (digest != kernel.ref->digest) return PinDifference{std::move(place), kernel.name, kernel.ref->digest, digest};
  const std::string expected = kernel.ref->id + "@" + kernel.ref->version;
  const std::string name = string_field(found, "id") + "@" + string_field(found, "version");
  if (name == expected) return std::nullopt;
  return PinDifference{std::move(place), kernel.name, expected, name};
}

}  // namespace

std::string PinDifference::text() const {
  if (expected.empty())
    return fmt::format("{}: kernel \"{}\" is not in this build's registry; the manifest pins it to {}", place,
                       printable(kernel), found.empty() ? "no digest" : printable(found));
  return fmt::format("{}: kernel \"{}\" is expected to be {}; found {}", place, printable(kernel), expected,
                     found.empty() ? "no digest" : printable(found));
}

std::vector<PinDifference> pin_differences(const Json& inference, const kernels::KernelRegistry& registry) {
  std::vector<PinDifference> differences;
  const js::Value steps = js::at_path(&inference, {"execution", "steps"});
  if (!js::is_array(steps)) return differences;
  std::map<std::string, StepKernel> by_id;
  const auto add = [&](std::string place, const StepKernel& kernel, js::Value ref) {
    if (!js::is_plain_object(ref)) return;
    if (auto found = difference(std::move(place), kernel, *ref)) differences.push_back(*std::move(found));
  };
  for (const Json& step : *steps) {
    const auto kernel = kernel_of(step, registry);
    if (!kernel) continue;
    add(fmt::format("step \"{}\"", kernel->step), *kernel, js::get(&step, "kernelRef"));
    if (kernel->ref) by_id.emplace(kernel->ref->id, *kernel);
  }
  const js::Value profiles = js::at_path(&inference, {"sessionDefaults", "compute", "kernelProfiles"});
  if (!js::is_array(profiles)) return differences;
  for (std::size_t i = 0; i < profiles->size(); ++i) {
    const js::Value ref = js::get(&(*profiles)[i], "kernelRef");
    if (!js::is_plain_object(ref)) continue;
    const auto kernel = by_id.find(string_field(*ref, "id"));
    if (kernel != by_id.end())
      add(fmt::format("kernel profile {}, of step \"{}\"", i, kernel->second.step), kernel->second, ref);
  }
  return differences;
}

void check_pins(const Json& inference, const kernels::KernelRegistry& registry) {
  const auto differences = pin_differences(inference, registry);
  if (differences.empty()) return;
  std::string more;
  if (differences.size() > 1) more = fmt::format(" ({} more differ)", differences.size() - 1);
  fail(ErrorCode::integrity, "{}{}; if the change of kernels is intended, candor rebind shows it and pins anew",
       differences.front().text(), more);
}

void pin_anew(Json& inference, const kernels::KernelRegistry& registry) {
  if (!has_execution(&inference)) fail(ErrorCode::plan, "manifest: inference.execution has no list of steps");
  std::map<std::string, Json> refs;  // by id, which is made of the kernel's file and entry
  for (Json& step : inference["execution"]["steps"]) {
    if (!step.is_object()) fail(ErrorCode::plan, "manifest: inference.execution.steps must hold objects");
    const std::string kernel = js::trimmed_text(js::get(&step, "kernel"));
    if (kernel.empty()) continue;  // a cast
    const kernels::KernelRef ref = build_kernel_ref(registry, kernel, kernels::entry_name(js::get(&step, "entry")));
    step["kernelRef"] = ref.to_json();
    refs.emplace(ref.id, ref.to_json());
  }
  const js::Value profiles = js::at_path(&inference, {"sessionDefaults", "compute", "kernelProfiles"});
  if (!js::is_array(profiles)) return;
  for (Json& profile : inference["sessionDefaults"]["compute"]["kernelProfiles"]) {
    const auto ref =
        refs.find(profile.is_object() && profile.contains("kernelRef") ? string_field(profile["kernelRef"], "id")
                                                                       : std::string());
    if (ref != refs.end()) profile["kernelRef"] = ref->second;
  }
}

}  // namespace candor::plan
