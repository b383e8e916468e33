#include <algorithm>

#include "text/jinja/attribute_path.h"
#include "text/jinja/binding.h"
#include "text/jinja/filter_tables.h"
#include "text/jinja/iterate.h"
#include "text/jinja/operators.h"
#include "text/jinja/sort.h"
#include "text/jinja/text_split.h"

namespace candor::jinja {
namespace {

/// An element with what it is compared by.
struct Keyed {
  Value key;
  Value item;
};

Value key_of(Runtime& runtime, const AttributePath& path, const Value& item, bool case_sensitive,
             const Value& fallback = Value::none()) {
  Value key = path.get(runtime, item, fallback);
  return case_sensitive ? key : ignore_case(runtime, key);
}

std::vector<Keyed> keyed(Runtime& runtime, const Value& subject, const std::function<Value(const Value&)>& key) {
  std::vector<Keyed> result;
  Cursor cursor(runtime, subject);
  while (auto item = cursor.next(runtime)) {
    if (result.size() == result.capacity()) runtime.check_room(2 * result.size() + 1, sizeof(Keyed));
    Value k = key(*item);
    result.push_back({std::move(k), std::move(*item)});
  }
  return result;
}

void sort_keyed(Runtime& runtime, std::vector<Keyed>& items, bool reverse) {
  // Reversed before and after, equal elements keep their order in the descending result too.
  if (reverse) std::reverse(items.begin(), items.end());
  runtime.check_room(items.size(), sizeof(Keyed));
  stable_sort(items, [&](const Keyed& a, const Keyed& b) { return less(runtime, a.key, b.key); });
  if (reverse) std::reverse(items.begin(), items.end());
}

Value items_of(Runtime& runtime, std::vector<Keyed> items) {
  std::vector<Value> values;
  values.reserve(items.size());
  for (Keyed& entry : items) values.push_back(std::move(entry.item));
  return runtime.list(std::move(values));
}

/// The attribute may name several, with commas between.
Value sort_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "sort", {"reverse", "case_sensitive", "attribute"}, 0);
  const bool case_sensitive = bound.truth(1, false);
  std::vector<AttributePath> paths;
  const Value attribute = bound.or_else(2, Value::none());
  if (attribute.is_text()) {
    split_at(attribute.view(), ",", -1,
             [&](std::string_view part) { paths.emplace_back(runtime, runtime.text(part)); });
  } else {
    paths.emplace_back(runtime, attribute);
  }
  auto items = keyed(runtime, subject, [&](const Value& item) {
    std::vector<Value> keys;
    for (const auto& path : paths) keys.push_back(key_of(runtime, path, item, case_sensitive));
    return runtime.list(std::move(keys));
  });
  sort_keyed(runtime, items, bound.truth(0, false));
  return items_of(runtime, std::move(items));
}

Value dictsort_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "dictsort", {"case_sensitive", "by", "reverse"}, 0);
  const bool case_sensitive = bound.truth(0, false);
  const std::string_view by = bound.text(1, "key");
  if (by != "key" && by != "value") runtime.fail("dictsort: you can only sort by either \"key\" or \"value\"");
  require_defined(runtime, subject);
  if (!subject.is_dict()) runtime.fail("dictsort: expected a dict, got '{}'", type_name(subject));
  std::vector<Keyed> items;
  for (const auto& [key, value] : subject.dict().entries()) {
    const Value& compared = by == "key" ? key : value;
    items.push_back({case_sensitive ? compared : ignore_case(runtime, compared), runtime.pair(key, value)});
  }
  sort_keyed(runtime, items, bound.truth(2, false));
  return items_of(runtime, std::move(items));
}

Value groupby_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "groupby", {"attribute", "default", "case_sensitive"}, 1);
  const AttributePath path(runtime, bound[0]);
  const Value fallback = bound.or_else(1, Value::none());
  const bool case_sensitive = bound.truth(2, false);
  auto items =
      keyed(runtime, subject, [&](const Value& item) { return key_of(runtime, path, item, case_sensitive, fallback); });
  sort_keyed(runtime, items, false);
  std::vector<Value> groups;
  for (std::size_t start = 0; start < items.size();) {
    std::size_t end = start + 1;
    while (end < items.size() && equal(runtime, items[start].key, items[end].key)) ++end;
    // The group is called as its first element is, not as it was compared.
    Value grouper = path.get(runtime, items[start].item, fallback);
    std::vector<Value> members;
    for (; start < end; ++start) members.push_back(std::move(items[start].item));
    std::vector<Value> group;
    group.push_back(std::move(grouper));
    group.push_back(runtime.list(std::move(members)));
    groups.push_back(runtime.sequence(std::move(group), SequenceKind::group));
  }
  return runtime.list(std::move(groups));
}

Value unique_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "unique", {"case_sensitive", "attribute"}, 0);
  struct State {
    std::optional<Cursor> cursor;
    Dict seen;
  };
  auto state = std::make_shared<State>();
  const bool case_sensitive = bound.truth(0, false);
  auto next = [=, path = AttributePath(runtime, bound.or_else(1, Value::none()))](Runtime& r) -> std::optional<Value> {
    if (!state->cursor) state->cursor.emplace(r, subject);
    while (auto item = state->cursor->next(r)) {
      Value key = key_of(r, path, *item, case_sensitive);
      require_hashable(r, key);
      if (state->seen.find(key) != nullptr) continue;
      r.check_room(state->seen.size() + 1, sizeof(Dict::Entry) + 64);
      state->seen.set(std::move(key), Value::none());
      return item;
    }
    return std::nullopt;
  };
  return Value::object(runtime.make<Generator>("generator", std::move(next)));
}

template <CompareOp better>
Value extreme_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "min", {"case_sensitive", "attribute"}, 0);
  const bool case_sensitive = bound.truth(0, false);
  Cursor cursor(runtime, subject);
  auto best = cursor.next(runtime);
  if (!best) return runtime.undefined("no aggregated item, the sequence was empty");
  const AttributePath path(runtime, bound.or_else(1, Value::none()));
  Value best_key = key_of(runtime, path, *best, case_sensitive);
  while (auto item = cursor.next(runtime)) {
    Value key = key_of(runtime, path, *item, case_sensitive);
    if (!ordered(runtime, better, key, best_key)) continue;
    best = std::move(item);
    best_key = std::move(key);
  }
  return *best;
}

constexpr FilterEntry kOrderFilters[] = {
    {"dictsort", dictsort_filter},
    {"groupby", groupby_filter},
    {"max", extreme_filter<CompareOp::greater>},
    {"min", extreme_filter<CompareOp::less>},
    {"sort", sort_filter},
    {"unique", unique_filter},
};

}  // namespace

std::span<const FilterEntry> order_filters() {
  return kOrderFilters;
}

}  // namespace candor::jinja
