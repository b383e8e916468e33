// JavaScript's rules for JSON values, as the execution-v0 documents are defined by them: undefined, truthiness,
// String(), trim, ===, and the order of keys. Not a goal: a JavaScript engine; prototypes, functions and symbols do not
// exist here. Rejected: a value type of our own with an `undefined` alternative, because every document would be
// converted twice; a null pointer to Json says the same.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"

namespace candor::js {

/// A value that may be undefined (null pointer). It does not own what it points to.
using Value = const Json*;

/// The value of an own key; undefined if `object` is no JSON object or lacks the key (optional chaining, `a?.key`).
[[nodiscard]] Value get(Value object, std::string_view key);
/// get() along several keys.
[[nodiscard]] Value at_path(Value object, std::initializer_list<std::string_view> path);

[[nodiscard]] bool truthy(Value value);
[[nodiscard]] bool nullish(Value value);
/// `a ?? b`
[[nodiscard]] inline Value coalesce(Value a, Value b) {
  return nullish(a) ? b : a;
}

[[nodiscard]] bool is_array(Value value);
[[nodiscard]] bool is_string(Value value);
/// An object that is neither null nor an array.
[[nodiscard]] bool is_plain_object(Value value);
/// `typeof value === "object"` and not null: a plain object or an array.
[[nodiscard]] bool is_object(Value value);
/// Number.isInteger: 3.0 is one.
[[nodiscard]] bool is_integer(Value value);

/// `a === b`. Objects and arrays are equal only to themselves.
[[nodiscard]] bool strict_equal(Value a, Value b);
[[nodiscard]] bool strict_equal(Value a, std::string_view b);

/// String(value): "undefined", "null", "[object Object]", arrays joined by commas, numbers as JavaScript prints them.
[[nodiscard]] std::string to_string(Value value);
/// String(value ?? "").trim()
[[nodiscard]] std::string trimmed_text(Value value);
/// Number(value); NaN where there is none.
[[nodiscard]] double to_number(Value value);

/// Without the white space of ECMA-262, 12.2 and 12.3, at either end: ASCII's, U+FEFF, U+2028, U+2029, and category Zs.
[[nodiscard]] std::string_view trim(std::string_view text);
/// Unicode's default lower-casing (full mappings, final sigma included).
[[nodiscard]] std::string to_lower(std::string_view text);

/// Object.keys: of an object, an array ("0", "1", …) or a string (one for each UTF-16 unit); of others none.
[[nodiscard]] std::vector<std::string> keys(Value value);
/// `{...value}`: the own properties of an object, an array or a string as a new object. Halves of a surrogate pair,
/// which UTF-8 cannot hold, become U+FFFD.
[[nodiscard]] Json spread(Value value);

/// True for the names that every JavaScript object inherits ("constructor", "__proto__", …). Code that looks a name up
/// in an ordinary object finds those though they are not own keys.
[[nodiscard]] bool is_inherited_name(std::string_view name);

/// Assigns `object[key] = value`; a new key takes the place JavaScript gives it.
void set(Json& object, std::string_view key, Json value);

/// Builds an object by assignments in linear time.
class ObjectBuilder {
 public:
  ObjectBuilder() = default;
  /// Starts from the members of an object.
  explicit ObjectBuilder(Json object);

  /// The value under `key`, which is null if it is new.
  Json& operator[](std::string_view key);
  /// The object, keys in JavaScript's order. The builder is empty afterwards.
  [[nodiscard]] Json take();

 private:
  std::vector<Json::object_t::value_type> members_;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace candor::js
