// str.islower() and its relatives, on whole strings.
#pragma once

#include <string_view>

namespace candor::jinja {

/// Some cased character, and no upper or title case.
[[nodiscard]] bool is_lower_text(std::string_view text);
/// Some cased character, and no lower or title case.
[[nodiscard]] bool is_upper_text(std::string_view text);
/// Words start with upper or title case and go on in lower case; there is at least one.
[[nodiscard]] bool is_title_text(std::string_view text);
/// True for non-empty text all of whose code points are in the class.
[[nodiscard]] bool all_of(std::string_view text, bool (*belongs)(char32_t));
[[nodiscard]] bool is_identifier(std::string_view text);

}  // namespace candor::jinja
