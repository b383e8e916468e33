#include "text/jinja/tests.h"

#include <algorithm>
#include <iterator>

#include "text/jinja/attribute.h"
#include "text/jinja/binding.h"
#include "text/jinja/filters.h"
#include "text/jinja/iterate.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/text_class.h"

namespace candor::jinja {
namespace {

using Is = bool (*)(Runtime& runtime, const Value& subject);

/// A test without arguments.
template <Is is>
bool plain(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "the test", {}, 0);
  return is(runtime, subject);
}

template <CompareOp op>
bool compares(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "the test", {"other"}, 1, Naming::positional_only);
  return compare(runtime, op, subject, bound[0]);
}

bool has_remainder(Runtime& runtime, const Value& subject, Int divisor, Int rest) {
  const Value modulo = binary(runtime, BinaryOp::modulo, subject, Value::integer(divisor));
  return equal(runtime, modulo, Value::integer(rest));
}

bool divisible_by(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "divisibleby", {"num"}, 1);
  return equal(runtime, binary(runtime, BinaryOp::modulo, subject, bound[0]), Value::integer(0));
}

bool same_as(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "sameas", {"other"}, 1);
  return identical(subject, bound[0]);
}

bool is_in(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "in", {"seq"}, 1);
  return contains(runtime, bound[0], subject);
}

bool is_odd(Runtime& runtime, const Value& value) {
  return has_remainder(runtime, value, 2, 1);
}
bool is_even(Runtime& runtime, const Value& value) {
  return has_remainder(runtime, value, 2, 0);
}
bool is_defined(Runtime&, const Value& value) {
  return !value.is_undefined();
}
bool is_undefined(Runtime&, const Value& value) {
  return value.is_undefined();
}
bool is_none(Runtime&, const Value& value) {
  return value.is_none();
}
bool is_boolean(Runtime&, const Value& value) {
  return value.is<bool>();
}
bool is_true(Runtime&, const Value& value) {
  return value.is<bool>() && value.integral() != 0;
}
bool is_false(Runtime&, const Value& value) {
  return value.is<bool>() && value.integral() == 0;
}
bool is_integer(Runtime&, const Value& value) {
  return value.is<Int>();
}
bool is_float(Runtime&, const Value& value) {
  return value.is<double>();
}
bool is_number(Runtime&, const Value& value) {
  return value.is_number();
}
bool is_string(Runtime&, const Value& value) {
  return value.is_text();
}
bool is_mapping(Runtime&, const Value& value) {
  return value.is_dict();
}
bool can_iterate(Runtime&, const Value& value) {
  return is_iterable(value);
}
bool can_call(Runtime&, const Value& value) {
  return is_callable(value);
}
bool is_escaped(Runtime&, const Value& value) {
  return value.is_markup();
}

/// Whatever has a length and items; of an undefined value, too, the class has both.
bool is_sequence(Runtime&, const Value& value) {
  return value.is_undefined() || value.is_text() || value.is<SequencePtr>() || value.is_dict() || value.is<RangePtr>();
}

bool is_lower(Runtime& runtime, const Value& value) {
  return is_lower_text(to_text(runtime, value).view());
}
bool is_upper(Runtime& runtime, const Value& value) {
  return is_upper_text(to_text(runtime, value).view());
}

bool names_filter(Runtime& runtime, const Value& value) {
  require_hashable(runtime, value);
  return value.is_text() && find_filter(value.view()) != nullptr;
}

bool names_test(Runtime& runtime, const Value& value) {
  require_hashable(runtime, value);
  return value.is_text() && find_test(value.view()) != nullptr;
}

constexpr TestEntry kTests[] = {
    {"!=", compares<CompareOp::not_equal>},
    {"<", compares<CompareOp::less>},
    {"<=", compares<CompareOp::less_equal>},
    {"==", compares<CompareOp::equal>},
    {">", compares<CompareOp::greater>},
    {">=", compares<CompareOp::greater_equal>},
    {"boolean", plain<is_boolean>},
    {"callable", plain<can_call>},
    {"defined", plain<is_defined>},
    {"divisibleby", divisible_by},
    {"eq", compares<CompareOp::equal>},
    {"equalto", compares<CompareOp::equal>},
    {"escaped", plain<is_escaped>},
    {"even", plain<is_even>},
    {"false", plain<is_false>},
    {"filter", plain<names_filter>},
    {"float", plain<is_float>},
    {"ge", compares<CompareOp::greater_equal>},
    {"greaterthan", compares<CompareOp::greater>},
    {"gt", compares<CompareOp::greater>},
    {"in", is_in},
    {"integer", plain<is_integer>},
    {"iterable", plain<can_iterate>},
    {"le", compares<CompareOp::less_equal>},
    {"lessthan", compares<CompareOp::less>},
    {"lower", plain<is_lower>},
    {"lt", compares<CompareOp::less>},
    {"mapping", plain<is_mapping>},
    {"ne", compares<CompareOp::not_equal>},
    {"none", plain<is_none>},
    {"number", plain<is_number>},
    {"odd", plain<is_odd>},
    {"sameas", same_as},
    {"sequence", plain<is_sequence>},
    {"string", plain<is_string>},
    {"test", plain<names_test>},
    {"true", plain<is_true>},
    {"undefined", plain<is_undefined>},
    {"upper", plain<is_upper>},
};

}  // namespace

const TestEntry* find_test(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kTests), std::end(kTests), [&](const TestEntry& entry) { return entry.name == name; });
  return found == std::end(kTests) ? nullptr : found;
}

}  // namespace candor::jinja
