#include "backends/webgpu/capability.h"

#include <algorithm>
#include <iterator>

#include "kernels/registry.h"

namespace candor::webgpu {

std::set<std::string> required_features(const kernels::KernelRules& path, const kernels::KernelRegistry& registry) {
  std::set<std::string> features;
  for (const Json& rule : path.json()["rules"]) {
    const Json& value = rule["value"];
    const auto* variant = registry.find(value.value("kernel", ""), value.value("entry", "main"));
    if (variant) features.insert(variant->required_features.begin(), variant->required_features.end());
  }
  return features;
}

std::vector<PathSupport> supported_paths(const Adapter& adapter) {
  std::vector<PathSupport> support;
  for (const std::string& id : kernels::builtin_kernel_rules()) {
    const kernels::KernelRules path = kernels::builtin_kernel_rules(id);
    if (path.backend() != "webgpu") continue;
    const std::set<std::string> wanted = required_features(path, kernels::builtin_registry());
    PathSupport entry{id, {}};
    std::set_difference(wanted.begin(), wanted.end(), adapter.features().begin(), adapter.features().end(),
                        std::back_inserter(entry.missing));
    support.push_back(std::move(entry));
  }
  return support;
}

}  // namespace candor::webgpu
