#include "base/js_value.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/utf8.h"

namespace candor::js {
namespace {

using CodePoint = utf8proc_int32_t;

struct Decoded {
  CodePoint code_point = 0;
  std::size_t length = 0;
};

/// The first character of `text`; a byte that starts no well-formed sequence counts as U+FFFD.
Decoded decode_first(std::string_view text) {
  const std::size_t length = utf8_sequence_length(text);
  if (length == 0) return {0xfffd, 1};
  CodePoint code_point = 0;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(length),
                   &code_point);
  return {code_point, length};
}

std::vector<CodePoint> decode(std::string_view text) {
  std::vector<CodePoint> code_points;
  code_points.reserve(text.size());
  while (!text.empty()) {
    const Decoded first = decode_first(text);
    code_points.push_back(first.code_point);
    text.remove_prefix(first.length);
  }
  return code_points;
}

void append(std::string& out, CodePoint code_point) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto length = utf8proc_encode_char(code_point, bytes.data());
  out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(length));
}

bool is_space(CodePoint c) {
  if (c >= 0x09 && c <= 0x0d) return true;
  if (c == 0xfeff || c == 0x2028 || c == 0x2029) return true;
  return utf8proc_category(c) == UTF8PROC_CATEGORY_ZS;
}

bool is_cased(CodePoint c) {
  const auto category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT;
}

/// Case_Ignorable (Unicode, section 3.13): marks, modifiers, formats, and the punctuation of words.
bool is_case_ignorable(CodePoint c) {
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      break;
  }
  static constexpr std::array<CodePoint, 15> kWordPunctuation = {
      0x27, 0x2e, 0x3a, 0xb7, 0x387, 0x55f, 0x5f4, 0x2018, 0x2019, 0x2024, 0x2027, 0xfe13, 0xfe52, 0xfe55, 0xff07};
  return std::find(kWordPunctuation.begin(), kWordPunctuation.end(), c) != kWordPunctuation.end() || c == 0xff0e ||
         c == 0xff1a;
}

/// Final_Sigma (Unicode, table 3-17): after a cased letter and before none.
bool is_final_sigma(const std::vector<CodePoint>& text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

void append_string(std::string& out, const Json& value, bool inside_array) {
  switch (value.type()) {
    case Json::value_t::null:
      if (!inside_array) out += "null";
      break;
    case Json::value_t::object:
      out += "[object Object]";
      break;
    case Json::value_t::array: {
      bool first = true;
      for (const auto& element : value) {
        if (!first) out += ',';
        first = false;
        append_string(out, element, true);
      }
      break;
    }
    case Json::value_t::string:
      out += value.get_ref<const std::string&>();
      break;
    case Json::value_t::boolean:
      out += value.get<bool>() ? "true" : "false";
      break;
    default:
      out += js_number(value.get<double>());
  }
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::numeric_limits<int>::max();
}

/// Digits of an integer literal in base 2, 8 or 16, at least one; NaN for anything else.
double radix_number(std::string_view digits, int base) {
  if (digits.empty()) return std::numeric_limits<double>::quiet_NaN();
  double number = 0;
  for (const char c : digits) {
    if (digit_value(c) >= base) return std::numeric_limits<double>::quiet_NaN();
    number = number * base + digit_value(c);
  }
  return number;
}

/// StringToNumber (ECMA-262, 7.1.4.1.1).
double string_to_number(std::string_view text) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  text = trim(text);
  if (text.empty()) return 0;
  if (text.size() > 1 && text[0] == '0') {
    switch (text[1]) {
      case 'x':
      case 'X':
        return radix_number(text.substr(2), 16);
      case 'o':
      case 'O':
        return radix_number(text.substr(2), 8);
      case 'b':
      case 'B':
        return radix_number(text.substr(2), 2);
      default:
        break;
    }
  }
  const bool negative = text[0] == '-';
  if (negative || text[0] == '+') text.remove_prefix(1);
  double number = 0;
  if (text == "Infinity") {
    number = std::numeric_limits<double>::infinity();
  } else {
    if (text.empty() || !((text[0] >= '0' && text[0] <= '9') || text[0] == '.')) return kNan;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc::invalid_argument || end != text.data() + text.size()) return kNan;
    if (error == std::errc::result_out_of_range) {
      const bool tiny = text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos;
      number = tiny ? 0 : std::numeric_limits<double>::infinity();
    }
  }
  return negative ? -number : number;
}

/// The UTF-16 units of `text`, each as a string.
std::vector<std::string> units(std::string_view text) {
  std::vector<std::string> out;
  for (const CodePoint c : decode(text)) {
    std::string unit;
    append(unit, c > 0xffff ? 0xfffd : c);
    out.push_back(unit);
    if (c > 0xffff) out.push_back(unit);
  }
  return out;
}

}  // namespace

Value get(Value object, std::string_view key) {
  if (!is_plain_object(object)) return nullptr;
  for (const auto& [name, value] : object->get_ref<const Json::object_t&>())
    if (name == key) return &value;
  return nullptr;
}

Value at_path(Value object, std::initializer_list<std::string_view> path) {
  for (const auto key : path) object = get(object, key);
  return object;
}

bool truthy(Value value) {
  if (nullish(value)) return false;
  if (value->is_boolean()) return value->get<bool>();
  if (value->is_number()) return value->get<double>() != 0;
  if (value->is_string()) return !value->get_ref<const std::string&>().empty();
  return true;
}

bool nullish(Value value) {
  return value == nullptr || value->is_null();
}
bool is_array(Value value) {
  return value != nullptr && value->is_array();
}
bool is_string(Value value) {
  return value != nullptr && value->is_string();
}
bool is_plain_object(Value value) {
  return value != nullptr && value->is_object();
}
bool is_object(Value value) {
  return is_plain_object(value) || is_array(value);
}

bool is_integer(Value value) {
  if (value == nullptr || !value->is_number()) return false;
  const double number = value->get<double>();
  return std::isfinite(number) && std::trunc(number) == number;
}

bool strict_equal(Value a, Value b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  if (a->is_number() && b->is_number()) return a->get<double>() == b->get<double>();
  if (a->type() != b->type() || is_object(a)) return false;
  return *a == *b;
}

bool strict_equal(Value a, std::string_view b) {
  return is_string(a) && a->get_ref<const std::string&>() == b;
}

std::string to_string(Value value) {
  if (value == nullptr) return "undefined";
  std::string out;
  append_string(out, *value, false);
  return out;
}

std::string trimmed_text(Value value) {
  if (nullish(value)) return {};
  return std::string(trim(to_string(value)));
}

double to_number(Value value) {
  if (value == nullptr) return std::numeric_limits<double>::quiet_NaN();
  if (value->is_null()) return 0;
  if (value->is_boolean()) return value->get<bool>() ? 1 : 0;
  if (value->is_number()) return value->get<double>();
  if (value->is_object()) return std::numeric_limits<double>::quiet_NaN();
  return string_to_number(to_string(value));
}

std::string_view trim(std::string_view text) {
  while (!text.empty()) {
    const Decoded first = decode_first(text);
    if (!is_space(first.code_point)) break;
    text.remove_prefix(first.length);
  }
  while (!text.empty()) {
    std::size_t start = text.size() - 1;
    while (start > 0 && text.size() - start < 4 && (static_cast<unsigned char>(text[start]) & 0xc0) == 0x80) --start;
    const Decoded last = decode_first(text.substr(start));
    if (last.length != text.size() - start || !is_space(last.code_point)) break;
    text.remove_suffix(last.length);
  }
  return text;
}

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  if (is_ascii(text)) {
    for (const char c : text) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
  }
  const std::vector<CodePoint> code_points = decode(text);
  for (std::size_t i = 0; i < code_points.size(); ++i) {
    const CodePoint c = code_points[i];
    if (c == 0x130) {  // the one character whose lower case is two: i with a dot above
      out += "i\xcc\x87";
    } else if (c == 0x3a3 && is_final_sigma(code_points, i)) {
      append(out, 0x3c2);
    } else {
      append(out, utf8proc_tolower(c));
    }
  }
  return out;
}

std::vector<std::string> keys(Value value) {
  std::vector<std::string> out;
  if (is_plain_object(value)) {
    for (const auto& member : value->get_ref<const Json::object_t&>()) out.push_back(member.first);
    return out;
  }
  const std::size_t count = is_array(value)    ? value->size()
                            : is_string(value) ? units(value->get_ref<const std::string&>()).size()
                                               : 0;
  for (std::size_t i = 0; i < count; ++i) out.push_back(std::to_string(i));
  return out;
}

Json spread(Value value) {
  if (is_plain_object(value)) return *value;
  Json out = Json::object();
  auto& members = static_cast<std::vector<Json::object_t::value_type>&>(out.get_ref<Json::object_t&>());
  if (is_array(value)) {
    for (const auto& element : *value) members.emplace_back(std::to_string(members.size()), element);
  } else if (is_string(value)) {
    for (auto& unit : units(value->get_ref<const std::string&>()))
      members.emplace_back(std::to_string(members.size()), std::move(unit));
  }
  return out;
}

bool is_inherited_name(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kNames = {
      "constructor",      "toString",         "toLocaleString",   "valueOf",   "hasOwnProperty",
      "isPrototypeOf",    "__defineGetter__", "__defineSetter__", "__proto__", "propertyIsEnumerable",
      "__lookupGetter__", "__lookupSetter__"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

void set(Json& object, std::string_view key, Json value) {
  auto& members = object.get_ref<Json::object_t&>();
  for (auto& [name, member] : members) {
    if (name != key) continue;
    member = std::move(value);
    return;
  }
  static_cast<std::vector<Json::object_t::value_type>&>(members).emplace_back(std::string(key), std::move(value));
  if (is_index_key(key)) order_index_keys(members);
}

ObjectBuilder::ObjectBuilder(Json object) : members_(std::move(object.get_ref<Json::object_t&>())) {
  for (std::size_t i = 0; i < members_.size(); ++i) index_.emplace(members_[i].first, i);
}

Json& ObjectBuilder::operator[](std::string_view key) {
  const auto [found, is_new] = index_.emplace(std::string(key), members_.size());
  if (is_new) members_.emplace_back(std::string(key), Json());
  return members_[found->second].second;
}

Json ObjectBuilder::take() {
  Json out = Json::object();
  auto& object = out.get_ref<Json::object_t&>();
  static_cast<std::vector<Json::object_t::value_type>&>(object) = std::move(members_);
  order_index_keys(object);
  members_.clear();
  index_.clear();
  return out;
}

}  // namespace candor::js
