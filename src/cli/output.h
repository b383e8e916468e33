// What the program writes. Answers go to standard output and nothing else does; notes, reports and errors go to
// standard error. A reader that closes the pipe ends the program quietly, any other failure to write is an error.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace candor::cli {

/// Standard output was closed by its reader. No Error, because nobody is left to read a message.
struct OutputClosed {};

/// Exit status of compare and replay where what they computed differs.
inline constexpr int kDiffersStatus = 11;

/// Exit status after OutputClosed: what a shell shows for a process ended by SIGPIPE.
inline constexpr int kOutputClosedStatus = 141;

/// Writes to standard output. Throws OutputClosed, or Error(io).
void print(std::string_view text);

/// Writes what a model said, as soon as it said it. On a terminal, control characters other than line feed and tab are
/// written as \xNN: a model's output must not move the cursor or name windows.
void print_model_text(std::string_view text);

/// Writes one document, indented, and a line feed.
void print_json(const Json& value);

/// Pushes out what print() still holds. main() does so at the end.
void flush_output();

/// Writes a line to standard error, dim where that is a terminal.
void report(std::string_view line);

/// Writes "note: …" to standard error.
template <typename... Args>
void note(fmt::format_string<Args...> format, Args&&... args) {
  report("note: " + fmt::format(format, std::forward<Args>(args)...));
}

/// Writes an error to standard error: "candor: MESSAGE", or {"error": {"code", "message"}} on one line. Returns the
/// exit status of its code.
int report_error(ErrorCode code, std::string_view message, bool json);

/// Control characters as \xNN: C0 but line feed and tab, DEL, and C1 (U+0080 … U+009F). Names come from files, and must
/// not move the cursor; whatever is written for a person goes through this.
[[nodiscard]] std::string without_controls(std::string_view text);

/// Styles for a terminal; plain text elsewhere.
[[nodiscard]] std::string bold(std::string_view text);
[[nodiscard]] std::string dim(std::string_view text);

/// The first digits of "sha256:…" or of bare digits: enough for a person to compare.
[[nodiscard]] std::string short_digest(std::string_view digest);

/// "1 token", "2 tokens".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view noun);

/// A file that an option names to be written; an empty path is none.
struct OutputFile {
  std::string_view option;
  std::string path;
};

/// Throws Error(io), naming the option, if a file could not be written, and Error(usage) if it is a file of the model
/// or that of another option: to say so before the work that gives its content, not after. `model` is a file or a
/// folder.
void check_output_files(const std::vector<OutputFile>& files, const std::string& model);

/// A number with three significant digits where that is short: "0.123", "12.3", "456", "12345".
[[nodiscard]] std::string short_number(double value);

}  // namespace candor::cli
