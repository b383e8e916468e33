#include "text/jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "text/jinja/format.h"
#include "text/jinja/iterate.h"
#include "text/jinja/number.h"
#include "text/jinja/print.h"
#include "text/jinja/text_search.h"
#include "text/jinja/unicode.h"

namespace candor::jinja {
namespace {

bool equal_sequences(Runtime& runtime, const Sequence& a, const Sequence& b) {
  const bool a_list = a.kind == SequenceKind::list;
  const bool b_list = b.kind == SequenceKind::list;
  if (a_list != b_list || a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!equal(runtime, a.items[i], b.items[i])) return false;
  return true;
}

bool equal_dicts(Runtime& runtime, const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.entries()) {
    runtime.step();
    const Value* other = b.find(key);
    if (other == nullptr || !equal(runtime, value, *other)) return false;
  }
  return true;
}

/// Views of keys and items are equal as sets; those of values only if they are the same.
bool equal_views(Runtime& runtime, const DictView& a, const DictView& b) {
  if (a.kind != b.kind || a.kind == DictView::Kind::values) return &a == &b;
  const Dict& x = a.dict.dict();
  const Dict& y = b.dict.dict();
  if (a.kind == DictView::Kind::items) return equal_dicts(runtime, x, y);
  return x.size() == y.size() && std::all_of(x.entries().begin(), x.entries().end(),
                                             [&](const auto& entry) { return y.find(entry.first) != nullptr; });
}

bool equal_ranges(const Range& a, const Range& b) {
  if (a.length != b.length) return false;
  return a.length == 0 || (a.start == b.start && (a.length == 1 || a.step == b.step));
}

bool holds(CompareOp op, std::partial_ordering order) {
  switch (op) {
    case CompareOp::less:
      return order < 0;
    case CompareOp::less_equal:
      return order <= 0;
    case CompareOp::greater:
      return order > 0;
    case CompareOp::greater_equal:
      return order >= 0;
    default:
      return false;
  }
}

std::string_view symbol(CompareOp op) {
  switch (op) {
    case CompareOp::less:
      return "<";
    case CompareOp::less_equal:
      return "<=";
    case CompareOp::greater:
      return ">";
    default:
      return ">=";
  }
}

std::string_view symbol(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
      return "+";
    case BinaryOp::subtract:
      return "-";
    case BinaryOp::multiply:
      return "*";
    case BinaryOp::divide:
      return "/";
    case BinaryOp::floor_divide:
      return "//";
    case BinaryOp::modulo:
      return "%";
    case BinaryOp::power:
      return "**";
  }
  return "";
}

[[noreturn]] void fail_types(Runtime& runtime, BinaryOp op, const Value& a, const Value& b) {
  runtime.fail("unsupported operand types for {}: '{}' and '{}'", symbol(op), type_name(a), type_name(b));
}

Value checked(Runtime& runtime, const std::optional<Int>& value) {
  if (!value) runtime.fail("an integer has more than 127 bits");
  return Value::integer(*value);
}

Value concatenate_text(Runtime& runtime, const Value& a, const Value& b) {
  const bool markup = a.is_markup() || b.is_markup();
  const Value left = markup ? escape(runtime, a) : a;
  const Value right = markup ? escape(runtime, b) : b;
  runtime.check_room(left.view().size() + right.view().size(), 1);
  std::string text;
  text.reserve(left.view().size() + right.view().size());
  text += left.view();
  text += right.view();
  return runtime.text(std::move(text), markup);
}

Value concatenate_sequences(Runtime& runtime, const Sequence& a, const Sequence& b) {
  runtime.check_room(a.items.size() + b.items.size(), sizeof(Value));
  std::vector<Value> items;
  items.reserve(a.items.size() + b.items.size());
  items.insert(items.end(), a.items.begin(), a.items.end());
  items.insert(items.end(), b.items.begin(), b.items.end());
  return runtime.sequence(std::move(items), a.kind == SequenceKind::list ? SequenceKind::list : SequenceKind::tuple);
}

/// Text or a sequence, `count` times over.
Value repeat(Runtime& runtime, const Value& value, Int count) {
  const std::uint64_t times = count <= 0 ? 0 : static_cast<std::uint64_t>(std::min<Int>(count, INT64_MAX));
  if (value.is_text()) {
    Buffer out(runtime);
    out.append_repeated(value.view(), times);
    return out.finish(value.is_markup());
  }
  const auto& items = value.sequence().items;
  std::vector<Value> repeated;
  if (!items.empty()) {
    runtime.check_room(times, items.size() * sizeof(Value));
    repeated.reserve(times * items.size());
    for (std::uint64_t i = 0; i < times; ++i) repeated.insert(repeated.end(), items.begin(), items.end());
  }
  return runtime.sequence(std::move(repeated), value.is_list() ? SequenceKind::list : SequenceKind::tuple);
}

Value power_of(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral() && b.integral() >= 0)
    return checked(runtime, power(a.integral(), b.integral()));
  const double base = as_double(a);
  const double exponent = as_double(b);
  if (base == 0 && exponent < 0) runtime.fail("0 cannot be raised to a negative power");
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) && exponent != std::floor(exponent))
    runtime.fail("a negative number to a fractional power is complex, which is not supported");
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent))
    runtime.fail("the result of ** is too large");
  return Value::floating(result);
}

Value divide(Runtime& runtime, BinaryOp op, const Value& a, const Value& b) {
  if (as_double(b) == 0) runtime.fail_with(op == BinaryOp::modulo ? "modulo by zero" : "division by zero");
  if (op == BinaryOp::divide) return Value::floating(as_double(a) / as_double(b));
  if (a.is_integral() && b.is_integral()) {
    if (op == BinaryOp::modulo) return Value::integer(modulo(a.integral(), b.integral()));
    return checked(runtime, floor_divide(a.integral(), b.integral()));
  }
  return Value::floating(op == BinaryOp::modulo ? modulo(as_double(a), as_double(b))
                                                : floor_divide(as_double(a), as_double(b)));
}

Value calculate(Runtime& runtime, BinaryOp op, const Value& a, const Value& b) {
  const bool integers = a.is_integral() && b.is_integral();
  switch (op) {
    case BinaryOp::add:
      return integers ? checked(runtime, add(a.integral(), b.integral()))
                      : Value::floating(as_double(a) + as_double(b));
    case BinaryOp::subtract:
      return integers ? checked(runtime, subtract(a.integral(), b.integral()))
                      : Value::floating(as_double(a) - as_double(b));
    case BinaryOp::multiply:
      return integers ? checked(runtime, multiply(a.integral(), b.integral()))
                      : Value::floating(as_double(a) * as_double(b));
    case BinaryOp::power:
      return power_of(runtime, a, b);
    default:
      return divide(runtime, op, a, b);
  }
}

}  // namespace

void require_defined(Runtime& runtime, const Value& value) {
  if (value.is_undefined()) runtime.fail_with(std::get<UndefinedPtr>(value.storage())->message);
}

bool is_hashable(Runtime& runtime, const Value& value) {
  constexpr std::uint64_t kComparisons = 16;
  runtime.step();
  if (value.is_text()) runtime.walk(kComparisons * value.view().size());
  if (value.is_list() || value.is_dict() || value.is<DictViewPtr>()) return false;
  if (!value.is_tuple()) return true;
  const auto& items = value.sequence().items;
  return std::all_of(items.begin(), items.end(), [&](const Value& item) { return is_hashable(runtime, item); });
}

void require_hashable(Runtime& runtime, const Value& value) {
  if (!is_hashable(runtime, value)) runtime.fail("unhashable type: '{}'", type_name(value));
}

bool truth(Runtime& runtime, const Value& value) {
  if (value.is<bool>()) return std::get<bool>(value.storage());
  if (value.is_none() || value.is_missing()) return false;
  if (value.is_number()) return value.is<double>() ? std::get<double>(value.storage()) != 0 : value.integral() != 0;
  const auto size = length(runtime, value);
  return !size || *size != 0;
}

bool identical(const Value& a, const Value& b) {
  if (a.storage().index() != b.storage().index()) return false;
  if (a.is_none() || a.is_missing()) return true;
  if (a.is<bool>()) return a.integral() == b.integral();
  if (a.is<Int>()) return a.integral() == b.integral();
  if (a.is<double>()) return std::get<double>(a.storage()) == std::get<double>(b.storage());
  if (a.is_text()) return &a.text() == &b.text() || (a.text().length < 2 && a.view() == b.view());
  if (a.is<SequencePtr>()) return &a.sequence() == &b.sequence();
  if (a.is_dict()) return &a.dict() == &b.dict();
  if (a.is<Object*>()) return a.object() == b.object();
  return false;
}

bool equal(Runtime& runtime, const Value& a, const Value& b) {
  runtime.step();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.storage().index() != b.storage().index()) return false;
  if (a.is_text()) {
    if (a.view().size() != b.view().size()) return false;
    runtime.walk(a.view().size());
    return a.view() == b.view();
  }
  if (a.is<SequencePtr>())
    return &a.sequence() == &b.sequence() || equal_sequences(runtime, a.sequence(), b.sequence());
  if (a.is_dict()) return &a.dict() == &b.dict() || equal_dicts(runtime, a.dict(), b.dict());
  if (a.is<RangePtr>()) return equal_ranges(*std::get<RangePtr>(a.storage()), *std::get<RangePtr>(b.storage()));
  if (a.is<DictViewPtr>())
    return equal_views(runtime, *std::get<DictViewPtr>(a.storage()), *std::get<DictViewPtr>(b.storage()));
  if (a.is<Object*>()) return a.object() == b.object();
  return true;  // None is None, and undefined values are equal to each other
}

bool ordered(Runtime& runtime, CompareOp op, const Value& a, const Value& b) {
  runtime.step();
  require_defined(runtime, a);
  require_defined(runtime, b);
  if (a.is_number() && b.is_number()) return holds(op, compare_numbers(a, b));
  if (a.is_text() && b.is_text()) {
    runtime.walk(std::min(a.view().size(), b.view().size()));
    return holds(op, a.view() <=> b.view());
  }
  if ((a.is_list() && b.is_list()) || (a.is_tuple() && b.is_tuple())) {
    const auto& x = a.sequence().items;
    const auto& y = b.sequence().items;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!identical(x[i], y[i]) && !equal(runtime, x[i], y[i])) return ordered(runtime, op, x[i], y[i]);
    return holds(op, x.size() <=> y.size());
  }
  runtime.fail("'{}' not supported between instances of '{}' and '{}'", symbol(op), type_name(a), type_name(b));
}

bool contains(Runtime& runtime, const Value& container, const Value& element) {
  if (container.is_text()) {
    if (!element.is_text())
      runtime.fail("'in <string>' requires a string as left operand, not '{}'", type_name(element));
    runtime.walk(container.view().size());
    return find_text(container.view(), element.view()) != std::string_view::npos;
  }
  if (container.is_dict()) {
    require_hashable(runtime, element);
    return container.dict().find(element) != nullptr;
  }
  if (container.is<DictViewPtr>() && std::get<DictViewPtr>(container.storage())->kind == DictView::Kind::keys)
    return contains(runtime, std::get<DictViewPtr>(container.storage())->dict, element);
  if (!is_iterable(container)) runtime.fail("argument of type '{}' is not iterable", type_name(container));
  Cursor cursor(runtime, container);
  while (const auto item = cursor.next(runtime))
    if (identical(*item, element) || equal(runtime, *item, element)) return true;
  return false;
}

bool compare(Runtime& runtime, CompareOp op, const Value& a, const Value& b) {
  switch (op) {
    case CompareOp::equal:
      return equal(runtime, a, b);
    case CompareOp::not_equal:
      return !equal(runtime, a, b);
    case CompareOp::in:
      return contains(runtime, b, a);
    case CompareOp::not_in:
      return !contains(runtime, b, a);
    default:
      return ordered(runtime, op, a, b);
  }
}

Value binary(Runtime& runtime, BinaryOp op, const Value& a, const Value& b) {
  runtime.step();
  require_defined(runtime, a);
  if (op == BinaryOp::modulo && a.is_text()) return format_percent(runtime, a, b);
  require_defined(runtime, b);
  if (a.is_number() && b.is_number()) return calculate(runtime, op, a, b);
  if (op == BinaryOp::add) {
    if (a.is_text() && b.is_text()) return concatenate_text(runtime, a, b);
    if ((a.is_list() && b.is_list()) || (a.is_tuple() && b.is_tuple()))
      return concatenate_sequences(runtime, a.sequence(), b.sequence());
  }
  if (op == BinaryOp::multiply) {
    const auto repeats = [](const Value& value) { return value.is_text() || value.is<SequencePtr>(); };
    if (repeats(a) && b.is_integral()) return repeat(runtime, a, b.integral());
    if (a.is_integral() && repeats(b)) return repeat(runtime, b, a.integral());
  }
  fail_types(runtime, op, a, b);
}

Value unary(Runtime& runtime, UnaryOp op, const Value& value) {
  if (op == UnaryOp::logical_not) return Value::boolean(!truth(runtime, value));
  require_defined(runtime, value);
  const bool negative = op == UnaryOp::negative;
  if (value.is_integral())
    return negative ? checked(runtime, subtract(0, value.integral())) : Value::integer(value.integral());
  if (value.is<double>()) return negative ? Value::floating(-std::get<double>(value.storage())) : value;
  runtime.fail("bad operand type for unary {}: '{}'", negative ? '-' : '+', type_name(value));
}

std::optional<std::size_t> length(Runtime& runtime, const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_text()) return value.text().length;
  if (value.is<SequencePtr>()) return value.sequence().items.size();
  if (value.is_dict()) return value.dict().size();
  if (value.is<RangePtr>()) return std::get<RangePtr>(value.storage())->length;
  if (value.is<DictViewPtr>()) return std::get<DictViewPtr>(value.storage())->dict.dict().size();
  if (Object* object = value.object()) return object->length(runtime);
  return std::nullopt;
}

// ---- Slices ---------------------------------------------------------------------------------------------------------

namespace {

struct Extent {
  Int start;
  Int stop;
  Int step;
  std::size_t count;
};

/// Which elements of `size` the slice takes, by the rules of Python's slice.indices().
Extent extent(Runtime& runtime, Int size, const Value& start, const Value& stop, const Value& step) {
  const auto part = [&](const Value& value) -> std::optional<Int> {
    if (value.is_none()) return std::nullopt;
    if (!value.is_integral()) runtime.fail("slice indices must be integers or none, not '{}'", type_name(value));
    // Beyond the size all numbers mean the same; the cap keeps the sums below from overflowing.
    return std::clamp<Int>(value.integral(), -Int{1} << 96, Int{1} << 96);
  };
  const Int by = part(step).value_or(1);
  if (by == 0) runtime.fail("slice step cannot be zero");
  const Int lowest = by > 0 ? 0 : -1;
  const Int highest = by > 0 ? size : size - 1;
  const auto bound = [&](const std::optional<Int>& value, Int fallback) {
    if (!value) return fallback;
    return std::clamp<Int>(*value < 0 ? *value + size : *value, lowest, highest);
  };
  const Int from = bound(part(start), by > 0 ? lowest : highest);
  const Int to = bound(part(stop), by > 0 ? highest : lowest);
  const Int distance = by > 0 ? to - from : from - to;
  const Int stride = by > 0 ? by : -by;
  return {from, to, by, distance <= 0 ? 0 : static_cast<std::size_t>((distance + stride - 1) / stride)};
}

Value slice_text(Runtime& runtime, const Value& value, const Extent& taken) {
  const std::string_view text = value.view();
  taken.step == 1 ? runtime.walk(text.size()) : runtime.scan(text.size());
  if (taken.count == 0) return runtime.text(std::string(), value.is_markup());
  if (taken.step == 1) {
    const std::size_t begin = value.text().ascii() ? static_cast<std::size_t>(taken.start)
                                                   : byte_offset(text, static_cast<std::size_t>(taken.start));
    const std::string_view rest = text.substr(begin);
    const std::size_t size = value.text().ascii() ? taken.count : byte_offset(rest, taken.count);
    return runtime.text(rest.substr(0, size), value.is_markup());
  }
  runtime.check_room(value.text().length, sizeof(std::uint32_t));
  std::vector<std::uint32_t> starts;
  starts.reserve(value.text().length + 1);
  for (std::size_t at = 0; at < text.size(); (void)next_code_point(text, at))
    starts.push_back(static_cast<std::uint32_t>(at));
  starts.push_back(static_cast<std::uint32_t>(text.size()));
  std::string out;
  for (std::size_t i = 0; i < taken.count; ++i) {
    const auto at = static_cast<std::size_t>(taken.start + taken.step * static_cast<Int>(i));
    out += text.substr(starts[at], starts[at + 1] - starts[at]);
  }
  return runtime.text(std::move(out), value.is_markup());
}

}  // namespace

Value slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop, const Value& step) {
  require_defined(runtime, value);
  const auto taken = [&](std::size_t size) { return extent(runtime, static_cast<Int>(size), start, stop, step); };
  if (value.is_text()) return slice_text(runtime, value, taken(value.text().length));
  if (value.is<SequencePtr>()) {
    const auto& items = value.sequence().items;
    const Extent part = taken(items.size());
    runtime.check_room(part.count, sizeof(Value));
    std::vector<Value> out;
    out.reserve(part.count);
    for (std::size_t i = 0; i < part.count; ++i)
      out.push_back(items[static_cast<std::size_t>(part.start + part.step * static_cast<Int>(i))]);
    return runtime.sequence(std::move(out), value.is_list() ? SequenceKind::list : SequenceKind::tuple);
  }
  if (value.is<RangePtr>()) {
    const Range& range = *std::get<RangePtr>(value.storage());
    const Extent part = taken(range.length);
    Range out;
    out.start = range.start + range.step * part.start;
    out.step = range.step * part.step;
    out.length = part.count;
    out.stop = range.start + range.step * part.stop;
    return Value(Value::Storage(std::make_shared<const Range>(out)));
  }
  runtime.fail("'{}' object cannot be sliced", type_name(value));
}

}  // namespace candor::jinja
