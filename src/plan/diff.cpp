#include "plan/diff.h"

#include <algorithm>
#include <iterator>
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
  return out;
}

}  // namespace candor::plan
