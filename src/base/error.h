// How the code throws candor::Error (candor/error.h), and how untrusted text is put into its messages. Not a goal:
// recovering inside a layer; errors travel to the caller unchanged. Asserts are only for what no input can cause.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "candor/error.h"

namespace candor {

/// Throws an Error whose message is formatted as by fmt::format.
template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

/// `text` made safe to print on one line: control characters and invalid UTF-8 become \xNN, and it is cut at `limit`.
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = 120);

}  // namespace candor
