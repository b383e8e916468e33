// Precision by precedence: what a step says, else its kernel's profile in the session, else the session's defaults.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/js_value.h"

namespace candor::plan {

/// Where a value of a step comes from, as source traces write it.
namespace source {
inline constexpr std::string_view kManifest = "manifest";
inline constexpr std::string_view kKernelProfile = "kernelProfile";
inline constexpr std::string_view kSessionDefault = "sessionDefault";  // replaced by the source of the session's value
inline constexpr std::string_view kDerived = "derived";
inline constexpr std::string_view kRuntimePatch = "runtime.patch";
inline constexpr std::string_view kRuntimeSession = "runtime.session";
}  // namespace source

/// The kernel profiles of a session, found by kernel ref.
class KernelProfiles {
 public:
  /// Checks the ref of each profile; a later profile of the same ref replaces an earlier one. `session` must outlive
  /// this object.
  explicit KernelProfiles(js::Value session);

  /// Undefined if the step has no kernelRef or no profile has it.
  [[nodiscard]] js::Value find(js::Value step) const;

 private:
  std::unordered_map<std::string, const Json*> profiles_;
};

/// One dtype field as it was found, not yet normalised.
struct Choice {
  js::Value value = nullptr;
  std::string_view source = source::kDerived;
};

struct PrecisionChoices {
  Choice input;  ///< undefined where neither step nor profile states it; there is no session default
  Choice math;
  Choice accum;
  Choice output;
};

[[nodiscard]] PrecisionChoices choose_precision(js::Value step, js::Value profile, js::Value session);

/// `compute.defaults` of a session, which must be there; `key` of it.
[[nodiscard]] js::Value session_default(js::Value session, std::string_view key);

}  // namespace candor::plan
