#include "plan/pins.h"

#include <map>

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

}  // namespace

std::vector<PinDifference> pin_differences(const Json& inference, const kernels::KernelRegistry& registry) {
  std::vector<PinDifference> differences;
  if (!inference.is_object() || !inference.contains("execution") || !inference["execution"].is_object() ||
      !inference["execution"].contains("steps") || !inference["execution"]["steps"].is_array())
    return differences;
  for (const Json& step : inference["execution"]["steps"]) {
    const std::string kernel = string_field(step, "kernel");
    if (kernel.empty() || !step.contains("kernelRef")) continue;
    std::string entry = string_field(step, "entry");
    if (entry.empty()) entry = "main";
    const std::string found = string_field(step["kernelRef"], "digest");
    const auto digest = registry.digest(kernel, entry);
    const std::string expected = digest ? "sha256:" + *digest : "";
    if (expected != found) differences.push_back({string_field(step, "id"), kernel + "#" + entry, expected, found});
  }
  return differences;
}

void check_pins(const Json& inference, const kernels::KernelRegistry& registry) {
  const auto differences = pin_differences(inference, registry);
  if (differences.empty()) return;
  const PinDifference& first = differences.front();
  std::string message;
  if (first.expected.empty()) {
    message = fmt::format("step \"{}\": kernel \"{}\" is not in this build's registry", printable(first.step),
                          printable(first.kernel));
  } else {
    message = fmt::format("step \"{}\": kernel \"{}\" is pinned to {}, expected {}", printable(first.step),
                          printable(first.kernel), printable(first.found), first.expected);
  }
  if (differences.size() > 1) message += fmt::format(" ({} more steps differ)", differences.size() - 1);
  message += "; if the change of kernels is intended, candor rebind shows it and pins anew";
  throw Error(ErrorCode::integrity, message);
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
