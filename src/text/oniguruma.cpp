#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/oniguruma.h"

#include <pcre2.h>

#include <array>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"

namespace candor::text {
namespace {

// Members of a class; White_Space is spelled out because PCRE2's \s adds U+180E, and as ranges it tests faster than as
// a property.
constexpr std::string_view kSpace =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
// Outside brackets \w and \b count the Latin-1 superscripts and fractions too: Oniguruma has a table for that block.
constexpr std::string_view kWordAlone = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
constexpr std::string_view kDigit = R"(\p{Nd})";
constexpr std::string_view kHex = "0-9A-Fa-f";

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kPosix{{
    {"space", kSpace},
    {"word", kWord},
    {"digit", kDigit},
    {"xdigit", kHex},
    {"alpha", R"(\p{Alphabetic})"},
    {"alnum", R"(\p{Alphabetic}\p{Nd})"},
    {"upper", R"(\p{Uppercase})"},
    {"lower", R"(\p{Lowercase})"},
}};

std::optional<std::string_view> shorthand(char letter) {
  switch (std::tolower(static_cast<unsigned char>(letter))) {
    case 's':
      return kSpace;
    case 'w':
      return kWord;
    case 'd':
      return kDigit;
    case 'h':
      return kHex;
    default:
      return std::nullopt;
  }
}

/// True if PCRE2 knows a script of this name. \p{Han} means the script in Oniguruma, but the script and its extensions
/// in PCRE2, where \p{sc:Han} is the script.
bool is_script(std::string_view name) {
  if (name.size() < 3 ||
      name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_ -") != std::string_view::npos)
    return false;
  const std::string pattern = fmt::format("\\p{{sc:{}}}", name);
  int error = 0;
  PCRE2_SIZE position = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP,
                                   &error, &position, nullptr);
  pcre2_code_free(code);
  return code != nullptr;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Translator {
 public:
  Translator(std::string_view pattern, std::string_view label) : in_(pattern), label_(label) {}

  std::string translate() {
    while (at_ < in_.size()) step();
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    fail(ErrorCode::unsupported, "{}: pattern \"{}\": {} at byte {} has no equivalent here", label_,
         printable(in_, 300), what, at_);
  }

  [[nodiscard]] char peek(std::size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  [[nodiscard]] bool follows(std::string_view text) const { return in_.substr(at_).starts_with(text); }

  /// Writes one atom, so that an interval after it can be wrapped together with it.
  void atom(std::string_view text, std::size_t consumed) {
    atom_ = out_.size();
    out_ += text;
    at_ += consumed;
  }

  void step() {
    switch (peek()) {
      case '\\':
        return escape();
      case '[': {
        const std::size_t begin = out_.size();
        const std::string text = character_class();
        out_.resize(begin);
        return atom(text, 0);
      }
      case '(':
        return open_group();
      case ')':
        out_ += in_[at_++];
        if (!groups_.empty()) {
          atom_ = groups_.back();
          groups_.pop_back();
        }
        return;
      case '{':
        return interval();
      case '*':
      case '+':
      case '?':
      case '|':
        out_ += in_[at_++];
        return;
      default: {
        std::size_t size = 1;
        while (at_ + size < in_.size() && (static_cast<unsigned char>(in_[at_ + size]) & 0xc0) == 0x80) ++size;
        return atom(in_.substr(at_, size), size);
      }
    }
  }

  void escape() {
    const char letter = peek(1);
    if (letter == '\0') refuse("a trailing backslash");
    if (const auto members = shorthand(letter)) {
      const bool negated = std::isupper(static_cast<unsigned char>(letter)) != 0;
      return atom(fmt::format("[{}{}]", negated ? "^" : "", *members == kWord ? kWordAlone : *members), 2);
    }
    switch (letter) {
      case 'b':
        return atom(fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", kWordAlone), 2);
      case 'B':
        return atom(fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", kWordAlone), 2);
      case 'y':
      case 'Y':
      case 'O':
      case 'N':
      case 'C':
      case 'M':
      case 'g':
        refuse(fmt::format("\\{}", letter));
      default: {
        const std::string text = escaped_character();
        return atom(text, 0);
      }
    }
  }

  /// An escape that means one character or one property in both languages; consumed.
  std::string escaped_character() {
    const char letter = peek(1);
    if (letter == 'u') {
      const std::string_view digits = in_.substr(std::min(at_ + 2, in_.size()), 4);
      if (digits.size() != 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
        refuse("\\u without four hexadecimal digits");
      at_ += 6;
      return fmt::format("\\x{{{}}}", digits);
    }
    std::size_t size = 2;
    if ((letter == 'p' || letter == 'P' || letter == 'x' || letter == 'k') && (peek(2) == '{' || peek(2) == '<')) {
      const auto end = in_.find(peek(2) == '{' ? '}' : '>', at_);
      if (end == std::string_view::npos) refuse("an open brace");
      size = end + 1 - at_;
    } else {
      while (at_ + size < in_.size() && (static_cast<unsigned char>(in_[at_ + size]) & 0xc0) == 0x80) ++size;
    }
    std::string text(in_.substr(at_, size));
    at_ += size;
    if ((letter == 'p' || letter == 'P') && text.size() > 4 && text[2] == '{') {
      const std::size_t name = text[3] == '^' ? 4 : 3;
      if (is_script(std::string_view(text).substr(name, text.size() - name - 1))) text.insert(name, "sc:");
    }
    return text;
  }

  void open_group() {
    if (follows("(?~")) refuse("an absence operator");
    groups_.push_back(out_.size());
    if (!follows("(?") || follows("(?#")) {
      if (follows("(?#")) refuse("a comment");
      out_ += in_[at_++];
      return;
    }
    // Copy the head of the group up to the end of its options; m means what s means in PCRE2.
    std::size_t end = at_ + 2;
    bool options = true;
    while (end < in_.size() && (std::isalpha(static_cast<unsigned char>(in_[end])) || in_[end] == '-')) ++end;
    options = end < in_.size() && (in_[end] == ':' || in_[end] == ')');
    out_ += "(?";
    at_ += 2;
    if (!options) return;
    for (; at_ < end; ++at_) {
      const char option = in_[at_];
      if (option != 'i' && option != 'm' && option != 'x' && option != '-') refuse(fmt::format("option {}", option));
      if (option == 'x') refuse("extended syntax");
      out_ += option == 'm' ? 's' : option;
    }
    // "(?i)" opens nothing. After an alternative has begun, Oniguruma and PCRE2 differ on how far it reaches.
    if (in_[end] == ')') {
      if (out_.find_first_not_of("(?imsx-)") != std::string::npos) refuse("an option inside the pattern");
      groups_.pop_back();
      out_ += ')';
      ++at_;
    }
  }

  void interval() {
    std::size_t end = at_ + 1;
    while (end < in_.size() && is_digit(in_[end])) ++end;
    const bool has_low = end > at_ + 1;
    const bool has_comma = end < in_.size() && in_[end] == ',';
    std::size_t high = end;
    if (has_comma) {
      high = end + 1;
      while (high < in_.size() && is_digit(in_[high])) ++high;
    }
    const bool has_high = has_comma && high > end + 1;
    if (high >= in_.size() || in_[high] != '}' || (!has_low && !has_high)) return atom("\\{", 1);
    const std::string bounds = fmt::format("{{{}{}", has_low ? "" : "0", in_.substr(at_ + 1, high - at_));
    at_ = high + 1;
    if (peek() == '?' && !has_comma) refuse("a lazy interval with one bound");
    if (peek() == '+' || peek() == '*') {  // repeats the interval; PCRE2 would make it possessive
      out_.insert(atom_, "(?:");
      out_ += bounds + ")";
    } else {
      out_ += bounds;
    }
  }

  /// A bracketed class as PCRE2 text; consumed. An intersection becomes look-aheads before its last operand.
  std::string character_class(int depth = 0) {
    if (depth > 16) refuse("a class nested deeper than 16 levels");
    ++at_;
    const bool negated = peek() == '^';
    if (negated) ++at_;
    std::vector<std::string> operands(1);  // each the inside of a class
    bool first = true;
    while (true) {
      if (at_ >= in_.size()) refuse("an open class");
      if (peek() == ']' && !first) break;
      if (follows("&&")) {
        at_ += 2;
        operands.emplace_back();
        continue;
      }
      class_item(operands.back(), depth);
      first = false;
    }
    ++at_;
    for (const auto& operand : operands)
      if (operand.empty()) refuse("an empty operand of &&");
    if (operands.size() == 1) return join_class(operands[0], negated);
    std::string text = negated ? "(?:(?!" : "(?:";
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool is_last = i + 1 == operands.size();
      text += is_last ? join_class(operands[i], false) : "(?=" + join_class(operands[i], false) + ")";
    }
    return text + (negated ? ")(?s:.))" : ")");
  }

  /// Operands are kept as the inside of a class; one that starts with "^" is a whole negated class.
  static std::string join_class(const std::string& inside, bool negated) {
    const bool inner_negated = inside[0] == '^';
    if (inner_negated) return fmt::format("[{}{}]", negated ? "" : "^", inside.substr(1));
    return fmt::format("[{}{}]", negated ? "^" : "", inside);
  }

  void class_item(std::string& inside, int depth) {
    if (!inside.empty() && inside[0] == '^') refuse("a union with a negated class");
    if (follows("[:")) return posix_bracket(inside);
    if (peek() == '[') {
      const std::string nested = character_class(depth + 1);
      if (nested[0] != '[') refuse("an intersection inside a union");
      const std::string members = nested.substr(1, nested.size() - 2);
      if (members[0] == '^' && !inside.empty()) refuse("a union with a negated class");
      inside += members;
      return;
    }
    if (peek() == '\\') {
      if (const auto members = shorthand(peek(1))) {
        if (std::isupper(static_cast<unsigned char>(peek(1))) == 0) {
          inside += *members;
        } else {
          negated_shorthand(inside, peek(1));
        }
        at_ += 2;
        return;
      }
      if (peek(1) == 'R' || peek(1) == 'X' || peek(1) == '\0') refuse("this escape in a class");
      inside += escaped_character();
      return;
    }
    if (peek() == '^' && inside.empty()) inside += '\\';
    inside += in_[at_++];
  }

  /// The complement of a shorthand as class members: PCRE2 has properties for each.
  void negated_shorthand(std::string& inside, char letter) {
    if (letter == 'S') {
      inside += R"(\P{White_Space})";
    } else if (letter == 'D') {
      inside += R"(\P{Nd})";
    } else {
      refuse(fmt::format("\\{} in a class", letter));
    }
  }

  void posix_bracket(std::string& inside) {
    for (const auto& [name, members] : kPosix) {
      const std::string bracket = fmt::format("[:{}:]", name);
      if (!follows(bracket)) continue;
      inside += members;
      at_ += bracket.size();
      return;
    }
    refuse("this POSIX bracket");
  }

  std::string_view in_;
  std::string_view label_;
  std::size_t at_ = 0;
  std::string out_;
  std::size_t atom_ = 0;             // where the last atom starts in out_
  std::vector<std::size_t> groups_;  // where open groups start in out_
};

}  // namespace

std::string pcre2_from_oniguruma(std::string_view pattern, std::string_view label) {
  return Translator(pattern, label).translate();
}

}  // namespace candor::text
