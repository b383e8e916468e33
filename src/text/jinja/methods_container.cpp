#include <algorithm>
#include <bit>
#include <cmath>

#include "text/jinja/binding.h"
#include "text/jinja/iterate.h"
#include "text/jinja/methods.h"
#include "text/jinja/number.h"
#include "text/jinja/operators.h"

namespace candor::jinja {
namespace {

// ---- dict -----------------------------------------------------------------------------------------------------------

Value get_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = positional(runtime, arguments, "get", {"key", "default"}, 1);
  require_hashable(runtime, bound[0]);
  if (const Value* found = self.dict().find(bound[0])) return *found;
  return bound.or_else(1, Value::none());
}

template <DictView::Kind kind>
Value view_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  (void)positional(runtime, arguments, "the method", {}, 0);
  return Value(Value::Storage(std::make_shared<const DictView>(DictView{self, kind})));
}

Value copy_dict(Runtime& runtime, const Value& self, const Arguments& arguments) {
  (void)positional(runtime, arguments, "copy", {}, 0);
  return runtime.dict(self.dict().copy());
}

Value from_keys(Runtime& runtime, const Value&, const Arguments& arguments) {
  const Bound bound = positional(runtime, arguments, "fromkeys", {"iterable", "value"}, 1);
  Dict dict;
  Cursor cursor(runtime, bound[0]);
  while (auto key = cursor.next(runtime)) {
    require_hashable(runtime, *key);
    runtime.check_room(dict.size() + 1, sizeof(Dict::Entry));
    dict.set(std::move(*key), bound.or_else(1, Value::none()));
  }
  return runtime.dict(std::move(dict));
}

// ---- list, tuple, range ---------------------------------------------------------------------------------------------

Value count_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = positional(runtime, arguments, "count", {"value"}, 1);
  Int count = 0;
  Cursor cursor(runtime, self);
  while (const auto item = cursor.next(runtime))
    if (identical(*item, bound[0]) || equal(runtime, *item, bound[0])) ++count;
  return Value::integer(count);
}

Value index_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = positional(runtime, arguments, "index", {"value", "start", "stop"}, 1);
  const Int size = static_cast<Int>(*length(runtime, self));
  const auto limit = [&](std::size_t i, Int fallback) {
    const Int value = bound.integer(i, fallback);
    return value < 0 ? std::max<Int>(value + size, 0) : value;
  };
  const Int start = limit(1, 0);
  const Int stop = limit(2, size);
  Cursor cursor(runtime, self);
  for (Int i = 0; i < stop; ++i) {
    const auto item = cursor.next(runtime);
    if (!item) break;
    if (i >= start && (identical(*item, bound[0]) || equal(runtime, *item, bound[0]))) return Value::integer(i);
  }
  runtime.fail("index: the value is not in the {}", type_name(self));
}

Value copy_list(Runtime& runtime, const Value& self, const Arguments& arguments) {
  (void)positional(runtime, arguments, "copy", {}, 0);
  return runtime.list(self.sequence().items);
}

// ---- int, float -----------------------------------------------------------------------------------------------------

Value itself(Runtime& runtime, const Value& self, const Arguments& arguments) {
  (void)positional(runtime, arguments, "the method", {}, 0);
  return self.is_integral() ? Value::integer(self.integral()) : self;
}

Value bit_length(Runtime& runtime, const Value& self, const Arguments& arguments) {
  (void)positional(runtime, arguments, "bit_length", {}, 0);
  Int bits = 0;
  for (Int rest = self.integral(); rest != 0; rest /= 2) ++bits;
  return Value::integer(bits);
}

Value bit_count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  (void)positional(runtime, arguments, "bit_count", {}, 0);
  Int ones = 0;
  for (Int rest = self.integral(); rest != 0; rest /= 2) ones += rest % 2 != 0 ? 1 : 0;
  return Value::integer(ones);
}

Value is_integer(Runtime& runtime, const Value& self, const Arguments& arguments) {
  (void)positional(runtime, arguments, "is_integer", {}, 0);
  const double value = as_double(self);
  return Value::boolean(std::isfinite(value) && value == std::floor(value));
}

constexpr Method kDict[] = {
    {"copy", copy_dict},
    {"fromkeys", from_keys},
    {"get", get_method},
    {"items", view_method<DictView::Kind::items>},
    {"keys", view_method<DictView::Kind::keys>},
    {"values", view_method<DictView::Kind::values>},
};
constexpr Method kList[] = {{"copy", copy_list}, {"count", count_method}, {"index", index_method}};
constexpr Method kTuple[] = {{"count", count_method}, {"index", index_method}};
constexpr Method kInteger[] = {{"bit_count", bit_count}, {"bit_length", bit_length}, {"conjugate", itself}};
constexpr Method kFloat[] = {{"conjugate", itself}, {"is_integer", is_integer}};

}  // namespace

std::span<const Method> dict_methods() {
  return kDict;
}
std::span<const Method> list_methods() {
  return kList;
}
std::span<const Method> tuple_methods() {
  return kTuple;
}
std::span<const Method> range_methods() {
  return kTuple;
}
std::span<const Method> integer_methods() {
  return kInteger;
}
std::span<const Method> float_methods() {
  return kFloat;
}

}  // namespace candor::jinja
