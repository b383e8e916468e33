#include "text/jinja/attribute.h"

#include <algorithm>
#include <array>
#include <span>

#include "text/jinja/methods.h"
#include "text/jinja/number.h"
#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"

namespace candor::jinja {
namespace {

std::span<const Method> methods_of(const Value& value) {
  if (value.is_text()) return text_methods();
  if (value.is_dict()) return dict_methods();
  if (value.is_list()) return list_methods();
  if (value.is_tuple()) return tuple_methods();
  if (value.is<RangePtr>()) return range_methods();
  if (value.is_integral()) return integer_methods();
  if (value.is<double>()) return float_methods();
  return {};
}

/// Methods that would change a list or dict.
bool is_mutator(const Value& value, std::string_view name) {
  static constexpr std::array<std::string_view, 8> kList = {"append", "clear", "pop",    "reverse",
                                                            "insert", "sort",  "extend", "remove"};
  static constexpr std::array<std::string_view, 5> kDict = {"clear", "pop", "popitem", "setdefault", "update"};
  if (value.is_list()) return std::find(kList.begin(), kList.end(), name) != kList.end();
  if (value.is_dict()) return std::find(kDict.begin(), kDict.end(), name) != kDict.end();
  return false;
}

/// Attributes of every Python object, which the sandbox hides.
bool is_internal(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kNames = {
      "__class__", "__doc__",  "__init__",         "__new__", "__repr__",         "__str__",
      "__eq__",    "__hash__", "__getattribute__", "__dir__", "__subclasshook__", "__reduce__"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

Value unsafe(Runtime& runtime, const Value& value, std::string_view name) {
  return runtime.undefined(
      fmt::format("access to attribute '{}' of '{}' object is unsafe", printable(name), type_name(value)));
}

/// Plain attributes that are no methods.
std::optional<Value> data_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  if (Object* object = value.object()) return object->attribute(runtime, name);
  if (value.is_integral()) {
    if (name == "real" || name == "numerator") return Value::integer(value.integral());
    if (name == "imag") return Value::integer(0);
    if (name == "denominator") return Value::integer(1);
  } else if (value.is<double>()) {
    if (name == "real") return value;
    if (name == "imag") return Value::floating(0);
  } else if (value.is<RangePtr>()) {
    const Range& range = *std::get<RangePtr>(value.storage());
    if (name == "start") return Value::integer(range.start);
    if (name == "stop") return Value::integer(range.stop);
    if (name == "step") return Value::integer(range.step);
  } else if (value.is<SequencePtr>() && value.sequence().kind == SequenceKind::group) {
    if (name == "grouper") return value.sequence().items[0];
    if (name == "list") return value.sequence().items[1];
  }
  return std::nullopt;
}

/// getattr(value, name) within the sandbox; nothing if there is no such attribute.
std::optional<Value> attribute(Runtime& runtime, const Value& value, std::string_view name) {
  if (is_internal(name) || is_mutator(value, name)) return unsafe(runtime, value, name);
  require_defined(runtime, value);
  if (auto found = data_attribute(runtime, value, name)) {
    if (name.starts_with('_')) return unsafe(runtime, value, name);
    return found;
  }
  if (const Method* method = find_method(value, name)) return Value::object(runtime.make<Function>(value, method->run));
  return std::nullopt;
}

std::optional<Value> text_item(Runtime& runtime, const Value& value, Int index) {
  const auto size = static_cast<Int>(value.text().length);
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;
  const std::string_view text = value.view();
  if (value.text().ascii()) return runtime.text(text.substr(static_cast<std::size_t>(index), 1), value.is_markup());
  runtime.walk(text.size());
  const std::string_view rest = text.substr(byte_offset(text, static_cast<std::size_t>(index)));
  return runtime.text(rest.substr(0, byte_offset(rest, 1)), value.is_markup());
}

/// value[key]; nothing where Python raises TypeError or LookupError.
std::optional<Value> item(Runtime& runtime, const Value& value, const Value& key) {
  require_defined(runtime, value);
  if (value.is_dict()) {
    if (!is_hashable(runtime, key)) return std::nullopt;
    if (const Value* found = value.dict().find(key)) return *found;
    return std::nullopt;
  }
  if (!key.is_integral()) return std::nullopt;
  Int index = key.integral();
  if (value.is_text()) return text_item(runtime, value, index);
  const bool is_range = value.is<RangePtr>();
  if (!is_range && !value.is<SequencePtr>()) return std::nullopt;
  const auto size = static_cast<Int>(*length(runtime, value));
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;
  const auto at = static_cast<std::size_t>(index);
  return is_range ? std::get<RangePtr>(value.storage())->at(at) : value.sequence().items[at];
}

}  // namespace

const Method* find_method(const Value& value, std::string_view name) {
  if (is_mutator(value, name)) return nullptr;
  const auto methods = methods_of(value);
  const auto found =
      std::find_if(methods.begin(), methods.end(), [&](const Method& method) { return method.name == name; });
  return found == methods.end() ? nullptr : &*found;
}

Value get_attribute_only(Runtime& runtime, const Value& value, std::string_view name) {
  if (auto found = attribute(runtime, value, name)) return *found;
  return runtime.undefined_attribute(value, name);
}

Value get_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  if (auto found = attribute(runtime, value, name)) return *found;
  if (value.is_dict())
    if (const Value* found = value.dict().find(name)) return *found;
  return runtime.undefined_attribute(value, name);
}

Value get_item(Runtime& runtime, const Value& value, const Value& key) {
  if (auto found = item(runtime, value, key)) return *found;
  if (key.is_text()) return get_attribute_only(runtime, value, key.view());
  const std::string shown = key.is_integral() ? to_string(key.integral()) : std::string(type_name(key));
  return runtime.undefined(fmt::format("'{}' object has no element {}", type_name(value), shown));
}

bool is_callable(const Value& value) {
  if (value.is_undefined()) return true;  // the class has a __call__, which raises
  return value.object() != nullptr && value.object()->callable();
}

Value call(Runtime& runtime, const Value& callee, Arguments arguments) {
  require_defined(runtime, callee);
  if (!is_callable(callee)) runtime.fail("'{}' object is not callable", type_name(callee));
  return callee.object()->call(runtime, std::move(arguments));
}

}  // namespace candor::jinja
