#include "kernels/rules.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/js_value.h"

namespace candor::kernels {
namespace {

enum class Order { less, equal, greater, unordered };

/// How JavaScript's relational operators see two values: texts by their units, everything else as numbers.
Order compare(js::Value a, js::Value b) {
  if (js::is_string(a) && js::is_string(b)) {
    const int order = a->get_ref<const std::string&>().compare(b->get_ref<const std::string&>());
    return order < 0 ? Order::less : order > 0 ? Order::greater : Order::equal;
  }
  const double x = js::to_number(a);
  const double y = js::to_number(b);
  if (std::isnan(x) || std::isnan(y)) return Order::unordered;
  return x < y ? Order::less : x > y ? Order::greater : Order::equal;
}

template <typename Test>
bool any_text(js::Value actual, const Json& expected, Test test) {
  if (!js::is_string(actual)) return false;
  const std::string_view text = actual->get_ref<const std::string&>();
  const auto holds = [&](const Json& part) {
    return part.is_string() && test(text, part.get_ref<const std::string&>());
  };
  return expected.is_array() ? std::any_of(expected.begin(), expected.end(), holds) : holds(expected);
}

bool is_in(js::Value actual, const Json& list) {
  return list.is_array() &&
         std::any_of(list.begin(), list.end(), [&](const Json& element) { return js::strict_equal(actual, &element); });
}

bool operator_holds(std::string_view name, js::Value actual, const Json& expected) {
  if (name == "eq") return js::strict_equal(actual, &expected);
  if (name == "neq") return !js::strict_equal(actual, &expected);
  const Order order = compare(actual, &expected);
  // Comparisons reject what is ordered the wrong way, so a missing number passes.
  if (name == "gt") return order != Order::less && order != Order::equal;
  if (name == "gte") return order != Order::less;
  if (name == "lt") return order != Order::greater && order != Order::equal;
  if (name == "lte") return order != Order::greater;
  if (name == "in") return is_in(actual, expected);
  if (name == "contains")
    return any_text(actual, expected, [](auto text, auto part) { return text.find(part) != std::string_view::npos; });
  if (name == "startsWith")
    return any_text(actual, expected, [](auto text, auto part) { return text.starts_with(part); });
  if (name == "endsWith") return any_text(actual, expected, [](auto text, auto part) { return text.ends_with(part); });
  fail(ErrorCode::format,
       "rule operator \"{}\" is unknown; use eq, neq, gt, gte, lt, lte, in, contains, startsWith or "
       "endsWith",
       name);
}

bool matches(js::Value match, const Json& context) {
  if (!js::truthy(match)) return true;
  if (!match->is_object()) fail(ErrorCode::format, "rule match must be an object; got {}", js::to_string(match));
  for (const auto& [key, expected] : match->get_ref<const Json::object_t&>()) {
    const js::Value actual = js::get(&context, key);
    if (!expected.is_object()) {
      if (!js::strict_equal(actual, &expected)) return false;
      continue;
    }
    for (const auto& [name, operand] : expected.get_ref<const Json::object_t&>())
      if (!operator_holds(name, actual, operand)) return false;
  }
  return true;
}

const Json& context_value(const Json& context, std::string_view key) {
  const js::Value value = js::get(&context, key);
  if (value == nullptr) fail(ErrorCode::plan, "RuleRegistry: missing context value \"{}\".", key);
  return *value;
}

std::string expand_template(std::string_view text, const Json& context) {
  std::string out;
  while (!text.empty()) {
    const auto open = text.find('{');
    const auto close = open == std::string_view::npos ? open : text.find('}', open);
    if (close == std::string_view::npos) break;
    out += text.substr(0, open);
    out += js::to_string(&context_value(context, text.substr(open + 1, close - open - 1)));
    text.remove_prefix(close + 1);
  }
  return out.append(text);
}

Json expand(const Json& value, const Json& context) {
  if (value.is_array()) {
    Json out = Json::array();
    for (const Json& element : value) out.push_back(expand(element, context));
    return out;
  }
  if (!value.is_object()) return value;
  if (const js::Value text = js::get(&value, "template"); js::is_string(text))
    return expand_template(text->get_ref<const std::string&>(), context);
  if (const js::Value key = js::get(&value, "context"); js::is_string(key))
    return context_value(context, key->get_ref<const std::string&>());
  Json out = value;
  for (auto& [key, member] : out.get_ref<Json::object_t&>()) member = expand(member, context);
  return out;
}

}  // namespace

Json select_rule_value(const Json& rules, const Json& context) {
  if (!rules.is_array()) fail(ErrorCode::format, "a rule set must be an array of {{match, value}}");
  for (const Json& rule : rules) {
    if (!rule.is_object()) fail(ErrorCode::format, "a rule must be an object {{match, value}}");
    if (!matches(js::get(&rule, "match"), context)) continue;
    const js::Value value = js::get(&rule, "value");
    return value == nullptr ? Json() : expand(*value, context);
  }
  fail(ErrorCode::plan, "RuleMatcher: no rule matched context {}", to_js_json(context));
}

void RuleRegistry::add(std::string_view domain, std::string_view group_name, Json group) {
  if (!group.is_object()) fail(ErrorCode::format, "rule group \"{}.{}\" must be an object", domain, group_name);
  domains_[std::string(domain)][std::string(group_name)] = std::move(group);
}

Json RuleRegistry::select(std::string_view domain, std::string_view group, std::string_view set,
                          const Json& context) const {
  const auto found_domain = domains_.find(std::string(domain));
  if (found_domain == domains_.end()) fail(ErrorCode::not_found, "RuleRegistry: unknown domain \"{}\".", domain);
  const auto found_group = found_domain->second.find(std::string(group));
  if (found_group == found_domain->second.end())
    fail(ErrorCode::not_found, "RuleRegistry: unknown rule group \"{}.{}\".", domain, group);
  const js::Value rules = js::get(&found_group->second, set);
  if (rules == nullptr) fail(ErrorCode::not_found, "RuleRegistry: unknown rule set \"{}.{}.{}\".", domain, group, set);
  return select_rule_value(*rules, context);
}

}  // namespace candor::kernels
