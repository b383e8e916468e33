#include "plan/pins.h"

#include "base/error.h"
#include "kernels/registry.h"

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

}  // namespace candor::plan
