// Our own kernel paths: rules from what a step must do to the kernel that does it. A path lists no steps; the family
// says which steps there are, and each asks the rules with its role, operation, weight encoding and phase. So a file
// whose layers mix encodings needs no path of its own. The choice is made once, when a manifest is written, and stands
// in it. (The original's paths, which list steps, are kernel_path.h.)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace candor::kernels {

struct KernelQuery {
  std::string_view role;       ///< op of the step: "q_proj"
  std::string_view operation;  ///< "matmul"
  std::string_view encoding;   ///< of its first weight; for quantize of its result; empty for none
  std::string_view phase;      ///< "prefill" or "decode"
};

struct KernelChoice {
  std::string kernel;  ///< file
  std::string entry;
  bool operator==(const KernelChoice&) const = default;
};

class KernelRules {
 public:
  /// A kernel path as kernel_paths/*.json has it: id, name, description, backend, activationDtype, kvDtype, rules, and
  /// perhaps `extends`, the id of a path compiled in, whose rules come after its own. Throws Error(format), naming the
  /// field; Error(not_found) for a path to extend that is not compiled in.
  explicit KernelRules(Json path);

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] const std::string& backend() const { return backend_; }
  [[nodiscard]] const std::string& activation_dtype() const { return activation_dtype_; }
  [[nodiscard]] const std::string& kv_dtype() const { return kv_dtype_; }
  [[nodiscard]] const Json& json() const { return path_; }

  /// Throws Error(plan), naming role, operation and encoding, if no rule fits.
  [[nodiscard]] KernelChoice choose(const KernelQuery& query) const;
  /// The same, and nothing if no rule fits.
  [[nodiscard]] std::optional<KernelChoice> find(const KernelQuery& query) const;

 private:
  Json path_;
  std::string id_, backend_, activation_dtype_, kv_dtype_;
};

/// Ids of the paths compiled in (kernel_paths/*.json).
[[nodiscard]] std::vector<std::string> builtin_kernel_rules();
/// Throws Error(not_found), listing the ids.
[[nodiscard]] KernelRules builtin_kernel_rules(std::string_view id);

}  // namespace candor::kernels
