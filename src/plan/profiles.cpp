#include "plan/profiles.h"

#include <fmt/format.h>

#include "plan/schema.h"
#include "plan/validate.h"

namespace candor::plan {
namespace {

std::string key_of(js::Value kernel_ref) {
  return fmt::format("{}|{}|{}", js::to_string(js::get(kernel_ref, "id")),
                     js::to_string(js::get(kernel_ref, "version")), js::to_string(js::get(kernel_ref, "digest")));
}

/// `sessionDefaults.compute`, which must be there.
js::Value session_compute(js::Value session) {
  const js::Value compute = js::get(session, "compute");
  if (js::nullish(compute)) refuse_type("sessionDefaults.compute", "an object", compute);
  return compute;
}

Choice choose(js::Value step, js::Value profile, js::Value session, std::string_view key) {
  const js::Value of_step = js::at_path(step, {"precision", key});
  if (!js::nullish(of_step)) return {of_step, source::kManifest};
  const js::Value of_profile = js::at_path(profile, {"precision", key});
  if (!js::nullish(of_profile)) return {of_profile, source::kKernelProfile};
  if (key == "inputDtype") return {nullptr, source::kDerived};
  return {session_default(session, key), source::kSessionDefault};
}

}  // namespace

KernelProfiles::KernelProfiles(js::Value session) {
  const js::Value profiles = js::at_path(session, {"compute", "kernelProfiles"});
  if (js::nullish(profiles) || js::is_string(profiles)) return;  // a text is a list of characters, none with a ref
  if (!js::is_array(profiles)) refuse_type("sessionDefaults.compute.kernelProfiles", "an array", profiles);
  for (const Json& profile : *profiles) {
    if (profile.is_null()) refuse_type("sessionDefaults.compute.kernelProfiles[]", "an object", &profile);
    const js::Value ref = js::get(&profile, "kernelRef");
    check_kernel_ref(ref, "sessionDefaults.compute.kernelProfiles[].kernelRef");
    if (js::truthy(ref)) profiles_[key_of(ref)] = &profile;
  }
}

js::Value KernelProfiles::find(js::Value step) const {
  const js::Value ref = js::get(step, "kernelRef");
  if (!js::truthy(ref)) return nullptr;
  const auto found = profiles_.find(key_of(ref));
  return found == profiles_.end() ? nullptr : found->second;
}

PrecisionChoices choose_precision(js::Value step, js::Value profile, js::Value session) {
  (void)session_compute(session);
  return {choose(step, profile, session, "inputDtype"), choose(step, profile, session, "mathDtype"),
          choose(step, profile, session, "accumDtype"), choose(step, profile, session, "outputDtype")};
}

js::Value session_default(js::Value session, std::string_view key) {
  const js::Value defaults = js::get(session_compute(session), "defaults");
  if (js::nullish(defaults)) refuse_type("sessionDefaults.compute.defaults", "an object", defaults);
  return js::get(defaults, key);
}

}  // namespace candor::plan
