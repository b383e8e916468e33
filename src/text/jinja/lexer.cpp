#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "text/jinja/number.h"
#include "text/jinja/unicode.h"

namespace candor::jinja {
namespace {

/// `source` with every line break made "\n", and one at the end removed.
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  return text.size() - trim_left(text.substr(at)).size();
}

/// The end of a run of digits of `base` at `at` in which single underscores may separate digits.
std::size_t skip_digits(std::string_view text, std::size_t at, int base) {
  const auto digit = [&](std::size_t i) {
    if (i >= text.size()) return false;
    const char c = text[i];
    if (base == 16) return is_ascii_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
    return c >= '0' && c < '0' + base;
  };
  if (!digit(at)) return at;
  ++at;
  while (digit(at) || (at < text.size() && text[at] == '_' && digit(at + 1))) ++at;
  return at;
}

/// The end of a float literal at `at`, or `at` if there is none.
std::size_t float_end(std::string_view text, std::size_t at) {
  std::size_t end = skip_digits(text, at, 10);
  if (end == at) return at;
  bool is_float = false;
  if (end < text.size() && text[end] == '.') {
    const std::size_t fraction = skip_digits(text, end + 1, 10);
    if (fraction > end + 1) {
      is_float = true;
      end = fraction;
    }
  }
  if (end < text.size() && (text[end] | 0x20) == 'e') {
    std::size_t digits = end + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
    const std::size_t exponent = skip_digits(text, digits, 10);
    if (exponent > digits) {
      is_float = true;
      end = exponent;
    }
  }
  return is_float ? end : at;
}

/// The end of an integer literal at `at`, or `at` if there is none.
std::size_t integer_end(std::string_view text, std::size_t at) {
  if (text[at] != '0') return skip_digits(text, at, 10);
  if (at + 2 < text.size()) {
    const char letter = static_cast<char>(text[at + 1] | 0x20);
    const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (base != 0) {
      const std::size_t digits = text[at + 2] == '_' ? at + 3 : at + 2;
      const std::size_t end = skip_digits(text, digits, base);
      if (end > digits) return end;
    }
  }
  ++at;  // only zeros may follow a zero
  while (at < text.size() && (text[at] == '0' || (text[at] == '_' && at + 1 < text.size() && text[at + 1] == '0')))
    ++at;
  return at;
}

constexpr std::array<std::string_view, 6> kLongOperators = {"//", "**", "==", "!=", ">=", "<="};
constexpr std::string_view kOperators = "+-/*%~[](){}><=.:|,;";

}  // namespace

std::string Token::describe() const {
  switch (kind) {
    case TokenKind::data:
      return "template data";
    case TokenKind::block_begin:
      return "begin of statement block";
    case TokenKind::block_end:
      return "end of statement block";
    case TokenKind::variable_begin:
      return "begin of print statement";
    case TokenKind::variable_end:
      return "end of print statement";
    case TokenKind::text:
      return "string";
    case TokenKind::integer:
      return "integer";
    case TokenKind::floating:
      return "float";
    case TokenKind::end:
      return "end of template";
    case TokenKind::name:
    case TokenKind::op:
      break;
  }
  return fmt::format("'{}'", printable(text));
}

Lexer::Lexer(std::string_view source, std::string label)
    : source_(normalize_newlines(source)), label_(std::move(label)) {}

void Lexer::fail(std::uint32_t line, const std::string& message) const {
  candor::fail(ErrorCode::text, "{}, line {}: {}", label_, line, message);
}

Token Lexer::next() {
  Token token;
  for (;;) {
    token.line = line_;
    if (!(state_ == State::root ? next_in_root(token) : next_in_tag(token))) continue;
    // The end stands on the line of the last token, as in Jinja2.
    if (token.kind == TokenKind::end) token.line = last_line_;
    last_line_ = token.line;
    return token;
  }
}

char Lexer::sign_after(std::size_t position) const {
  if (position < source_.size() && (source_[position] == '-' || source_[position] == '+')) return source_[position];
  return 0;
}

void Lexer::advance_to(std::size_t position) {
  line_ += static_cast<std::uint32_t>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                 source_.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
  if (position > at_) line_starting_ = source_[position - 1] == '\n';
  at_ = position;
}

void Lexer::skip_white_space() {
  advance_to(skip_space(source_, at_));
}

/// The data in front of a tag as the tag leaves it: "-" strips white space, and without a sign a block or comment that
/// is first on its line takes the line's indentation away.
std::string_view Lexer::strip_before_tag(std::string_view data, char sign, bool lstrip) const {
  if (sign == '-') return trim_right(data);
  if (sign == '+' || !lstrip) return data;
  const std::size_t newline = data.rfind('\n');
  const std::size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
  if (line_start == 0 && !line_starting_) return data;
  return trim_left(data.substr(line_start)).empty() ? data.substr(0, line_start) : data;
}

/// One data token, or the tag after it. Returns false if what was read makes no token.
bool Lexer::next_in_root(Token& token) {
  std::size_t open = at_;
  while (open + 1 < source_.size() &&
         !(source_[open] == '{' && (source_[open + 1] == '%' || source_[open + 1] == '{' || source_[open + 1] == '#')))
    ++open;
  if (open + 1 >= source_.size()) {
    token.kind = at_ < source_.size() ? TokenKind::data : TokenKind::end;
    token.text = rest();
    advance_to(source_.size());
    return true;
  }
  const char type = source_[open + 1];
  const char sign = sign_after(open + 2);
  const std::string_view data = std::string_view(source_).substr(at_, open - at_);
  if (!data.empty()) {
    token.kind = TokenKind::data;
    token.text = strip_before_tag(data, sign, type != '{');
    advance_to(open);
    return !token.text.empty();
  }
  std::size_t raw_body = 0;
  if (type == '%' && at_raw_begin(open, raw_body)) {
    token = raw_block(raw_body);
    return !token.text.empty();
  }
  advance_to(open + (sign != 0 ? 3 : 2));
  if (type == '#') {
    skip_comment();
    return false;
  }
  state_ = type == '%' ? State::block : State::variable;
  token.kind = type == '%' ? TokenKind::block_begin : TokenKind::variable_begin;
  open_brackets_.clear();
  return true;
}

void Lexer::skip_comment() {
  const std::size_t start = at_;
  const std::size_t close = source_.find("#}", at_);
  if (close == std::string::npos) {
    if (at_ < source_.size()) fail(line_, "missing end of comment tag");
    return;
  }
  const char sign = close > start ? source_[close - 1] : '\0';
  advance_to(close + 2);
  if (sign == '-') {
    skip_white_space();
  } else if (sign != '+' && at_ < source_.size() && source_[at_] == '\n') {
    advance_to(at_ + 1);
  }
}

/// True if "{% raw %}" opens at `open`; `body` is where its text starts.
bool Lexer::at_raw_begin(std::size_t open, std::size_t& body) const {
  const std::string_view source = source_;
  std::size_t at = skip_space(source, open + (sign_after(open + 2) != 0 ? 3 : 2));
  if (!source.substr(at).starts_with("raw")) return false;
  at = skip_space(source, at + 3);
  if (source.substr(at).starts_with("-%}")) {
    body = skip_space(source, at + 3);
    return true;
  }
  body = at + 2;
  return source.substr(at).starts_with("%}");
}

Token Lexer::raw_block(std::size_t body) {
  advance_to(body);
  const std::string_view source = source_;
  Token token;
  token.kind = TokenKind::data;
  token.line = line_;
  for (std::size_t open = source.find("{%", body); open != std::string_view::npos; open = source.find("{%", open + 1)) {
    const char sign = sign_after(open + 2);
    std::size_t at = skip_space(source, open + (sign != 0 ? 3 : 2));
    if (!source.substr(at).starts_with("endraw")) continue;
    at = skip_space(source, at + 6);
    const char end_sign = at < source.size() && (source[at] == '-' || source[at] == '+') ? source[at] : '\0';
    if (end_sign != 0) ++at;
    if (!source.substr(at).starts_with("%}")) continue;
    token.text = strip_before_tag(source.substr(body, open - body), sign, true);
    advance_to(at + 2);
    if (end_sign == '-') {
      skip_white_space();
    } else if (end_sign != '+' && at_ < source.size() && source[at_] == '\n') {
      advance_to(at_ + 1);
    }
    return token;
  }
  if (at_ < source_.size()) fail(line_, "missing end of raw directive");
  return token;
}

bool Lexer::take_tag_end(Token& token) {
  if (!open_brackets_.empty()) return false;
  const bool block = state_ == State::block;
  std::string_view text = rest();
  const char sign = text.empty() ? '\0' : text[0];
  const bool signed_end = sign == '-' || (sign == '+' && block);
  if (signed_end) text.remove_prefix(1);
  if (!text.starts_with(block ? "%}" : "}}")) return false;
  advance_to(at_ + (signed_end ? 3 : 2));
  if (sign == '-') {
    skip_white_space();
  } else if (block && !signed_end && at_ < source_.size() && source_[at_] == '\n') {
    advance_to(at_ + 1);
  }
  token.kind = block ? TokenKind::block_end : TokenKind::variable_end;
  state_ = State::root;
  return true;
}

bool Lexer::next_in_tag(Token& token) {
  if (take_tag_end(token)) return true;
  if (at_ >= source_.size()) {
    token.kind = TokenKind::end;
    return true;
  }
  if (const std::size_t after = skip_space(source_, at_); after != at_) {
    advance_to(after);
    return false;
  }
  if (is_ascii_digit(source_[at_]) && take_number(token)) return true;
  std::size_t end = at_;
  const auto is_part = [](char32_t c) { return is_word(c) || is_identifier_part(c); };
  for (std::size_t next = end; next < source_.size() && is_part(next_code_point(source_, next));) end = next;
  if (end != at_) {
    token.kind = TokenKind::name;
    token.text = source_.substr(at_, end - at_);
    std::size_t first = 0;
    if (!is_identifier_start(next_code_point(token.text, first))) fail(line_, "invalid character in identifier");
    while (first < token.text.size())
      if (!is_identifier_part(next_code_point(token.text, first))) fail(line_, "invalid character in identifier");
    advance_to(end);
    return true;
  }
  if (source_[at_] == '"' || source_[at_] == '\'') {
    take_string(token);
  } else {
    take_operator(token);
  }
  return true;
}

bool Lexer::take_number(Token& token) {
  const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
  std::size_t end = after_dot ? at_ : float_end(source_, at_);
  const bool is_float = end != at_;
  if (!is_float) end = integer_end(source_, at_);
  if (end == at_) return false;
  const std::string literal = source_.substr(at_, end - at_);
  if (is_float) {
    token.kind = TokenKind::floating;
    token.floating = parse_float(literal).value_or(0);
  } else {
    bool too_large = false;
    const auto value = parse_integer(literal, 0, too_large);
    if (!value) fail(line_, fmt::format("the integer {} has more than 127 bits", printable(literal)));
    token.kind = TokenKind::integer;
    token.integer = *value;
  }
  advance_to(end);
  return true;
}

void Lexer::take_string(Token& token) {
  const char quote = source_[at_];
  std::size_t end = at_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) fail(line_, fmt::format("unexpected char {} at {}", quote, at_));
  token.kind = TokenKind::text;
  token.text = decode_string(std::string_view(source_).substr(at_ + 1, end - at_ - 1), line_);
  advance_to(end + 1);
}

void Lexer::take_operator(Token& token) {
  token.kind = TokenKind::op;
  const std::string_view text = rest();
  for (const std::string_view op : kLongOperators)
    if (text.starts_with(op)) token.text = op;
  if (token.text.empty()) {
    if (kOperators.find(text[0]) == std::string_view::npos) {
      std::size_t length = 0;
      (void)next_code_point(text, length);
      fail(line_, fmt::format("unexpected char '{}' at {}", printable(text.substr(0, length)), at_));
    }
    token.text.assign(1, text[0]);
  }
  const char c = token.text[0];
  if (c == '(') open_brackets_.push_back(')');
  if (c == '[') open_brackets_.push_back(']');
  if (c == '{') open_brackets_.push_back('}');
  if (c == ')' || c == ']' || c == '}') {
    if (open_brackets_.empty()) fail(line_, fmt::format("unexpected '{}'", c));
    if (open_brackets_.back() != c)
      fail(line_, fmt::format("unexpected '{}', expected '{}'", c, open_brackets_.back()));
    open_brackets_.pop_back();
  }
  advance_to(at_ + token.text.size());
}

std::string Lexer::decode_string(std::string_view body, std::uint32_t line) const {
  std::string out;
  out.reserve(body.size());
  for (std::size_t at = 0; at < body.size();) {
    if (body[at] != '\\') {
      out += body[at++];
    } else {
      ++at;
      append_escape(out, body, at, line);
    }
  }
  return out;
}

/// Appends what the escape whose backslash stands before `at` means in Python, and moves `at` behind it.
void Lexer::append_escape(std::string& out, std::string_view body, std::size_t& at, std::uint32_t line) const {
  const char kind = body[at];
  static constexpr std::string_view kNames = "\\'\"abfnrtv";
  static constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  if (kind == '\n') {
    ++at;
  } else if (const auto simple = kNames.find(kind); simple != std::string_view::npos) {
    out += kMeanings[simple];
    ++at;
  } else if (kind >= '0' && kind <= '7') {
    char32_t c = 0;
    for (int i = 0; i < 3 && at < body.size() && body[at] >= '0' && body[at] <= '7'; ++i)
      c = c * 8 + static_cast<char32_t>(body[at++] - '0');
    append_utf8(out, c);
  } else if (kind == 'x' || kind == 'u' || kind == 'U') {
    const std::size_t count = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
    const std::string_view digits = body.substr(at + 1, count);
    std::uint32_t c = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), c, 16);
    if (digits.size() != count || error != std::errc{} || end != digits.data() + count)
      fail(line, fmt::format("truncated \\{} escape in a string", kind));
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
      fail(line, fmt::format("the escape \\{}{} in a string is no character", kind, digits));
    append_utf8(out, c);
    at += 1 + count;
  } else if (kind == 'N') {
    fail(line, "\\N{...} in a string is not supported; write the character itself");
  } else if (static_cast<unsigned char>(kind) >= 0x80) {
    // Python escapes the character first, so that the backslash becomes one of text.
    out += escaped_code_point(next_code_point(body, at));
  } else {
    out += '\\';
    out += kind;
    ++at;
  }
}

}  // namespace candor::jinja
