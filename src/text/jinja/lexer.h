// Tokens of a template: Jinja2's lexer for the delimiters {% %}, {{ }}, {# #} with trim_blocks and lstrip_blocks on and
// the last newline removed. Tokens are made one at a time, so that an error is reported where parsing first meets it.
// Not goals: line statements, line comments, other delimiters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace candor::jinja {

enum class TokenKind : std::uint8_t {
  data,
  block_begin,
  block_end,
  variable_begin,
  variable_end,
  name,
  text,
  integer,
  floating,
  op,
  end
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::uint32_t line = 1;
  std::string text;     ///< data, a name, an operator, or the decoded string
  Int integer = 0;      ///< of an integer literal
  double floating = 0;  ///< of a float literal

  [[nodiscard]] bool is(TokenKind k) const { return kind == k; }
  [[nodiscard]] bool is_name(std::string_view name) const { return kind == TokenKind::name && text == name; }
  [[nodiscard]] bool is_op(std::string_view op) const { return kind == TokenKind::op && text == op; }
  /// How messages call it.
  [[nodiscard]] std::string describe() const;
};

class Lexer {
 public:
  /// `source` must be well-formed UTF-8. `label` names the template in errors.
  Lexer(std::string_view source, std::string label);

  /// The next token; TokenKind::end again and again at the end. Throws Error(text) with the line.
  [[nodiscard]] Token next();

  [[noreturn]] void fail(std::uint32_t line, const std::string& message) const;

 private:
  enum class State : std::uint8_t { root, block, variable };

  [[nodiscard]] bool next_in_root(Token& token);
  [[nodiscard]] bool next_in_tag(Token& token);
  void skip_comment();
  [[nodiscard]] bool at_raw_begin(std::size_t open, std::size_t& body) const;
  [[nodiscard]] Token raw_block(std::size_t body);
  [[nodiscard]] std::string_view strip_before_tag(std::string_view data, char sign, bool lstrip) const;
  [[nodiscard]] bool take_tag_end(Token& token);
  [[nodiscard]] bool take_number(Token& token);
  void take_string(Token& token);
  void take_operator(Token& token);
  [[nodiscard]] std::string decode_string(std::string_view body, std::uint32_t line) const;
  void append_escape(std::string& out, std::string_view body, std::size_t& at, std::uint32_t line) const;

  [[nodiscard]] std::string_view rest() const { return std::string_view(source_).substr(at_); }
  [[nodiscard]] char sign_after(std::size_t position) const;
  void advance_to(std::size_t position);
  void skip_white_space();

  std::string source_;
  std::string label_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  std::uint32_t last_line_ = 1;  // of the token returned last
  State state_ = State::root;
  bool line_starting_ = true;        // what was consumed last ended with a newline
  std::vector<char> open_brackets_;  // the closers still expected in this tag
};

}  // namespace candor::jinja
