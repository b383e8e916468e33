// Making new text as the methods of Python's str do. All of them keep the markup of `text`; text arguments of marked-up
// text are escaped by the caller.
#pragma once

#include <string_view>

#include "text/jinja/runtime.h"

namespace candor::jinja {

/// text.replace(old, replacement, count); a negative count replaces all.
[[nodiscard]] Value replace_text(Runtime& runtime, const Value& text, std::string_view old,
                                 std::string_view replacement, Int count);

/// separator.join(items): every item must be a string.
[[nodiscard]] Value join_text(Runtime& runtime, const Value& separator, const std::vector<Value>& items);

enum class Align : std::uint8_t { left, right, center };

/// text.ljust, rjust or center(width, fill); `fill` is one code point.
[[nodiscard]] Value pad_text(Runtime& runtime, const Value& text, Int width, std::string_view fill, Align align);

}  // namespace candor::jinja
