#include "plan/diff.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

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

void diff_steps(const std::string& phase, const std::vector<ResolvedStep>& a, const std::vector<ResolvedStep>& b,
                std::vector<Change>& out) {
  std::unordered_map<std::string, const ResolvedStep*> in_b;
  for (const ResolvedStep& step : b) in_b.emplace(step.id, &step);
  std::unordered_map<std::string, const ResolvedStep*> in_a;
  std::vector<std::string> common_a;
  for (const ResolvedStep& step : a) {
    in_a.emplace(step.id, &step);
    const auto found = in_b.find(step.id);
    if (found == in_b.end()) {
      out.push_back({phase, step.id, "", to_js_json(step.raw), ""});
      continue;
    }
    common_a.push_back(step.id);
    compare_leaves(step.raw, found->second->raw, [&](const std::string& path, std::string before, std::string after) {
      out.push_back({phase, step.id, path, std::move(before), std::move(after)});
    });
  }
  std::size_t position = 0;
  for (const ResolvedStep& step : b) {
    if (!in_a.contains(step.id)) {
      out.push_back({phase, step.id, "", "", to_js_json(step.raw)});
    } else if (const std::string& expected = common_a[position++]; expected != step.id) {
      out.push_back({phase, step.id, "order", "after other steps", "where " + expected + " was"});
    }
  }
}

}  // namespace

Json Change::to_json() const {
  Json out{{"where", where}, {"subject", subject}};
  if (!field.empty()) out["field"] = field;
  out["before"] = before.empty() ? Json() : Json(before);
  out["after"] = after.empty() ? Json() : Json(after);
  return out;
}

std::vector<Change> diff_json(const std::string& where, const Json& a, const Json& b) {
  std::vector<Change> out;
  compare_leaves(a, b, [&](const std::string& path, std::string before, std::string after) {
    out.push_back({where, path, "", std::move(before), std::move(after)});
  });
  return out;
}

std::vector<Change> diff(const ExecutionPlan& a, const ExecutionPlan& b) {
  std::vector<Change> out = diff_json("session", a.session, b.session);
  for (Change& change : diff_json("policies", a.policies, b.policies)) out.push_back(std::move(change));
  diff_steps("prefill", a.prefill, b.prefill, out);
  diff_steps("decode", a.decode, b.decode, out);
  return out;
}

}  // namespace candor::plan
