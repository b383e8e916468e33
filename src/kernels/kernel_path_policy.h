// Kernel-path policy: whether a kernel path may be replaced by another one when the device lacks what it needs. The
// default, "locked", never replaces. What replaces what is data: rule sets inference/kernelPath/autoSelect and
// finitenessFallback. Not a goal: replacing inside a plan; this happens, if at all, before a manifest is compiled.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/js_value.h"
#include "kernels/rules.h"

namespace candor::kernels {

struct KernelPathPolicy {
  std::string mode = "locked";                                    ///< "locked" or "capability-aware"
  std::vector<std::string> source_scope = {"model", "manifest"};  ///< sources whose paths may be replaced
  std::string on_incompatible = "error";                          ///< "error" or "remap"

  /// {mode, sourceScope, allowSources, onIncompatible}; allowSources repeats sourceScope.
  [[nodiscard]] Json to_json() const;
};

/// A source's name as policies compare it: trimmed, lower case, "runtime" → "config", "execution_v0" → "execution-v0".
[[nodiscard]] std::string normalize_kernel_path_source(js::Value source);

/// A policy from a configuration. Whatever is missing or unknown becomes the default; `allowSources` is the older name
/// of `sourceScope`. Blank sources and "none" are dropped.
[[nodiscard]] KernelPathPolicy resolve_kernel_path_policy(js::Value policy);

/// The same for the active path, where "none" is a source like others.
[[nodiscard]] KernelPathPolicy resolve_active_path_policy(js::Value policy);

/// The id of the path to use in place of `id`, which came from `source`. `id` itself unless the policy allows a change
/// and a rule asks for one.
[[nodiscard]] std::string resolve_capability_path(const RuleRegistry& rules, std::string_view id, js::Value source,
                                                  bool has_subgroups, const KernelPathPolicy& policy);

/// The path to use after `id` gave values that are not finite; nothing if there is none.
[[nodiscard]] std::optional<std::string> finiteness_fallback(const RuleRegistry& rules, std::string_view id);

}  // namespace candor::kernels
