// The conformance session: answers calls of the doppler.execution/v0 reference in its own terms, one JSON line for one
// JSON line, so that the answers can be compared. A line is {id, options} (a compilation) or {id, fn, args}; an
// argument
// {"$undefined": true} is undefined and {"$path": "<id>"} a kernel path of the registry. An answer is {id, ok: true,
// result?} without a result for undefined, or {id, ok: false, error, errorName}. The active kernel path persists from
// line to line. Errors the reference raises as JavaScript TypeErrors have that errorName and a text of our own.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/js_value.h"
#include "kernels/active_kernel_path.h"
#include "kernels/kernel_path_registry.h"
#include "kernels/registry.h"
#include "kernels/rules.h"

namespace candor::cli {

class ConformanceSession {
 public:
  /// The built-in registry, and no kernel paths.
  ConformanceSession();
  /// A folder with registry.json, kernel-ref-digests.json, kernel-paths/ and kernel-path.rules.json.
  explicit ConformanceSession(const std::filesystem::path& registry_directory);

  /// The answer to one line, without a line end. Never throws for what a line says.
  [[nodiscard]] std::string answer(std::string_view line);

 private:
  /// A result; nothing for undefined.
  using Result = std::optional<Json>;
  using Arguments = std::vector<js::Value>;
  struct Function;

  [[nodiscard]] static const Function* find_function(std::string_view name);
  [[nodiscard]] js::Value argument(const Json& json) const;
  [[nodiscard]] Result call(const Json& request);
  [[nodiscard]] Result compile(js::Value options) const;
  [[nodiscard]] Result apply(js::Value options) const;
  /// The path argument of a function whose default is the active path.
  [[nodiscard]] js::Value path_or_active(js::Value path) const;

  std::optional<kernels::KernelRegistry> loaded_;
  const kernels::KernelRegistry& registry_;
  kernels::KernelPathRegistry paths_;
  kernels::RuleRegistry rules_;
  kernels::ActiveKernelPath active_;
};

}  // namespace candor::cli
