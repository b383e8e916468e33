// The active kernel path of a session: the path in use, where it came from, and the policy it is under. One object a
// session; there is no global one.
#pragma once

#include <optional>
#include <string>

#include "base/js_value.h"
#include "kernels/kernel_path_policy.h"

namespace candor::kernels {

class ActiveKernelPath {
 public:
  /// `path` is copied; undefined and null are kept apart. The source of no path is "none".
  void set(js::Value path, std::string source, js::Value policy);

  /// Null before the first set().
  [[nodiscard]] js::Value path() const { return path_ ? &*path_ : nullptr; }
  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] const KernelPathPolicy& policy() const { return policy_; }

 private:
  std::optional<Json> path_ = Json();
  std::string source_ = "none";
  KernelPathPolicy policy_;
};

}  // namespace candor::kernels
