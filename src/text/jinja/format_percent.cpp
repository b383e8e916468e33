#include <algorithm>
#include <cmath>
#include <optional>

#include "text/jinja/attribute.h"
#include "text/jinja/format.h"
#include "text/jinja/format_number.h"
#include "text/jinja/number.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/unicode.h"

namespace candor::jinja {
namespace {

/// %[(key)][flags][width][.precision]type.
struct Directive {
  bool left = false;
  bool plus = false;
  bool space = false;
  bool alternate = false;
  bool zero = false;
  Int width = 0;
  std::optional<Int> precision;
};

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, std::string_view format, const Value& arguments, bool markup)
      : runtime_(runtime), format_(format), arguments_(arguments), out_(runtime), markup_(markup) {
    // Whatever can be subscripted, but for tuples and strings, serves as the mapping of %(key)s.
    is_mapping_ = arguments.is_dict() || arguments.is_list() || arguments.is<RangePtr>() || arguments.is_undefined();
  }

  Value run() {
    while (at_ < format_.size()) {
      const std::size_t percent = format_.find('%', at_);
      out_.append(format_.substr(at_, percent == std::string_view::npos ? percent : percent - at_));
      if (percent == std::string_view::npos) break;
      at_ = percent + 1;
      run_directive();
    }
    const std::size_t available = arguments_.is_tuple() ? arguments_.sequence().items.size() : 1;
    if (used_ < available && !is_mapping_) runtime_.fail("not all arguments converted during string formatting");
    return out_.finish(markup_);
  }

 private:
  [[nodiscard]] char peek() const {
    if (at_ >= format_.size()) runtime_.fail("incomplete format");
    return format_[at_];
  }

  Value next_argument() {
    if (keyed_) return *keyed_;
    if (arguments_.is_tuple()) {
      const auto& items = arguments_.sequence().items;
      if (used_ >= items.size()) runtime_.fail("not enough arguments for format string");
      return items[used_++];
    }
    if (used_++ > 0) runtime_.fail("not enough arguments for format string");
    return arguments_;
  }

  void run_directive() {
    keyed_.reset();
    if (peek() == '%') {
      ++at_;
      return out_.append('%');
    }
    if (peek() == '(') read_key();
    Directive directive = read_flags();
    if (const auto width = read_number()) {
      directive.width = *width < 0 ? -*width : *width;
      directive.left = directive.left || *width < 0;
    }
    if (peek() == '.') {
      ++at_;
      directive.precision = std::max<Int>(read_number().value_or(0), 0);
    }
    if (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    (void)peek();
    const std::size_t start = at_;
    (void)next_code_point(format_, at_);
    const std::string_view type = format_.substr(start, at_ - start);
    const Value value = next_argument();
    if (type == "s" || type == "r" || type == "a") return put_text(value, type[0], directive);
    if (type == "c") return put_character(value, directive);
    if (type == "d" || type == "i" || type == "u") return put_integer(truncated(value, type[0]), 10, 'd', directive);
    if (type == "o" || type == "x" || type == "X") {
      require_defined(runtime_, value);
      if (!value.is_integral()) runtime_.fail("%{} format: an integer is required, not {}", type, type_name(value));
      return put_integer(value.integral(), type == "o" ? 8 : 16, type[0], directive);
    }
    if (type.size() == 1 && std::string_view("eEfFgG").find(type[0]) != std::string_view::npos)
      return put_float(value, type[0], directive);
    runtime_.fail("unsupported format character '{}'", printable(type));
  }

  void read_key() {
    std::size_t end = ++at_;
    for (int open = 1; open > 0; ++end) {
      if (end >= format_.size()) runtime_.fail("incomplete format key");
      if (format_[end] == '(') ++open;
      if (format_[end] == ')') --open;
    }
    const std::string_view key = format_.substr(at_, end - 1 - at_);
    at_ = end;
    require_defined(runtime_, arguments_);
    if (!is_mapping_) runtime_.fail("format requires a mapping");
    const Value* found = arguments_.is_dict() ? arguments_.dict().find(key) : nullptr;
    if (found == nullptr) runtime_.fail("the format's key '{}' is missing", printable(key));
    keyed_ = *found;
  }

  Directive read_flags() {
    Directive directive;
    for (;; ++at_) {
      switch (peek()) {
        case '-':
          directive.left = true;
          continue;
        case '+':
          directive.plus = true;
          continue;
        case ' ':
          directive.space = true;
          continue;
        case '#':
          directive.alternate = true;
          continue;
        case '0':
          directive.zero = true;
          continue;
        default:
          return directive;
      }
    }
  }

  /// A width or precision: digits, or * for the next argument.
  std::optional<Int> read_number() {
    if (peek() == '*') {
      ++at_;
      if (keyed_) runtime_.fail("* wants int");
      const Value value = next_argument();
      if (!value.is_integral()) runtime_.fail("* wants int, not {}", type_name(value));
      return std::clamp<Int>(value.integral(), INT32_MIN, INT32_MAX);
    }
    std::optional<Int> number;
    while (peek() >= '0' && peek() <= '9') {
      number = number.value_or(0) * 10 + (format_[at_++] - '0');
      if (*number > INT32_MAX) runtime_.fail("a width or precision in a format is too big");
    }
    return number;
  }

  void put_padded(std::string_view text, const Directive& directive) {
    const Int size = static_cast<Int>(count_code_points(text));
    const auto padding = static_cast<std::uint64_t>(std::max<Int>(directive.width - size, 0));
    if (!directive.left) out_.append_repeated(" ", padding);
    out_.append(text);
    if (directive.left) out_.append_repeated(" ", padding);
  }

  void put_text(const Value& value, char type, const Directive& directive) {
    Buffer text(runtime_);
    if (type == 's') print(runtime_, text, value);
    if (type == 'r') print_repr(runtime_, text, value);
    if (type == 'a') print_ascii(runtime_, text, value);
    Buffer escaped(runtime_);
    const bool escapes = markup_ && !(type == 's' && value.is_markup());
    if (escapes) append_escaped(escaped, text.view());
    std::string_view shown = escapes ? escaped.view() : text.view();
    if (directive.precision)
      shown = shown.substr(0, byte_offset(shown, static_cast<std::size_t>(*directive.precision)));
    put_padded(shown, directive);
  }

  void put_character(const Value& value, const Directive& directive) {
    if (value.is_text() && value.text().length == 1 && !markup_) return put_padded(value.view(), directive);
    if (!value.is_integral() || markup_) runtime_.fail("%c requires int or char");
    const Int code = value.integral();
    if (code < 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) runtime_.fail("%c: not a character's number");
    std::string character;
    append_utf8(character, static_cast<char32_t>(code));
    put_padded(character, directive);
  }

  Int truncated(const Value& value, char type) {
    require_defined(runtime_, value);
    if (value.is_integral()) return value.integral();
    if (!value.is<double>()) runtime_.fail("%{} format: a real number is required, not {}", type, type_name(value));
    const auto whole = truncate(as_double(value));
    if (!whole) runtime_.fail("%{} format: {} is no integer", type, to_string(as_double(value)));
    return *whole;
  }

  void put_number(std::string_view sign, std::string_view prefix, std::string_view digits, const Directive& directive) {
    const Int size = static_cast<Int>(sign.size() + prefix.size() + digits.size());
    const auto padding = static_cast<std::uint64_t>(std::max<Int>(directive.width - size, 0));
    const bool zeros = directive.zero && !directive.left;
    if (!directive.left && !zeros) out_.append_repeated(" ", padding);
    out_.append(sign);
    out_.append(prefix);
    if (zeros) out_.append_repeated("0", padding);
    out_.append(digits);
    if (directive.left) out_.append_repeated(" ", padding);
  }

  [[nodiscard]] static std::string_view sign_of(bool negative, const Directive& directive) {
    return negative ? "-" : directive.plus ? "+" : directive.space ? " " : "";
  }

  void put_integer(Int value, int base, char type, const Directive& directive) {
    std::string digits = digits_of(value, base, type == 'X');
    if (directive.precision && *directive.precision > static_cast<Int>(digits.size())) {
      const auto zeros = static_cast<std::size_t>(*directive.precision) - digits.size();
      runtime_.check_room(zeros, 2);
      digits.insert(0, zeros, '0');
    }
    const std::string prefix = directive.alternate && base != 10 ? std::string("0") + type : std::string();
    put_number(sign_of(value < 0, directive), prefix, digits, directive);
  }

  void put_float(const Value& value, char type, const Directive& directive) {
    require_defined(runtime_, value);
    if (!value.is_number()) runtime_.fail("%{} format: a number is required, not {}", type, type_name(value));
    const double number = as_double(value);
    const bool general = type == 'g' || type == 'G';
    const Int precision = std::max<Int>(directive.precision.value_or(6), general ? 1 : 0);
    const std::string digits = digits_of(runtime_, number, type, precision, directive.alternate);
    put_number(sign_of(std::signbit(number) && !std::isnan(number), directive), {}, digits, directive);
  }

  Runtime& runtime_;
  std::string_view format_;
  const Value& arguments_;
  Buffer out_;
  bool markup_;
  bool is_mapping_ = false;
  std::size_t at_ = 0;
  std::size_t used_ = 0;
  std::optional<Value> keyed_;  // the argument of %(key)s
};

}  // namespace

Value format_percent(Runtime& runtime, const Value& text, const Value& arguments) {
  return PercentFormatter(runtime, text.view(), arguments, text.is_markup()).run();
}

}  // namespace candor::jinja
