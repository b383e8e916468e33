// Errors of the public API. Every failure that input can cause is a candor::Error: a code, and a message that names the
// field, the value and the remedy.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace candor {

/// What went wrong, by what the user can do about it. The program's exit codes follow from it (docs/cli.md).
enum class ErrorCode {
  usage,        ///< a wrong argument or option
  not_found,    ///< a file, model or name does not exist
  io,           ///< reading or writing failed
  format,       ///< a file is malformed, truncated or contradicts itself
  unsupported,  ///< well formed, but this build has no way to do it
  plan,         ///< the manifest or plan is refused
  integrity,    ///< a digest differs from what was pinned
  resource,     ///< memory, context length or another limit is too small
  text,         ///< a tokenizer, template or grammar failed
  device,       ///< an accelerator is missing or failed
  cancelled,    ///< stopped on request
  internal      ///< a fault of this library
};

/// The code's name as it is printed and as `--json` shows it.
[[nodiscard]] std::string_view to_string(ErrorCode code);

/// The process's exit status for an error of this code.
[[nodiscard]] int exit_status(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

  [[nodiscard]] ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace candor
