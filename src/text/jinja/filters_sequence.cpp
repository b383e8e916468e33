#include <algorithm>

#include "text/jinja/attribute_path.h"
#include "text/jinja/binding.h"
#include "text/jinja/filter_tables.h"
#include "text/jinja/iterate.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/text_edit.h"

namespace candor::jinja {
namespace {

Value generator(Runtime& runtime, Generator::Next next) {
  return Value::object(runtime.make<Generator>("generator", std::move(next)));
}

Value length_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "length", {}, 0);
  const auto size = length(runtime, subject);
  if (!size) runtime.fail("length: object of type '{}' has no length", type_name(subject));
  return Value::integer(static_cast<Int>(*size));
}

Value list_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "list", {}, 0);
  return runtime.list(to_vector(runtime, subject));
}

Value first_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "first", {}, 0);
  auto item = Cursor(runtime, subject).next(runtime);
  return item ? *item : runtime.undefined("no first item, the sequence was empty");
}

bool is_reversible(const Value& value) {
  return is_iterable(value) && value.object() == nullptr;
}

Value last_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "last", {}, 0);
  if (!is_reversible(subject)) runtime.fail("last: '{}' object is not reversible", type_name(subject));
  if (subject.is_text() && !subject.view().empty())
    return slice(runtime, subject, Value::integer(-1), Value::none(), Value::none());
  const auto items = to_vector(runtime, subject);
  return items.empty() ? runtime.undefined("no last item, the sequence was empty") : items.back();
}

Value reverse_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "reverse", {}, 0);
  if (subject.is_text()) return slice(runtime, subject, Value::none(), Value::none(), Value::integer(-1));
  if (!is_iterable(subject)) runtime.fail("reverse: '{}' object is not iterable", type_name(subject));
  auto items = to_vector(runtime, subject);
  std::reverse(items.begin(), items.end());
  const Value reversed = runtime.list(std::move(items));
  if (!is_reversible(subject)) return reversed;
  auto next = [cursor = Cursor(runtime, reversed)](Runtime& r) mutable { return cursor.next(r); };
  return Value::object(runtime.make<Generator>("reversed", std::move(next)));
}

Value batch_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "batch", {"linecount", "fill_with"}, 1);
  struct State {
    std::optional<Cursor> cursor;
    std::vector<Value> row;
    bool exhausted = false;
  };
  auto state = std::make_shared<State>();
  const Int count = bound.integer(0, 0);
  return generator(runtime, [=, fill = bound.or_else(1, Value::none())](Runtime& r) -> std::optional<Value> {
    if (!state->cursor) state->cursor.emplace(r, subject);
    if (state->exhausted) return std::nullopt;
    while (auto item = state->cursor->next(r)) {
      const bool full = static_cast<Int>(state->row.size()) == count;
      std::vector<Value> done;
      if (full) done = std::exchange(state->row, {});
      r.check_room(state->row.size() + 1, 2 * sizeof(Value));
      state->row.push_back(std::move(*item));
      if (full) return r.list(std::move(done));
    }
    state->exhausted = true;
    if (state->row.empty()) return std::nullopt;
    if (!fill.is_none() && static_cast<Int>(state->row.size()) < count) {
      r.check_room(static_cast<std::uint64_t>(std::min<Int>(count, INT64_MAX)), sizeof(Value));
      state->row.resize(static_cast<std::size_t>(count), fill);
    }
    return r.list(std::move(state->row));
  });
}

Value slice_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "slice", {"slices", "fill_with"}, 1);
  struct State {
    std::optional<std::vector<Value>> items;
    std::size_t number = 0;
    std::size_t at = 0;
  };
  auto state = std::make_shared<State>();
  const Int slices = bound.integer(0, 0);
  return generator(runtime, [=, fill = bound.or_else(1, Value::none())](Runtime& r) -> std::optional<Value> {
    if (!state->items) state->items = to_vector(r, subject);
    if (slices == 0) r.fail("slice: the number of slices is zero");
    if (slices < 0 || static_cast<Int>(state->number) >= slices) return std::nullopt;
    const auto total = static_cast<Int>(state->items->size());
    const bool has_extra = static_cast<Int>(state->number) < total % slices;
    const auto size = static_cast<std::size_t>(total / slices) + (has_extra ? 1 : 0);
    const auto begin = state->items->begin() + static_cast<std::ptrdiff_t>(state->at);
    std::vector<Value> part(begin, begin + static_cast<std::ptrdiff_t>(size));
    if (!fill.is_none() && !has_extra) part.push_back(fill);
    state->at += size;
    ++state->number;
    return r.list(std::move(part));
  });
}

Value items_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "items", {}, 0);
  return generator(runtime, [subject, at = std::size_t{0}](Runtime& r) mutable -> std::optional<Value> {
    if (subject.is_undefined()) return std::nullopt;
    if (!subject.is_dict()) r.fail("items: can only get item pairs from a mapping, not '{}'", type_name(subject));
    if (at >= subject.dict().size()) return std::nullopt;
    const auto& [key, value] = subject.dict().entries()[at++];
    return r.pair(key, value);
  });
}

Value join_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "join", {"d", "attribute"}, 0);
  std::vector<Value> items = to_vector(runtime, subject);
  if (bound.has(1) && !bound[1].is_none()) {
    const AttributePath path(runtime, bound[1]);
    for (Value& item : items) item = path.get(runtime, item);
  }
  Value separator = to_soft_text(runtime, bound.or_else(0, runtime.text("")));
  if (!runtime.autoescape) {
    for (Value& item : items) item = to_text(runtime, item);
    return join_text(runtime, to_text(runtime, separator), items);
  }
  const bool escapes = !separator.is_markup() &&
                       std::any_of(items.begin(), items.end(), [](const Value& item) { return item.is_markup(); });
  if (escapes) separator = escape(runtime, separator);
  for (Value& item : items) item = to_soft_text(runtime, item);
  return join_text(runtime, separator, items);
}

Value sum_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "sum", {"attribute", "start"}, 0);
  const AttributePath path(runtime, bound.or_else(0, Value::none()));
  Value total = bound.or_else(1, Value::integer(0));
  if (total.is_text()) runtime.fail("sum: strings cannot be summed; use join");
  Cursor cursor(runtime, subject);
  while (const auto item = cursor.next(runtime))
    total = binary(runtime, BinaryOp::add, total, path.get(runtime, *item));
  return total;
}

constexpr FilterEntry kSequenceFilters[] = {
    {"batch", batch_filter}, {"count", length_filter}, {"first", first_filter},     {"items", items_filter},
    {"join", join_filter},   {"last", last_filter},    {"length", length_filter},   {"list", list_filter},
    {"slice", slice_filter}, {"sum", sum_filter},      {"reverse", reverse_filter},
};

}  // namespace

std::span<const FilterEntry> sequence_filters() {
  return kSequenceFilters;
}

}  // namespace candor::jinja
