#include "plan/overlay.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/js_value.h"
#include "base/limits.h"
#include "plan/schema.h"
#include "plan/session.h"

namespace candor::plan {
namespace {

constexpr std::array<std::string_view, 3> kSessionKeys{"compute", "kvcache", "decodeLoop"};
constexpr std::array<std::string_view, 2> kComputeKeys{"defaults", "kernelProfiles"};
constexpr std::array<std::string_view, 2> kProfileKeys{"precision", "kvIO"};
constexpr std::array<std::string_view, 3> kPatchLists{"set", "remove", "add"};
/// What executionPatch.set may change of a step; the compiler refuses others.
constexpr std::array<std::string_view, 4> kPatchable{"precision", "kvIO", "constants", "entry"};

constexpr std::array<std::string_view, 4> kPrecisionKeys{"inputDtype", "mathDtype", "accumDtype", "outputDtype"};
constexpr std::array<std::string_view, 2> kKvKeys{"readDtype", "writeDtype"};
constexpr std::array<std::string_view, 1> kRemoveKeys{"id"};
constexpr std::array<std::string_view, 4> kAddKeys{"step", "insertBefore", "insertAfter", "profile"};

std::vector<std::string> split_path(std::string_view path, std::string_view setting) {
  std::vector<std::string> keys;
  for (;;) {
    const std::size_t dot = path.find('.');
    keys.emplace_back(path.substr(0, dot));
    if (keys.back().empty())
      fail(ErrorCode::usage, "session setting \"{}\": a key is empty; write a.b=value", printable(setting));
    if (keys.size() > limits::json_depth)
      fail(ErrorCode::usage, "session setting \"{}\": more than {} keys", printable(setting), limits::json_depth);
    if (dot == std::string_view::npos) return keys;
    path.remove_prefix(dot + 1);
  }
}

Json setting_value(std::string_view text) {
  try {
    return parse_json(text, "setting");
  } catch (const Error&) {
    return std::string(text);
  }
}

/// Throws unless `object` is an object with known keys only, or undefined or null.
void check_keys(js::Value object, std::string_view label, std::span<const std::string_view> known) {
  if (js::nullish(object)) return;
  if (!object->is_object()) fail(ErrorCode::plan, "{} must be an object", label);
  for (const auto& [key, value] : object->items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail(ErrorCode::plan, "{}.{} is unknown; known are {}", label, printable(key), fmt::join(known, ", "));
}

void check_dtypes(js::Value manifest_session, js::Value session) {
  const js::Value stated = js::at_path(manifest_session, {"compute", "defaults"});
  const js::Value wanted = js::at_path(session, {"compute", "defaults"});
  for (const std::string_view key : kDtypeKeys) {
    if (js::nullish(js::get(stated, key)) || js::get(wanted, key) == nullptr) continue;
    const std::string_view field = key == "activationDtype" ? "outputDtype" : key;
    fail(ErrorCode::plan,
         "session.compute.defaults.{0}={1} would do nothing: the manifest states {2}, and a manifest's dtypes stand "
         "over the session's; patch the steps that shall differ: executionPatch {{\"set\": [{{\"id\": \"…\", "
         "\"precision\": {{\"{3}\": {4}}}}}]}}",
         key, js::to_string(js::get(wanted, key)), js::to_string(js::get(stated, key)), field,
         printable(to_js_json(*js::get(wanted, key))));
  }
}

void check_profiles(js::Value manifest_session, js::Value session) {
  const js::Value stated = js::at_path(manifest_session, {"compute", "kernelProfiles"});
  const js::Value wanted = js::at_path(session, {"compute", "kernelProfiles"});
  if (js::is_array(stated) && !stated->empty() && js::is_array(wanted) && wanted->empty())
    fail(ErrorCode::plan,
         "session.compute.kernelProfiles=[] would do nothing: an empty list leaves the manifest's {} profiles as they "
         "are; leave it out, or give the profiles that shall replace them",
         stated->size());
}

void check_null(js::Value manifest_session, js::Value session, std::string_view key) {
  const js::Value stated = js::get(manifest_session, key);
  const js::Value wanted = js::get(session, key);
  if (wanted == nullptr || js::nullish(stated)) return;
  if (wanted->is_null())
    fail(ErrorCode::plan,
         "session.{0}=null would wipe the manifest's {0} ({1}); leave it out, or set the single keys that shall differ",
         key, printable(to_js_json(*stated)));
  if (!wanted->is_object()) return;
  for (const auto& [member, value] : wanted->items()) {
    const js::Value before = js::get(stated, member);
    if (value.is_null() && !js::nullish(before))
      fail(ErrorCode::plan, "session.{0}.{1}=null would wipe the manifest's {2}; leave it out, or give the value", key,
           printable(member), printable(to_js_json(*before)));
  }
}

/// The profile that an entry of executionPatch.add brings along, complete with its step's kernelRef; taken out of the
/// entry. Null if it brings none.
Json take_profile(Json& entry, std::size_t index) {
  const js::Value profile = js::get(&entry, "profile");
  if (profile == nullptr) return {};
  const std::string label = fmt::format("executionPatch.add[{}].profile", index);
  if (!js::is_plain_object(profile)) fail(ErrorCode::plan, "{} must be an object with precision and kvIO", label);
  check_keys(profile, label, kProfileKeys);
  const js::Value ref = js::at_path(&entry, {"step", "kernelRef"});
  if (!js::is_plain_object(ref))
    fail(ErrorCode::plan, "{}: the step has no kernelRef that it could be the profile of", label);
  Json out{{"kernelRef", *ref}};
  for (const auto& [key, value] : profile->items()) out[key] = value;
  entry.erase("profile");
  return out;
}

void append_list(Json& out, const Json& patch, std::string_view name) {
  const js::Value list = js::get(&patch, name);
  if (js::nullish(list)) return;
  if (!list->is_array()) fail(ErrorCode::plan, "executionPatch.{} must be an array", name);
  Json& joined = out[std::string(name)];
  if (joined.is_null()) joined = Json::array();
  for (const Json& entry : *list) joined.push_back(entry);
}

/// Dtypes of a step or a patch of one: a key that no step has would be lost without a word.
void check_dtype_keys(js::Value step, const std::string& label) {
  check_keys(js::get(step, "precision"), label + ".precision", kPrecisionKeys);
  check_keys(js::get(step, "kvIO"), label + ".kvIO", kKvKeys);
}

/// Calls check(entry, "executionPatch.NAME[i]") for each entry of a list that is one; the compiler refuses others.
template <typename Check>
void for_each_entry(js::Value patch, std::string_view name, const Check& check) {
  const js::Value list = js::get(patch, name);
  if (!js::is_array(list)) return;
  for (std::size_t i = 0; i < list->size(); ++i)
    if ((*list)[i].is_object()) check(&(*list)[i], fmt::format("executionPatch.{}[{}]", name, i));
}

void check_known_keys(const Json& overlay) {
  const js::Value session = js::get(&overlay, "session");
  check_keys(session, "session", kSessionKeys);
  check_keys(js::get(session, "compute"), "session.compute", kComputeKeys);
  check_keys(js::at_path(session, {"compute", "defaults"}), "session.compute.defaults", kDtypeKeys);
  const js::Value patch = js::get(&overlay, "executionPatch");
  check_keys(patch, "executionPatch", kPatchLists);
  for_each_entry(patch, "set", check_dtype_keys);
  for_each_entry(patch, "remove",
                 [](js::Value entry, const std::string& label) { check_keys(entry, label, kRemoveKeys); });
  for_each_entry(patch, "add", [](js::Value entry, const std::string& label) {
    check_keys(entry, label, kAddKeys);
    check_dtype_keys(js::get(entry, "step"), label + ".step");
  });
}

bool is_same(const Json& a, js::Value b) {
  return b != nullptr && to_canonical_json(a) == to_canonical_json(*b);
}

/// What of `value` would change `base` where it is merged over it; nothing if all of it is there already. A key that
/// `base` lacks is a change whatever its value, so that unknown ones are still found.
std::optional<Json> change_of(const Json& value, js::Value base) {
  if (base == nullptr) return value;
  if (!value.is_object()) return is_same(value, base) ? std::nullopt : std::optional<Json>(value);
  if (!base->is_object() && !base->is_null()) return value;
  Json out = Json::object();
  for (const auto& [key, member] : value.items())
    if (auto change = change_of(member, js::get(base, key))) out[key] = *std::move(change);
  if (out.empty()) return std::nullopt;
  return out;
}

/// The entry of executionPatch.set without members that leave the step as it is when the entry is applied; nothing if
/// there are only such. `members` are what the entries before have set, by id and member.
std::optional<Json> set_without_repetition(const Json& entry, const std::map<std::string, js::Value>& steps,
                                           std::map<std::pair<std::string, std::string>, js::Value>& members) {
  const js::Value id = js::get(&entry, "id");
  const auto step = js::is_string(id) ? steps.find(id->get<std::string>()) : steps.end();
  if (step == steps.end()) return entry;  // the compiler refuses it
  Json out = Json::object();
  for (const auto& [key, member] : entry.get_ref<const Json::object_t&>()) {
    if (std::find(kPatchable.begin(), kPatchable.end(), key) != kPatchable.end()) {
      const js::Value before =
          std::exchange(members.try_emplace({step->first, key}, js::get(step->second, key)).first->second, &member);
      if (is_same(member, before)) continue;
    }
    out[key] = member;
  }
  if (out.size() < 2) return std::nullopt;  // the id alone
  return out;
}

/// The patch without what leaves the steps as they are, and without empty lists. What is malformed stays.
Json patch_without_repetition(const Json& inference, const Json& patch) {
  std::map<std::string, js::Value> steps;
  if (const js::Value list = js::at_path(&inference, {"execution", "steps"}); js::is_array(list))
    for (const Json& step : *list)
      if (const js::Value id = js::get(&step, "id"); js::is_string(id)) steps.emplace(id->get<std::string>(), &step);
  std::map<std::pair<std::string, std::string>, js::Value> members;
  Json out = Json::object();
  for (const auto& [name, list] : patch.items()) {
    if (list.is_null() || (list.is_array() && list.empty())) continue;
    if (name != "set" || !list.is_array()) {
      out[name] = list;
      continue;
    }
    Json entries = Json::array();
    for (const Json& entry : list) {
      if (auto kept = set_without_repetition(entry, steps, members)) entries.push_back(*std::move(kept));
    }
    if (!entries.empty()) out[name] = std::move(entries);
  }
  return out;
}

}  // namespace

void apply_setting(Json& session, std::string_view setting) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos)
    fail(ErrorCode::usage, "session setting \"{}\" has no value; write a.b=value", printable(setting));
  const std::vector<std::string> keys = split_path(setting.substr(0, equals), setting);
  if (session.is_null()) session = Json::object();
  Json* place = &session;
  for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
    if (js::get(place, keys[i]) == nullptr) js::set(*place, keys[i], Json::object());
    place = &(*place)[keys[i]];
    if (!place->is_object())
      fail(ErrorCode::usage, "session setting \"{}\": {} is {}, which has no keys", printable(setting),
           printable(keys[i]), printable(to_js_json(*place)));
  }
  js::set(*place, keys.back(), setting_value(setting.substr(equals + 1)));
}

Json join_patches(const Json& first, const Json& second) {
  if (first.is_null()) return second;
  if (second.is_null()) return first;
  for (const Json* patch : {&first, &second}) check_keys(patch, "executionPatch", kPatchLists);
  Json out = Json::object();
  for (const std::string_view list : kPatchLists)
    for (const Json* patch : {&first, &second}) append_list(out, *patch, list);
  return out;
}

Json effective_overlay(const Json& inference, const Json& overlay) {
  const js::Value manifest_session = js::get(&inference, "sessionDefaults");
  check_known_keys(overlay);
  Json out = Json::object();
  if (const js::Value given = js::get(&overlay, "session"); !js::nullish(given)) {
    const Json resolved = resolve_session(manifest_session, nullptr);
    if (auto session = change_of(*given, &resolved)) out["session"] = *std::move(session);
  }
  if (const js::Value patch = js::get(&overlay, "executionPatch"); !js::nullish(patch))
    if (Json rest = patch_without_repetition(inference, *patch); !rest.empty()) out["executionPatch"] = std::move(rest);
  const js::Value session = js::get(&out, "session");
  check_dtypes(manifest_session, session);
  check_profiles(manifest_session, session);
  check_null(manifest_session, session, "kvcache");
  check_null(manifest_session, session, "decodeLoop");
  return out;
}

Json adopt_profiles(const Json& inference, Json overlay) {
  if (!js::is_array(js::at_path(&overlay, {"executionPatch", "add"}))) return overlay;
  Json brought = Json::array();
  Json& added = overlay["executionPatch"]["add"];
  for (std::size_t i = 0; i < added.size(); ++i)
    if (Json profile = take_profile(added[i], i); !profile.is_null()) brought.push_back(std::move(profile));
  if (brought.empty()) return overlay;
  // A list of the overlay replaces the manifest's, so what shall stay is repeated.
  const js::Value own = js::at_path(&overlay, {"session", "compute", "kernelProfiles"});
  const js::Value stated = js::at_path(&inference, {"sessionDefaults", "compute", "kernelProfiles"});
  const js::Value kept = js::is_array(own) ? own : stated;
  Json profiles = js::is_array(kept) ? *kept : Json::array();
  for (Json& profile : brought) profiles.push_back(std::move(profile));
  overlay["session"]["compute"]["kernelProfiles"] = std::move(profiles);
  return overlay;
}

}  // namespace candor::plan
