#include <algorithm>

#include "text/jinja/attribute.h"
#include "text/jinja/format.h"
#include "text/jinja/number.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/unicode.h"

namespace candor::jinja {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// One "…{field}…".format(…), as Python's string.Formatter runs it.
class Formatter {
 public:
  Formatter(Runtime& runtime, const Arguments& arguments, bool markup)
      : runtime_(runtime), arguments_(arguments), markup_(markup) {}

  void format(Buffer& out, std::string_view text, int depth) {
    if (depth < 0) runtime_.fail("format: fields are nested too deeply");
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t brace = text.find_first_of("{}", at);
      out.append(text.substr(at, brace == std::string_view::npos ? brace : brace - at));
      if (brace == std::string_view::npos) return;
      if (brace + 1 < text.size() && text[brace + 1] == text[brace]) {
        out.append(text[brace]);
        at = brace + 2;
        continue;
      }
      if (text[brace] == '}') runtime_.fail("format: single '}}' in the format string");
      at = format_field(out, text, brace + 1, depth);
    }
  }

 private:
  /// The field whose "{" stands before `start`; returns the position behind its "}".
  std::size_t format_field(Buffer& out, std::string_view text, std::size_t start, int depth) {
    const std::size_t end = field_end(text, start);
    const std::string_view field = text.substr(start, end - start);
    const std::size_t name_end = name_length(field);
    std::string_view rest = field.substr(name_end);
    char conversion = 0;
    if (rest.starts_with('!')) {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':'))
        runtime_.fail("format: expected ':' after the conversion");
      conversion = rest[1];
      rest.remove_prefix(2);
    }
    if (rest.starts_with(':')) rest.remove_prefix(1);
    const Value value = convert(find(field.substr(0, name_end)), conversion);
    Buffer specification(runtime_);
    format(specification, rest, depth - 1);
    append(out, value, specification.view());
    return end + 1;
  }

  std::size_t field_end(std::string_view text, std::size_t start) const {
    int open = 1;
    bool in_brackets = false;
    for (std::size_t at = start; at < text.size(); ++at) {
      if (text[at] == '[' && open == 1) in_brackets = true;
      if (text[at] == ']') in_brackets = false;
      if (in_brackets) continue;
      if (text[at] == '{') ++open;
      if (text[at] == '}' && --open == 0) return at;
    }
    runtime_.fail("format: expected '}}' before the end of the string");
  }

  static std::size_t name_length(std::string_view field) {
    bool in_brackets = false;
    for (std::size_t at = 0; at < field.size(); ++at) {
      if (field[at] == '[') in_brackets = true;
      if (field[at] == ']') in_brackets = false;
      if (!in_brackets && (field[at] == '!' || field[at] == ':')) return at;
    }
    return field.size();
  }

  /// The value of a field name: an argument, then attributes and items of it.
  Value find(std::string_view name) {
    const std::size_t first_end = std::min(name.find_first_of(".["), name.size());
    Value value = argument(name.substr(0, first_end));
    std::string_view rest = name.substr(first_end);
    while (!rest.empty()) {
      const bool is_attribute = rest[0] == '.';
      if (!is_attribute && rest[0] != '[') runtime_.fail("format: only '.' or '[' may follow ']' in a field");
      rest.remove_prefix(1);
      const std::size_t end = is_attribute ? std::min(rest.find_first_of(".["), rest.size()) : rest.find(']');
      if (end == std::string_view::npos) runtime_.fail("format: missing ']' in a field");
      if (end == 0) runtime_.fail("format: empty attribute in a field");
      const std::string_view key = rest.substr(0, end);
      value = is_attribute ? get_attribute(runtime_, value, key) : get_item(runtime_, value, item_key(key));
      rest.remove_prefix(is_attribute ? end : end + 1);
    }
    return value;
  }

  Value item_key(std::string_view key) {
    bool too_large = false;
    if (is_number(key)) {
      const auto number = parse_integer(key, 10, too_large);
      if (!number) runtime_.fail("format: too many digits in a field");
      return Value::integer(*number);
    }
    return runtime_.text(key);
  }

  Value argument(std::string_view name) {
    if (name.empty() || is_number(name)) {
      const bool automatic = name.empty();
      if (automatic ? manual_ : next_ > 0) runtime_.fail("format: cannot mix automatic and manual field numbering");
      manual_ = !automatic;
      bool too_large = false;
      const Int index = automatic ? Int{next_++} : parse_integer(name, 10, too_large).value_or(INT64_MAX);
      if (index >= static_cast<Int>(arguments_.positional.size()))
        runtime_.fail("format: there is no positional argument {}", to_string(index));
      return arguments_.positional[static_cast<std::size_t>(index)];
    }
    for (const auto& [key, value] : arguments_.named)
      if (key == name) return value;
    runtime_.fail("format: there is no argument named '{}'", printable(name));
  }

  Value convert(Value value, char conversion) {
    if (conversion == 0) return value;
    if (conversion == 's') return to_text(runtime_, value);
    if (conversion != 'r' && conversion != 'a')
      runtime_.fail("format: unknown conversion '{}'", printable(std::string(1, conversion)));
    Buffer out(runtime_);
    if (conversion == 'r') {
      print_repr(runtime_, out, value);
    } else {
      print_ascii(runtime_, out, value);
    }
    return out.finish();
  }

  void append(Buffer& out, const Value& value, std::string_view specification) {
    if (!markup_) return format_value(runtime_, out, value, specification);
    if (value.is_markup()) {
      if (!specification.empty()) runtime_.fail("format: a format specifier is not supported for marked-up text");
      return out.append(value.view());
    }
    Buffer formatted(runtime_);
    format_value(runtime_, formatted, value, specification);
    append_escaped(out, formatted.view());
  }

  Runtime& runtime_;
  const Arguments& arguments_;
  bool markup_;
  std::int64_t next_ = 0;
  bool manual_ = false;
};

}  // namespace

Value format_braces(Runtime& runtime, const Value& text, const Arguments& arguments) {
  Buffer out(runtime);
  Formatter(runtime, arguments, text.is_markup()).format(out, text.view(), 2);
  return out.finish(text.is_markup());
}

}  // namespace candor::jinja
