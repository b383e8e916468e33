// Rules: choices written as data. A rule set is an ordered list of {match, value}; the first rule whose match holds for
// a context gives the value. Goals: kernel-path remaps and the like are files that a person can read and a test can
// run. Not a goal: expressions; whoever needs one computes a context value in code. Rejected: last match wins, because
// a list is read from the top.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/json.h"

namespace candor::kernels {

/// The value of the first rule of `rules` (an array of {match, value}) that matches `context` (an object). `match` is
/// {} or absent (always), or for each key of the context a value it must equal, or operators that must all hold: eq,
/// neq, gt, gte, lt, lte, in (a list), contains, startsWith, endsWith (a text or a list, one of which must). A missing
/// number satisfies gt, gte, lt and lte. The value is returned with every {"template": "…{key}…"} and {"context":
/// "key"} in it replaced. Throws Error(plan) if no rule matches or a value's key is missing, Error(format) for a
/// malformed rule.
[[nodiscard]] Json select_rule_value(const Json& rules, const Json& context);

/// Rule sets by domain, group and name.
class RuleRegistry {
 public:
  /// `group` is an object of rule sets by name.
  void add(std::string_view domain, std::string_view group_name, Json group);

  /// select_rule_value() of one set. Throws Error(not_found) if the domain, group or set is unknown.
  [[nodiscard]] Json select(std::string_view domain, std::string_view group, std::string_view set,
                            const Json& context) const;

 private:
  std::unordered_map<std::string, std::unordered_map<std::string, Json>> domains_;
};

}  // namespace candor::kernels
