#include "cli/input.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/limits.h"
#include "cli/interrupt.h"

namespace candor::cli {

bool input_is_terminal() {
  return ::isatty(STDIN_FILENO) == 1;
}

std::string read_input() {
  std::string text;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count == 0) return text;
    if (count < 0 && interrupted()) fail(ErrorCode::cancelled, "stopped while reading standard input");
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorCode::io, "cannot read standard input: {}", std::strerror(errno));
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > limits::prompt_bytes)
      fail(ErrorCode::resource, "standard input has more than the {} bytes that a text may have", limits::prompt_bytes);
  }
}

std::optional<std::string> read_line(const char* prompt) {
  std::fputs(prompt, stderr);
  char* line = nullptr;
  std::size_t capacity = 0;
  const ssize_t length = ::getline(&line, &capacity, stdin);
  const std::unique_ptr<char, decltype(&std::free)> owner(line, &std::free);
  if (length < 0) {
    std::clearerr(stdin);
    return std::nullopt;
  }
  std::string text(line, static_cast<std::size_t>(length));
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace candor::cli
