#include "kernels/kernel_path_policy.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace candor::kernels {
namespace {

std::string lower_text(js::Value value) {
  return js::to_lower(js::trimmed_text(value));
}

std::vector<std::string> parse_scope(js::Value sources, bool drop_none) {
  std::vector<std::string> scope;
  std::unordered_set<std::string> seen;
  if (!js::is_array(sources)) return scope;
  for (const Json& source : *sources) {
    std::string name = normalize_kernel_path_source(&source);
    if (name.empty() || (drop_none && name == "none")) continue;
    if (seen.insert(name).second) scope.push_back(std::move(name));
  }
  return scope;
}

KernelPathPolicy parse_policy(js::Value json, bool drop_none) {
  KernelPathPolicy policy;
  if (!js::is_plain_object(json)) return policy;
  if (lower_text(js::get(json, "mode")) == "capability-aware") policy.mode = "capability-aware";
  auto scope = parse_scope(js::coalesce(js::get(json, "sourceScope"), js::get(json, "allowSources")), drop_none);
  if (!scope.empty()) policy.source_scope = std::move(scope);
  if (lower_text(js::get(json, "onIncompatible")) == "remap") policy.on_incompatible = "remap";
  return policy;
}

}  // namespace

Json KernelPathPolicy::to_json() const {
  Json out = Json::object();
  out["mode"] = mode;
  out["sourceScope"] = source_scope;
  out["allowSources"] = source_scope;
  out["onIncompatible"] = on_incompatible;
  return out;
}

std::string normalize_kernel_path_source(js::Value source) {
  std::string name = lower_text(source);
  if (name == "runtime") return "config";
  if (name == "execution_v0") return "execution-v0";
  return name;
}

KernelPathPolicy resolve_kernel_path_policy(js::Value policy) {
  return parse_policy(policy, true);
}
KernelPathPolicy resolve_active_path_policy(js::Value policy) {
  return parse_policy(policy, false);
}

std::string resolve_capability_path(const RuleRegistry& rules, std::string_view id, js::Value source,
                                    bool has_subgroups, const KernelPathPolicy& policy) {
  const auto& scope = policy.source_scope;
  const bool in_scope = std::find(scope.begin(), scope.end(), normalize_kernel_path_source(source)) != scope.end();
  Json context = Json::object();
  context["kernelPathRef"] = id;
  context["hasSubgroups"] = has_subgroups;
  context["allowCapabilityAutoSelection"] = policy.mode == "capability-aware" && in_scope;
  const Json path = rules.select("inference", "kernelPath", "autoSelect", context);
  return js::to_string(&path);
}

std::optional<std::string> finiteness_fallback(const RuleRegistry& rules, std::string_view id) {
  Json context = Json::object();
  context["kernelPathId"] = id;
  const Json path = rules.select("inference", "kernelPath", "finitenessFallback", context);
  if (path.is_null()) return std::nullopt;
  return js::to_string(&path);
}

}  // namespace candor::kernels
