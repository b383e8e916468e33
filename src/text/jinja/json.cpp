#include "text/jinja/json.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "text/jinja/number.h"
#include "text/jinja/sort.h"
#include "text/jinja/unicode.h"

namespace candor::jinja {
namespace {

Value checked_text(Runtime& runtime, const std::string& text, const std::string& path) {
  if (!is_utf8(text)) runtime.fail("{}: the string \"{}\" is not valid UTF-8", path, printable(text));
  return runtime.text(text);
}

class Printer {
 public:
  Printer(Runtime& runtime, Buffer& out, const JsonStyle& style) : runtime_(runtime), out_(out), style_(style) {}

  void print(const Value& value, std::uint32_t level) {
    const Runtime::Nested nested(runtime_);
    runtime_.step();
    if (value.is_text()) {
      print_text(value.view());
    } else if (value.is_none()) {
      out_.append("null");
    } else if (value.is_number()) {
      out_.append(number(value));
    } else if (value.is<SequencePtr>()) {
      print_sequence(value.sequence(), level);
    } else if (value.is_dict()) {
      print_dict(value.dict(), level);
    } else {
      runtime_.fail("tojson: a value of type '{}' is not JSON serializable", type_name(value));
    }
  }

 private:
  static std::string number(const Value& value) {
    if (value.is<bool>()) return value.integral() != 0 ? "true" : "false";
    if (value.is<Int>()) return to_string(value.integral());
    const double number = as_double(value);
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
    return to_string(number);
  }

  void print_escape(char32_t c) {
    const auto unit = [&](std::uint32_t code) { out_.append(fmt::format("\\u{:04x}", code)); };
    if (c < 0x10000) {
      unit(c);
    } else {
      unit(0xd800 + ((c - 0x10000) >> 10));
      unit(0xdc00 + ((c - 0x10000) & 0x3ff));
    }
  }

  void print_text(std::string_view text) {
    runtime_.scan(text.size());
    out_.append('"');
    std::size_t done = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t start = at;
      const char32_t c = next_code_point(text, at);
      const bool plain = c >= 0x20 && c != '"' && c != '\\' && !(style_.ensure_ascii && c > 0x7e);
      if (plain) continue;
      out_.append(text.substr(done, start - done));
      done = at;
      switch (c) {
        case '"':
          out_.append("\\\"");
          break;
        case '\\':
          out_.append("\\\\");
          break;
        case '\n':
          out_.append("\\n");
          break;
        case '\r':
          out_.append("\\r");
          break;
        case '\t':
          out_.append("\\t");
          break;
        case '\f':
          out_.append("\\f");
          break;
        case '\b':
          out_.append("\\b");
          break;
        default:
          print_escape(c);
      }
    }
    out_.append(text.substr(done));
    out_.append('"');
  }

  void new_line(std::uint32_t level) {
    if (!style_.pretty) return;
    out_.append('\n');
    out_.append_repeated(style_.indent, level);
  }

  void print_sequence(const Sequence& sequence, std::uint32_t level) {
    out_.append('[');
    bool first = true;
    for (const Value& item : sequence.items) {
      if (!first) out_.append(style_.item_separator);
      first = false;
      new_line(level + 1);
      print(item, level + 1);
    }
    if (!first) new_line(level);
    out_.append(']');
  }

  void print_dict(const Dict& dict, std::uint32_t level) {
    std::vector<const Dict::Entry*> entries;
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys)
      stable_sort(entries, [this](const auto* a, const auto* b) { return less(runtime_, a->first, b->first); });
    out_.append('{');
    bool first = true;
    for (const auto* entry : entries) {
      if (!first) out_.append(style_.item_separator);
      first = false;
      new_line(level + 1);
      print_key(entry->first);
      out_.append(style_.key_separator);
      print(entry->second, level + 1);
    }
    if (!first) new_line(level);
    out_.append('}');
  }

  void print_key(const Value& key) {
    if (key.is_text()) {
      print_text(key.view());
    } else if (key.is_none() || key.is_number()) {
      print_text(key.is_none() ? "null" : number(key));
    } else {
      runtime_.fail("tojson: keys must be strings, numbers, booleans or none, not '{}'", type_name(key));
    }
  }

  Runtime& runtime_;
  Buffer& out_;
  const JsonStyle& style_;
};

}  // namespace

Value from_json(Runtime& runtime, const Json& json, const std::string& path) {
  const Runtime::Nested nested(runtime);
  switch (json.type()) {
    case Json::value_t::null:
      return Value::none();
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::integer(json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      return Value::integer(json.get<std::uint64_t>());
    case Json::value_t::number_float:
      return Value::floating(json.get<double>());
    case Json::value_t::string:
      return checked_text(runtime, json.get_ref<const std::string&>(), path);
    case Json::value_t::array: {
      runtime.check_room(json.size(), sizeof(Value));
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(from_json(runtime, item, path));
      return runtime.list(std::move(items));
    }
    case Json::value_t::object: {
      Dict dict;
      for (const auto& [key, value] : json.get_ref<const Json::object_t&>())
        dict.set(checked_text(runtime, key, path), from_json(runtime, value, path));
      return runtime.dict(std::move(dict));
    }
    default:
      runtime.fail("{}: binary data cannot be used in a template", path);
  }
}

void print_json(Runtime& runtime, Buffer& out, const Value& value, const JsonStyle& style) {
  Printer(runtime, out, style).print(value, 0);
}

}  // namespace candor::jinja
