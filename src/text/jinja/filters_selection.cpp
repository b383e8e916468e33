#include "text/jinja/attribute_path.h"
#include "text/jinja/filter_tables.h"
#include "text/jinja/iterate.h"
#include "text/jinja/operators.h"
#include "text/jinja/tests.h"

namespace candor::jinja {
namespace {

using Apply = std::function<Value(Runtime&, const Value&)>;

/// The arguments behind the first `count` positional ones.
Arguments without_first(const Arguments& arguments, std::size_t count) {
  Arguments rest;
  rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(count), arguments.positional.end());
  rest.named = arguments.named;
  return rest;
}

/// What map does with an element: look up an attribute, or apply a filter by name.
Apply mapping(Runtime& runtime, const Arguments& arguments) {
  Value attribute;
  Value fallback = Value::none();
  for (const auto& [name, value] : arguments.named) {
    if (name == "attribute") attribute = value;
    if (name == "default") fallback = value;
  }
  if (arguments.positional.empty() && !attribute.is_missing()) {
    for (const auto& [name, value] : arguments.named)
      if (name != "attribute" && name != "default") runtime.fail("map has no parameter '{}'", printable(name));
    return [path = AttributePath(runtime, attribute), fallback](Runtime& r, const Value& item) {
      return path.get(r, item, fallback);
    };
  }
  if (arguments.positional.empty()) runtime.fail("map requires the name of a filter, or attribute=");
  const Value& name = arguments.positional[0];
  const FilterEntry* filter = name.is_text() ? find_filter(name.view()) : nullptr;
  if (filter == nullptr)
    runtime.fail("map: no filter named '{}'", name.is_text() ? printable(name.view()) : std::string(type_name(name)));
  return [filter, rest = without_first(arguments, 1)](Runtime& r, const Value& item) {
    return filter->run(r, item, rest);
  };
}

Value map_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  struct State {
    std::optional<Cursor> cursor;
    Apply apply;
  };
  auto state = std::make_shared<State>();
  auto next = [=](Runtime& r) -> std::optional<Value> {
    if (!state->cursor) {
      if (!truth(r, subject)) return std::nullopt;
      state->apply = mapping(r, arguments);
      state->cursor.emplace(r, subject);
    }
    const auto item = state->cursor->next(r);
    if (!item) return std::nullopt;
    return state->apply(r, *item);
  };
  return Value::object(runtime.make<Generator>("generator", std::move(next)));
}

using Holds = std::function<bool(Runtime&, const Value&)>;

/// The test of select and its relatives: by name, or without one the truth of the element or attribute.
Holds condition(Runtime& runtime, const Arguments& arguments, bool by_attribute) {
  AttributePath path;
  if (by_attribute) {
    if (arguments.positional.empty()) runtime.fail("the attribute's name is missing");
    path = AttributePath(runtime, arguments.positional[0]);
  }
  const std::size_t name_at = by_attribute ? 1 : 0;
  if (arguments.positional.size() <= name_at)
    return [path](Runtime& r, const Value& item) { return truth(r, path.get(r, item)); };
  const Value& name = arguments.positional[name_at];
  const TestEntry* test = name.is_text() ? find_test(name.view()) : nullptr;
  if (test == nullptr)
    runtime.fail("no test named '{}'", name.is_text() ? printable(name.view()) : std::string(type_name(name)));
  return [path, test, rest = without_first(arguments, name_at + 1)](Runtime& r, const Value& item) {
    return test->run(r, path.get(r, item), rest);
  };
}

template <bool wanted, bool by_attribute>
Value select_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  struct State {
    std::optional<Cursor> cursor;
    Holds holds;
  };
  auto state = std::make_shared<State>();
  auto next = [=](Runtime& r) -> std::optional<Value> {
    if (!state->cursor) {
      if (!truth(r, subject)) return std::nullopt;
      state->holds = condition(r, arguments, by_attribute);
      state->cursor.emplace(r, subject);
    }
    while (auto item = state->cursor->next(r))
      if (state->holds(r, *item) == wanted) return item;
    return std::nullopt;
  };
  return Value::object(runtime.make<Generator>("generator", std::move(next)));
}

constexpr FilterEntry kSelectionFilters[] = {
    {"map", map_filter},
    {"reject", select_filter<false, false>},
    {"rejectattr", select_filter<false, true>},
    {"select", select_filter<true, false>},
    {"selectattr", select_filter<true, true>},
};

}  // namespace

std::span<const FilterEntry> selection_filters() {
  return kSelectionFilters;
}

}  // namespace candor::jinja
