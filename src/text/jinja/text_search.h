// Searching in UTF-8 text in time linear in its length, also for hostile needles.
#pragma once

#include <cstddef>
#include <string_view>

namespace candor::jinja {

/// The first byte position ≥ `from` at which `needle` stands, or npos. Linear time.
[[nodiscard]] std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from = 0);

/// The last position at which `needle` stands wholly within `text`, or npos. Linear time.
[[nodiscard]] std::size_t find_last_text(std::string_view text, std::string_view needle);

}  // namespace candor::jinja
