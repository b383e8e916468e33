#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/limits.h"
#include "base/sha256.h"

namespace candor {
namespace {

/// The value of a canonical array index key ("0" … "4294967294"), which JavaScript orders before all other keys.
std::optional<std::uint32_t> array_index(std::string_view key) {
  if (key.empty() || key.size() > 10 || (key[0] == '0' && key.size() > 1)) return std::nullopt;
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), value);
  if (error != std::errc{} || end != key.data() + key.size()) return std::nullopt;
  if (value == std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return value;
}

/// Builds the document bottom-up. Repeated keys are found through a hash table once an object is large, so that a
/// hostile object costs linear time.
class Builder {
 public:
  explicit Builder(std::string_view label) : label_(label) {}

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(std::int64_t value) { return put(value); }
  bool number_unsigned(std::uint64_t value) { return put(value); }
  bool number_float(double value, const std::string&) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() {
    order_index_keys(stack_.back().value.get_ref<Json::object_t&>());
    return close();
  }
  bool end_array() { return close(); }
  bool key(std::string& key) {
    stack_.back().key = std::move(key);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
    std::string_view reason = error.what();
    if (const auto at = reason.find("] "); at != std::string_view::npos) reason.remove_prefix(at + 2);
    if (reason.starts_with("parse error")) reason = reason.substr(std::min(reason.find(": ") + 2, reason.size()));
    fail(ErrorCode::format, "{}: not valid JSON at byte {}: {}", label_, position, printable(reason, 200));
  }

  Json take() { return std::move(root_); }

 private:
  struct Frame {
    Json value;
    std::string key;
    std::unordered_map<std::string, std::size_t> index;  // filled once the object is large
  };
  static constexpr std::size_t kIndexFrom = 16;

  bool open(Json value) {
    if (stack_.size() >= limits::json_depth)
      fail(ErrorCode::format, "{}: nested deeper than {} levels", label_, limits::json_depth);
    stack_.push_back({std::move(value), {}, {}});
    return true;
  }

  bool close() {
    Json value = std::move(stack_.back().value);
    stack_.pop_back();
    return put(std::move(value));
  }

  bool put(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Frame& frame = stack_.back();
    if (frame.value.is_array()) {
      frame.value.get_ref<Json::array_t&>().push_back(std::move(value));
      return true;
    }
    auto& object = frame.value.get_ref<Json::object_t&>();
    if (auto* existing = find(frame, object)) {
      *existing = std::move(value);
      return true;
    }
    if (object.size() >= kIndexFrom) frame.index.emplace(frame.key, object.size());
    static_cast<std::vector<Json::object_t::value_type>&>(object).emplace_back(std::move(frame.key), std::move(value));
    if (object.size() == kIndexFrom)
      for (std::size_t i = 0; i < object.size(); ++i)
        frame.index.emplace(object.begin()[static_cast<long>(i)].first, i);
    return true;
  }

  static Json* find(Frame& frame, Json::object_t& object) {
    if (object.size() < kIndexFrom) {
      for (auto& [key, value] : object)
        if (key == frame.key) return &value;
      return nullptr;
    }
    const auto found = frame.index.find(frame.key);
    return found == frame.index.end() ? nullptr : &(object.begin() + static_cast<long>(found->second))->second;
  }

  std::string_view label_;
  std::vector<Frame> stack_;
  Json root_;
};

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

/// UTF-16 code-unit order of two UTF-8 strings: code-point order, except that U+E000…U+FFFF come after U+10000 and up
/// (whose surrogates start at U+D800).
bool utf16_less(std::string_view a, std::string_view b) {
  const std::size_t common = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < common; ++i) {
    const auto x = static_cast<unsigned char>(a[i]);
    const auto y = static_cast<unsigned char>(b[i]);
    if (x == y) continue;
    const bool x_private = x == 0xee || x == 0xef;
    const bool y_private = y == 0xee || y == 0xef;
    if (x_private && y >= 0xf0) return false;
    if (y_private && x >= 0xf0) return true;
    return x < y;
  }
  return a.size() < b.size();
}

class Printer {
 public:
  Printer(std::string& out, int indent, bool canonical) : out_(out), indent_(indent), canonical_(canonical) {}

  void print(const Json& value, int depth = 0) {
    switch (value.type()) {
      case Json::value_t::object:
        print_object(value, depth);
        break;
      case Json::value_t::array:
        print_array(value, depth);
        break;
      case Json::value_t::string:
        append_string(out_, value.get_ref<const std::string&>());
        break;
      case Json::value_t::boolean:
        out_ += value.get<bool>() ? "true" : "false";
        break;
      case Json::value_t::number_integer:
      case Json::value_t::number_unsigned:
      case Json::value_t::number_float:
        print_number(value.get<double>());
        break;
      default:
        out_ += "null";
    }
  }

 private:
  void print_number(double value) { out_ += std::isfinite(value) ? js_number(value) : "null"; }

  void newline(int depth) {
    if (indent_ == 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent_ * depth), ' ');
  }

  void print_object(const Json& value, int depth) {
    const auto& object = value.get_ref<const Json::object_t&>();
    std::vector<const Json::object_t::value_type*> members;
    members.reserve(object.size());
    for (const auto& member : object) members.push_back(&member);
    if (canonical_)
      std::sort(members.begin(), members.end(), [](auto* a, auto* b) { return utf16_less(a->first, b->first); });
    out_ += '{';
    bool first = true;
    for (const auto* member : members) {
      if (!first) out_ += ',';
      first = false;
      newline(depth + 1);
      append_string(out_, member->first);
      out_ += indent_ ? ": " : ":";
      print(member->second, depth + 1);
    }
    if (!first) newline(depth);
    out_ += '}';
  }

  void print_array(const Json& value, int depth) {
    out_ += '[';
    bool first = true;
    for (const auto& element : value) {
      if (!first) out_ += ',';
      first = false;
      newline(depth + 1);
      print(element, depth + 1);
    }
    if (!first) newline(depth);
    out_ += ']';
  }

  std::string& out_;
  int indent_;
  bool canonical_;
};

void check_size(std::string_view text, std::string_view label) {
  if (text.size() > limits::json_bytes)
    fail(ErrorCode::format, "{}: {} bytes of JSON, more than the limit of {}", label, text.size(), limits::json_bytes);
}

}  // namespace

bool is_index_key(std::string_view key) {
  return array_index(key).has_value();
}

// Elements hold a const key, so the vector is rebuilt.
void order_index_keys(Json::object_t& object) {
  const auto is_index = [](const auto& member) { return is_index_key(member.first); };
  if (std::none_of(object.begin(), object.end(), is_index)) return;
  std::vector<std::pair<std::uint32_t, std::size_t>> indices;
  std::vector<std::size_t> order;
  std::vector<std::size_t> rest;
  std::size_t i = 0;
  for (const auto& member : object) {
    if (const auto value = array_index(member.first)) {
      indices.emplace_back(*value, i);
    } else {
      rest.push_back(i);
    }
    ++i;
  }
  std::sort(indices.begin(), indices.end());
  for (const auto& entry : indices) order.push_back(entry.second);
  order.insert(order.end(), rest.begin(), rest.end());
  Json::object_t sorted;
  auto& members = static_cast<std::vector<Json::object_t::value_type>&>(sorted);
  members.reserve(order.size());
  for (const std::size_t from : order) {
    auto& member = *(object.begin() + static_cast<long>(from));
    members.emplace_back(member.first, std::move(member.second));
  }
  object = std::move(sorted);
}

Json parse_json(std::string_view text, std::string_view label) {
  check_size(text, label);
  Builder builder(label);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

nlohmann::json parse_json_sorted(std::string_view text, std::string_view label) {
  check_size(text, label);
  const auto limit_depth = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json&) {
    const bool opens =
        event == nlohmann::json::parse_event_t::object_start || event == nlohmann::json::parse_event_t::array_start;
    if (opens && depth >= static_cast<int>(limits::json_depth))
      fail(ErrorCode::format, "{}: nested deeper than {} levels", label, limits::json_depth);
    return true;
  };
  try {
    return nlohmann::json::parse(text.begin(), text.end(), limit_depth);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::format, "{}: not valid JSON: {}", label, printable(error.what(), 200));
  }
}

std::string js_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  if (value == 0) return "0";
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, std::abs(value), std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<std::size_t>(result.ptr - buffer));
  const auto e = text.find('e');
  std::string digits(1, text[0]);
  if (e > 2) digits += text.substr(2, e - 2);
  int exponent = 0;
  const char* exponent_begin = text.data() + e + 1 + (text[e + 1] == '+' ? 1 : 0);
  std::from_chars(exponent_begin, text.data() + text.size(), exponent);
  const int n = exponent + 1;  // position of the decimal point relative to the digits
  const int k = static_cast<int>(digits.size());
  std::string out = value < 0 ? "-" : "";
  if (k <= n && n <= 21) return out + digits + std::string(static_cast<std::size_t>(n - k), '0');
  if (0 < n && n <= 21)
    return out + digits.substr(0, static_cast<std::size_t>(n)) + "." + digits.substr(static_cast<std::size_t>(n));
  if (-6 < n && n <= 0) return out + "0." + std::string(static_cast<std::size_t>(-n), '0') + digits;
  const std::string sign = n - 1 < 0 ? "-" : "+";
  out += digits[0];
  if (k > 1) out += "." + digits.substr(1);
  return out + "e" + sign + std::to_string(std::abs(n - 1));
}

std::string to_js_json(const Json& value, int indent) {
  std::string out;
  Printer(out, indent, false).print(value);
  return out;
}

std::string to_canonical_json(const Json& value) {
  std::string out;
  Printer(out, 0, true).print(value);
  return out;
}

std::string canonical_digest(const Json& value) {
  return "sha256:" + sha256_hex(to_canonical_json(value));
}

}  // namespace candor
