// File names that stand inside model files (shards of an index, of a manifest). They name files beside the one that
// mentions them, and nothing else: no folders, no "..".
#pragma once

#include <string_view>

#include "base/error.h"
#include "base/utf8.h"

namespace candor {

[[nodiscard]] constexpr bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos && is_utf8(name);
}

/// Throws Error(format), starting with `what`, if `name` is not the name of a file in the same folder.
inline void check_plain_file_name(std::string_view name, std::string_view what) {
  if (!is_plain_file_name(name))
    fail(ErrorCode::format, "{}: \"{}\" is not a plain file name; it may not be empty or hold a folder", what,
         printable(name));
}

}  // namespace candor
