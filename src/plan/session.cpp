#include "plan/session.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "plan/merge.h"
#include "plan/schema.h"

namespace candor::plan {
namespace {

Json without(const Json& object, std::string_view key) {
  Json out = object;
  out.erase(std::string(key));
  return out;
}

/// `compute` without the dtypes that the manifest states; null if nothing is left.
Json strip_dtypes(const Json& compute, js::Value manifest_defaults) {
  const js::Value defaults = js::get(&compute, "defaults");
  const auto is_stated = [&](std::string_view key) { return !js::nullish(js::get(manifest_defaults, key)); };
  if (!js::truthy(defaults) || std::none_of(kDtypeKeys.begin(), kDtypeKeys.end(), is_stated)) return compute;
  Json kept = js::spread(defaults);
  for (const std::string_view key : kDtypeKeys)
    if (is_stated(key)) kept.erase(std::string(key));
  if (!kept.empty()) {
    Json out = compute;
    js::set(out, "defaults", std::move(kept));
    return out;
  }
  Json out = without(compute, "defaults");
  return out.empty() ? Json() : out;
}

/// `compute` without an empty list of kernel profiles; null if nothing is left.
Json strip_empty_profiles(const Json& compute) {
  const js::Value profiles = js::get(&compute, "kernelProfiles");
  if (!js::is_array(profiles) || !profiles->empty()) return compute;
  Json out = without(compute, "kernelProfiles");
  return out.empty() ? Json() : out;
}

}  // namespace

Json normalize_runtime_session(js::Value runtime_session, js::Value manifest_session) {
  const js::Value compute = js::get(runtime_session, "compute");
  if (!js::truthy(compute)) return runtime_session == nullptr ? Json::object() : *runtime_session;
  const js::Value manifest_defaults = js::at_path(manifest_session, {"compute", "defaults"});
  const js::Value manifest_profiles = js::at_path(manifest_session, {"compute", "kernelProfiles"});
  Json kept = *compute;
  if (js::truthy(manifest_defaults)) kept = strip_dtypes(kept, manifest_defaults);
  if (js::is_array(manifest_profiles) && !manifest_profiles->empty()) kept = strip_empty_profiles(kept);
  if (kept.is_null()) return without(*runtime_session, "compute");
  Json session = *runtime_session;
  js::set(session, "compute", std::move(kept));
  return session;
}

Json resolve_session(js::Value manifest_session, js::Value runtime_session) {
  static const Json kEmpty = Json::object();
  const Json defaults = merge_runtime_values(&default_session(), js::coalesce(manifest_session, &kEmpty));
  const Json runtime = normalize_runtime_session(js::coalesce(runtime_session, &kEmpty), manifest_session);
  return merge_runtime_values(&defaults, js::coalesce(&runtime, &kEmpty));
}

}  // namespace candor::plan
