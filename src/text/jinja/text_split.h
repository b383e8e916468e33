// Cutting text into pieces as str.split, rsplit, splitlines and strip do. Pieces are views of the text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace candor::jinja {

/// At most `limit` cuts at white space (none at the ends); without limit if it is negative.
[[nodiscard]] std::vector<std::string_view> split_space(std::string_view text, std::int64_t limit);
[[nodiscard]] std::vector<std::string_view> split_space_from_right(std::string_view text, std::int64_t limit);
/// At most `limit` cuts at `separator`, which is not empty.
[[nodiscard]] std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                                     std::int64_t limit);
[[nodiscard]] std::vector<std::string_view> split_at_from_right(std::string_view text, std::string_view separator,
                                                                std::int64_t limit);
[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

/// `text` without the code points of `set` at its start or end.
[[nodiscard]] std::string_view strip_left(std::string_view text, std::string_view set);
[[nodiscard]] std::string_view strip_right(std::string_view text, std::string_view set);

}  // namespace candor::jinja
