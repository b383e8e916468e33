#include "plan/diff.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/js_value.h"

namespace candor::plan {
namespace {

using Leaves = std::vector<std::pair<std::string, std::string>>;

void collect(const std::string& path, const Json& value, Leaves& out) {
  if (!value.is_object() || value.empty()) {
    out.emplace_back(path, to_js_json(value));
    return;
  }
  for (const auto& [key, entry] : value.items()) collect(path.empty() ? key : path + "." + key, entry, out);
}

/// Pairs the leaves of two values by path: first those of `a`, then those only `b` has.
template <typename Report>
void compare_leaves(const Json& a, const Json& b, const Report& report) {
  Leaves before;
  Leaves after;
  collect("", a, before);
  collect("", b, after);
  std::unordered_map<std::string, std::string> remaining(after.begin(), after.end());
  for (const auto& [path, text] : before) {
    const auto found = remaining.find(path);
    if (found == remaining.end()) {
      report(path, text, std::string());
      continue;
    }
    if (found->second != text) report(path, text, found->second);
    remaining.erase(found);
  }
  for (const auto& [path, text] : after)
    if (remaining.contains(path)) report(path, std::string(), text);
}

/// Which of `positions` belong to one longest rising subsequence: the steps that kept their order.
std::vector<bool> kept_in_order(const std::vector<std::size_t>& positions) {
  std::vector<std::size_t> tails;  // indices into positions: the smallest end of a rising subsequence of each length
  std::vector<std::size_t> previous(positions.size());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const auto at = std::lower_bound(tails.begin(), tails.end(), positions[i],
                                     [&](std::size_t tail, std::size_t value) { return positions[tail] < value; });
    previous[i] = at == tails.begin() ? i : *std::prev(at);
    if (at == tails.end()) {
      tails.push_back(i);
    } else {
      *at = i;
    }
  }
  std::vector<bool> kept(positions.size());
  if (tails.empty()) return kept;
  for (std::size_t i = tails.back();; i = previous[i]) {
    kept[i] = true;
    if (previous[i] == i) return kept;
  }
}

std::string describe_step(const ResolvedStep& step) {
  return fmt::format("{} by {}, {} -> {}", step.op, step.kernel.empty() ? "none" : step.kernel + "#" + step.entry,
                     step.src, step.dst);
}

std::string place_after(const std::vector<ResolvedStep>& steps, std::size_t index) {
  return index == 0 ? std::string("first") : fmt::format("after {}", steps[index - 1].id);
}

void diff_steps(const std::string& phase, const std::vector<ResolvedStep>& a, const std::vector<ResolvedStep>& b,
                std::vector<Change>& out) {
  std::unordered_map<std::string, std::size_t> in_a;
  std::unordered_map<std::string, std::size_t> in_b;
  for (std::size_t i = 0; i < a.size(); ++i) in_a.emplace(a[i].id, i);
  for (std::size_t i = 0; i < b.size(); ++i) in_b.emplace(b[i].id, i);
  for (const ResolvedStep& step : a) {
    const auto found = in_b.find(step.id);
    if (found == in_b.end()) {
      out.push_back({phase, step.id, "", describe_step(step), "", {}});
      continue;
    }
    compare_leaves(step.raw, b[found->second].raw, [&](const std::string& path, std::string before, std::string after) {
      out.push_back({phase, step.id, path, std::move(before), std::move(after), {}});
    });
  }
  std::vector<std::size_t> common;  // indices into b
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const auto found = in_a.find(b[i].id);
    if (found == in_a.end()) {
      out.push_back({phase, b[i].id, "", "", describe_step(b[i]), {}});
      continue;
    }
    common.push_back(i);
    positions.push_back(found->second);
  }
  const std::vector<bool> kept = kept_in_order(positions);
  for (std::size_t i = 0; i < common.size(); ++i)
    if (!kept[i])
      out.push_back({phase, b[common[i]].id, "order", place_after(a, positions[i]), place_after(b, common[i]), {}});
}

/// {path: {source}} as pairs of path and JSON text.
Leaves sources_of(js::Value sources) {
  Leaves out;
  if (!js::is_plain_object(sources)) return out;
  for (const auto& [path, entry] : sources->get_ref<const Json::object_t&>())
    if (const js::Value source = js::get(&entry, "source")) out.emplace_back(path, to_js_json(*source));
  return out;
}

/// Where values come from, as far as the values themselves are the same: that one which differs has another source is
/// no news.
std::vector<Change> diff_sources(const ExecutionPlan& a, const ExecutionPlan& b, const std::vector<Change>& values) {
  std::set<std::string> differing;  // as sources name them: "sessionDefaults.kvcache.kvDtype", "id.precision.mathDtype"
  std::set<std::string> replaced;   // steps that only one has
  for (const Change& change : values) {
    if (change.where == "session") differing.insert("sessionDefaults." + change.subject);
    if (change.where == "prefill" || change.where == "decode") {
      if (change.field.empty()) replaced.insert(change.subject);
      differing.insert(change.subject + "." + change.field);
    }
  }
  std::vector<Change> out;
  const auto compare = [&](const std::string& owner, js::Value before, js::Value after) {
    std::map<std::string, std::pair<std::string, std::string>> sources;  // by path: in a, in b
    for (const auto& [path, source] : sources_of(before)) sources[path].first = source;
    for (const auto& [path, source] : sources_of(after)) sources[path].second = source;
    for (const auto& [path, source] : sources)
      if (source.first != source.second && !differing.contains(owner.empty() ? path : owner + "." + path))
        out.push_back(
            {"source", owner.empty() ? path : owner, owner.empty() ? "" : path, source.first, source.second, {}});
  };
  compare("", js::get(&a.sources, "session"), js::get(&b.sources, "session"));
  const js::Value steps_b = js::get(&b.sources, "steps");
  std::unordered_map<std::string_view, js::Value> in_b;
  if (js::is_plain_object(steps_b))
    for (const auto& [id, sources] : steps_b->get_ref<const Json::object_t&>()) in_b.emplace(id, &sources);
  const js::Value steps_a = js::get(&a.sources, "steps");
  if (!js::is_plain_object(steps_a)) return out;
  for (const auto& [id, sources] : steps_a->get_ref<const Json::object_t&>())
    if (const auto found = in_b.find(id); found != in_b.end() && !replaced.contains(id))
      compare(id, &sources, found->second);
  return out;
}

/// An array of objects as an object by what `key_of` gives; where a key repeats, the later ones get their index.
template <typename KeyOf>
Json keyed(const Json& list, const KeyOf& key_of) {
  Json out = Json::object();
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::string key = key_of(list[i]);
    if (key.empty() || out.contains(key)) key = fmt::format("{}[{}]", key, i);
    out[key] = list[i];
  }
  return out;
}

/// A manifest whose lists of steps and kernel profiles are objects by id, so that they are compared one by one.
Json manifest_facts(Json manifest) {
  if (!js::is_plain_object(js::get(&manifest, "inference"))) return manifest;
  Json& inference = manifest["inference"];
  if (js::is_array(js::at_path(&inference, {"execution", "steps"})))
    inference["execution"]["steps"] =
        keyed(inference["execution"]["steps"], [](const Json& step) { return js::trimmed_text(js::get(&step, "id")); });
  if (js::is_array(js::at_path(&inference, {"sessionDefaults", "compute", "kernelProfiles"})))
    inference["sessionDefaults"]["compute"]["kernelProfiles"] =
        keyed(inference["sessionDefaults"]["compute"]["kernelProfiles"], [](const Json& profile) {
          return js::trimmed_text(js::at_path(&profile, {"kernelRef", "id"}));
        });
  return manifest;
}

}  // namespace

Json Change::to_json() const {
  Json out{{"where", where}, {"subject", subject}};
  if (!field.empty()) out["field"] = field;
  out["before"] = before.empty() ? Json() : Json(before);
  out["after"] = after.empty() ? Json() : Json(after);
  if (!touches.empty()) out["touches"] = touches;
  return out;
}

std::vector<Change> diff_json(const std::string& where, const Json& a, const Json& b) {
  std::vector<Change> out;
  compare_leaves(a, b, [&](const std::string& path, std::string before, std::string after) {
    out.push_back({where, path, "", std::move(before), std::move(after), {}});
  });
  return out;
}

std::vector<Change> diff_manifests(const Json& a, const Json& b) {
  return diff_json("manifest", manifest_facts(a), manifest_facts(b));
}

std::vector<Change> diff(const ExecutionPlan& a, const ExecutionPlan& b) {
  std::vector<Change> out = diff_json("session", a.session, b.session);
  for (Change& change : diff_json("policies", a.policies, b.policies)) out.push_back(std::move(change));
  diff_steps("prefill", a.prefill, b.prefill, out);
  diff_steps("decode", a.decode, b.decode, out);
  for (Change& change : diff_sources(a, b, out)) out.push_back(std::move(change));
  if (out.empty())
    for (Change& change : diff_json("patch", a.result["runtimeInferencePatch"], b.result["runtimeInferencePatch"]))
      out.push_back(std::move(change));
  return out;
}

}  // namespace candor::plan
