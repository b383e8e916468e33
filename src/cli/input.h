// What the program reads from standard input.
#pragma once

#include <optional>
#include <string>

namespace candor::cli {

[[nodiscard]] bool input_is_terminal();

/// All of standard input. Throws Error(resource) above limits::prompt_bytes, Error(io), Error(cancelled) at Ctrl-C.
[[nodiscard]] std::string read_input();

/// One line without its line feed; nothing at the end of the input or at Ctrl-C (interrupted() tells which). `prompt`
/// is written to standard error first.
[[nodiscard]] std::optional<std::string> read_line(const char* prompt);

}  // namespace candor::cli
