#include <algorithm>
#include <cmath>
#include <optional>

#include "text/jinja/format.h"
#include "text/jinja/format_number.h"
#include "text/jinja/number.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/unicode.h"

namespace candor::jinja {
namespace {

/// [[fill]align][sign][z][#][0][width][grouping][.precision][type] (Python, format specification mini-language).
struct Spec {
  std::string_view fill = " ";
  char align = 0;
  char sign = '-';
  bool sign_given = false;
  bool no_negative_zero = false;
  bool alternate = false;
  bool zero = false;
  Int width = 0;
  char grouping = 0;
  std::optional<Int> precision;
  char type = 0;
};

class SpecParser {
 public:
  SpecParser(Runtime& runtime, std::string_view text) : runtime_(runtime), text_(text) {}

  Spec parse() {
    Spec spec;
    parse_alignment(spec);
    if (peek() == '+' || peek() == '-' || peek() == ' ') {
      spec.sign = take();
      spec.sign_given = true;
    }
    spec.no_negative_zero = take_if('z');
    spec.alternate = take_if('#');
    if (!fill_given_ && take_if('0')) {
      spec.fill = "0";
      spec.zero = spec.align == 0;
    }
    spec.width = number().value_or(0);
    if (peek() == ',' || peek() == '_') spec.grouping = take();
    if (take_if('.')) {
      spec.precision = number();
      if (!spec.precision) fail();
    }
    if (!text_.empty()) {
      if (static_cast<unsigned char>(text_[0]) >= 0x80) fail();
      spec.type = take();
    }
    if (!text_.empty()) fail();
    return spec;
  }

 private:
  [[noreturn]] void fail() const { runtime_.fail("invalid format specifier"); }
  [[nodiscard]] char peek() const { return text_.empty() ? '\0' : text_[0]; }
  char take() {
    const char c = text_[0];
    text_.remove_prefix(1);
    return c;
  }
  bool take_if(char c) {
    if (peek() != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  static bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

  void parse_alignment(Spec& spec) {
    if (text_.empty()) return;
    std::size_t fill = 0;
    (void)next_code_point(text_, fill);
    if (fill < text_.size() && is_align(text_[fill])) {
      fill_given_ = true;
      spec.fill = text_.substr(0, fill);
      spec.align = text_[fill];
      text_.remove_prefix(fill + 1);
    } else if (is_align(text_[0])) {
      spec.align = take();
    }
  }

  std::optional<Int> number() {
    std::optional<Int> value;
    while (peek() >= '0' && peek() <= '9') {
      value = value.value_or(0) * 10 + (take() - '0');
      if (*value > INT32_MAX) runtime_.fail("too many digits in a format specifier");
    }
    return value;
  }

  Runtime& runtime_;
  std::string_view text_;
  bool fill_given_ = false;
};

/// `digits` with a separator every `group` digits, zero-filled in front to at least `width` characters.
std::string grouped(std::string_view digits, char separator, std::size_t group, std::size_t width) {
  std::string reversed;
  std::size_t count = 0;
  const auto put = [&](char digit) {
    if (separator != 0 && count > 0 && count % group == 0) reversed += separator;
    reversed += digit;
    ++count;
  };
  for (auto it = digits.rbegin(); it != digits.rend(); ++it) put(*it);
  while (reversed.size() < width) put('0');
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

/// A number's parts, put together and padded.
void append_number(Runtime& runtime, Buffer& out, const Spec& spec, bool negative, std::string_view prefix,
                   std::string_view whole, std::string_view rest, std::size_t group) {
  std::string head;
  if (negative) head += '-';
  if (!negative && spec.sign != '-') head += spec.sign;
  head += prefix;
  const char align = spec.align != 0 ? spec.align : spec.zero ? '=' : '>';
  std::size_t zeros = 0;
  if (align == '=' && spec.fill == "0" && spec.width > static_cast<Int>(head.size() + rest.size())) {
    zeros = static_cast<std::size_t>(spec.width) - head.size() - rest.size();
    runtime.check_room(zeros, 4);
  }
  const std::string body = grouped(whole, spec.grouping, group, zeros);
  const Int size = static_cast<Int>(head.size() + body.size() + rest.size());
  const auto padding = static_cast<std::uint64_t>(std::max<Int>(spec.width - size, 0));
  const std::uint64_t before = align == '>' ? padding : align == '^' ? padding / 2 : 0;
  out.append_repeated(spec.fill, before);
  out.append(head);
  if (align == '=') out.append_repeated(spec.fill, padding);
  out.append(body);
  out.append(rest);
  if (align == '<' || align == '^') out.append_repeated(spec.fill, padding - before);
}

void format_text(Runtime& runtime, Buffer& out, const Value& value, const Spec& spec) {
  if (spec.type != 0 && spec.type != 's')
    runtime.fail("unknown format code '{}' for a string", printable(std::string(1, spec.type)));
  if (spec.sign_given || spec.no_negative_zero) runtime.fail("sign not allowed in the format specifier of a string");
  if (spec.alternate || spec.grouping != 0 || spec.align == '=')
    runtime.fail("'#', ',', '_' and '=' are not allowed in the format specifier of a string");
  std::string_view text = value.view();
  if (spec.precision) text = text.substr(0, byte_offset(text, static_cast<std::size_t>(*spec.precision)));
  const Int size = static_cast<Int>(count_code_points(text));
  const auto padding = static_cast<std::uint64_t>(std::max<Int>(spec.width - size, 0));
  const std::uint64_t before = spec.align == '>' ? padding : spec.align == '^' ? padding / 2 : 0;
  out.append_repeated(spec.fill, before);
  out.append(text);
  out.append_repeated(spec.fill, padding - before);
}

/// Without a type but with a precision: as %g, but a result that looks like an integer keeps a digit behind the point,
/// for which the exponent form starts one digit earlier.
std::string general_digits(Runtime& runtime, double value, Int precision, bool alternate) {
  std::string digits = digits_of(runtime, value, 'g', precision, alternate);
  if (!std::isfinite(value) || digits.find_first_of(".e") != std::string::npos) return digits;
  if (static_cast<Int>(digits.size()) < precision) return digits.append(".0");
  digits = digits_of(runtime, value, 'e', precision - 1, alternate);
  const std::size_t e = digits.find('e');
  std::size_t end = e;
  if (digits.find('.') < e) {
    while (digits[end - 1] == '0') --end;
    if (digits[end - 1] == '.') --end;
  }
  return digits.erase(end, e - end);
}

/// The magnitude of a float, with the percent sign of type %.
std::string float_digits(Runtime& runtime, double value, const Spec& spec) {
  const auto at_least_one = [&](Int fallback) { return std::max<Int>(spec.precision.value_or(fallback), 1); };
  switch (spec.type) {
    case 0:
      return spec.precision ? general_digits(runtime, value, at_least_one(1), spec.alternate)
                            : to_string(std::abs(value));
    case '%':
      return digits_of(runtime, value * 100, 'f', spec.precision.value_or(6), spec.alternate).append(1, '%');
    case 'n':
      return digits_of(runtime, value, 'g', at_least_one(6), spec.alternate);
    case 'g':
    case 'G':
      return digits_of(runtime, value, spec.type, at_least_one(6), spec.alternate);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
      return digits_of(runtime, value, spec.type, spec.precision.value_or(6), spec.alternate);
    default:
      runtime.fail("unknown format code '{}' for a float", printable(std::string(1, spec.type)));
  }
}

void format_float(Runtime& runtime, Buffer& out, double value, const Spec& spec) {
  const std::string digits = float_digits(runtime, value, spec);
  bool negative = std::signbit(value) && !std::isnan(value);
  if (spec.no_negative_zero && digits.find_first_not_of("0.e+-%") == std::string::npos) negative = false;
  const std::string_view shown = digits;
  const std::size_t whole = std::min(shown.find_first_not_of("0123456789"), shown.size());
  append_number(runtime, out, spec, negative, {}, shown.substr(0, whole), shown.substr(whole), 3);
}

void format_integer(Runtime& runtime, Buffer& out, Int value, const Spec& spec) {
  const char type = spec.type == 0 || spec.type == 'n' ? 'd' : spec.type;
  if (std::string_view("eEfFgG%").find(type) != std::string_view::npos)
    return format_float(runtime, out, to_double(value), spec);
  if (spec.precision) runtime.fail("precision not allowed in the format specifier of an integer");
  if (spec.no_negative_zero) runtime.fail("'z' is not allowed in the format specifier of an integer");
  if (type == 'c') {
    if (spec.sign_given || spec.alternate || spec.grouping != 0)
      runtime.fail("sign, '#' and grouping are not allowed with 'c'");
    if (value < 0 || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
      runtime.fail("%c: not a character's number");
    std::string character;
    append_utf8(character, static_cast<char32_t>(value));
    Spec padded = spec;
    padded.type = 0;
    if (padded.align == 0) padded.align = '<';
    return format_text(runtime, out, runtime.text(std::move(character)), padded);
  }
  const int base = type == 'd' ? 10 : type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 0;
  if (base == 0) runtime.fail("unknown format code '{}' for an integer", printable(std::string(1, type)));
  if (spec.grouping == ',' && base != 10) runtime.fail("cannot specify ',' with '{}'", type);
  const std::string prefix = spec.alternate && base != 10 ? std::string("0") + type : std::string();
  append_number(runtime, out, spec, value < 0, prefix, digits_of(value, base, type == 'X'), {}, base == 10 ? 3 : 4);
}

}  // namespace

void format_value(Runtime& runtime, Buffer& out, const Value& value, std::string_view specification) {
  if (specification.empty()) return print(runtime, out, value);
  if (!value.is_text() && !value.is_number())
    runtime.fail("a format specifier is not supported for '{}'", type_name(value));
  const Spec spec = SpecParser(runtime, specification).parse();
  if (value.is_text()) return format_text(runtime, out, value, spec);
  if (value.is<double>()) return format_float(runtime, out, as_double(value), spec);
  format_integer(runtime, out, value.integral(), spec);
}

}  // namespace candor::jinja
