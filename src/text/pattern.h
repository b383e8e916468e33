// Patterns that split or replace text: a literal, or a regular expression compiled by PCRE2's JIT with bounds on the
// work of one match. A pattern never changes after it is built and may be used by several threads at once.
// Rejected: std::regex (no Unicode, recursion on input) and a matcher of our own for each known pattern (a second
// definition of the same language to keep equal).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace candor::text {

class Pattern {
 public:
  struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  /// A pattern in Oniguruma's syntax, as tokenizer.json has it. Throws Error(format) or Error(unsupported), naming
  /// `label`.
  [[nodiscard]] static Pattern regex(std::string_view oniguruma, std::string_view label);
  /// A pattern in PCRE2's syntax (this program's own), with options UTF, UCP and MULTILINE.
  [[nodiscard]] static Pattern pcre2(std::string_view pattern, std::string_view label);
  [[nodiscard]] static Pattern literal(std::string_view text);

  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  /// Calls visit(span) for each match, left to right, without overlap. An empty match right after a match is passed
  /// over. Throws Error(text) when a match needs more than its share of work.
  template <typename Visit>
  void for_each_match(std::string_view text, const Visit& visit) const {
    Search search(*this, text);
    while (const auto span = search.next()) visit(*span);
  }

  [[nodiscard]] bool is_found_in(std::string_view text) const { return Search(*this, text).next().has_value(); }

  /// As it was given.
  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] bool is_literal() const { return compiled_ == nullptr; }

 private:
  struct Compiled;

  class Search {
   public:
    Search(const Pattern& pattern, std::string_view text) : pattern_(pattern), text_(text) {}
    [[nodiscard]] std::optional<Span> next();

   private:
    [[nodiscard]] std::optional<Span> next_literal();
    [[nodiscard]] std::optional<Span> next_regex();

    const Pattern& pattern_;
    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t last_end_ = static_cast<std::size_t>(-1);
  };

  explicit Pattern(std::string_view source);

  std::string source_;
  std::unique_ptr<const Compiled> compiled_;
};

}  // namespace candor::text
