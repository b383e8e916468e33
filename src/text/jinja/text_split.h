// Cutting text into pieces as str.split, rsplit, splitlines and strip do. Pieces are views of the text, handed out one
// by one, so that the caller can bound what it keeps.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace candor::jinja {

using TakePiece = std::function<void(std::string_view)>;

/// At most `limit` cuts at white space (no empty pieces); without limit if it is negative.
void split_space(std::string_view text, std::int64_t limit, const TakePiece& take);
/// The same from the end of the text: the last piece comes first.
void split_space_from_right(std::string_view text, std::int64_t limit, const TakePiece& take);
/// At most `limit` cuts at `separator`, which is not empty.
void split_at(std::string_view text, std::string_view separator, std::int64_t limit, const TakePiece& take);
/// The same from the end of the text: the last piece comes first.
void split_at_from_right(std::string_view text, std::string_view separator, std::int64_t limit, const TakePiece& take);
void split_lines(std::string_view text, bool keep_ends, const TakePiece& take);

/// `text` without the code points of `set` at its start or end.
[[nodiscard]] std::string_view strip_left(std::string_view text, std::string_view set);
[[nodiscard]] std::string_view strip_right(std::string_view text, std::string_view set);

}  // namespace candor::jinja
