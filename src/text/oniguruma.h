// tokenizer.json writes its patterns in Oniguruma's syntax; this build matches with PCRE2. Most of the two languages is
// the same text with the same meaning. What differs is rewritten here, and what has no equivalent is refused, so that a
// pattern never means something else than it did where the model was trained.
//
// Rewritten: \s \S \w \W \d \D \b \B \h \H and POSIX brackets (Unicode's properties, not PCRE2's), unions and
// intersections of character classes, {n,m}+ (a repeated interval in Oniguruma, a possessive one in PCRE2), {,n},
// \uHHHH, and the option m (dot matches newline). Refused: absence operators, calls, \y \Y \O \N, other brackets.
// Source: Oniguruma's doc/RE (syntax ONIG_SYNTAX_ONIGURUMA) and pcre2pattern(3).
#pragma once

#include <string>
#include <string_view>

namespace candor::text {

/// The PCRE2 pattern, for options UTF, UCP and MULTILINE, that matches what `pattern` matches in Oniguruma. Throws
/// Error(unsupported), naming `label` and the position, for what has no equivalent.
[[nodiscard]] std::string pcre2_from_oniguruma(std::string_view pattern, std::string_view label);

}  // namespace candor::text
