#include "cli/interrupt.h"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

#include "base/error.h"

namespace candor::cli {
namespace {

volatile std::sig_atomic_t pressed = 0;

bool says_json = false;
const char* remedy_said = "";

/// Only what a signal handler may do.
[[noreturn]] void end_by_interrupt(int) {
  const char* before =
      says_json ? "{\"error\":{\"code\":\"cancelled\",\"message\":\"interrupted" : "candor: interrupted";
  if (!says_json && ::isatty(STDERR_FILENO) == 1) before = "\ncandor: interrupted";  // below a progress bar and ^C
  const char* after = says_json ? "\"}}\n" : "\n";
  const auto part = [](const char* text) { return iovec{const_cast<char*>(text), std::strlen(text)}; };
  const std::array<iovec, 3> parts{part(before), part(remedy_said), part(after)};
  (void)!::writev(STDERR_FILENO, parts.data(), static_cast<int>(parts.size()));
  ::_exit(exit_status(ErrorCode::cancelled));
}

void on_interrupt(int) {
  if (pressed != 0) ::_exit(exit_status(ErrorCode::cancelled));
  pressed = 1;
}

}  // namespace

void install_signal_handlers(bool json) {
  says_json = json;
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGPIPE, &action, nullptr);
  struct sigaction inherited = {};
  ::sigaction(SIGINT, nullptr, &inherited);
  if (inherited.sa_handler == SIG_IGN) return;  // a job that a script started in the background
  action.sa_handler = end_by_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
}

void say_when_interrupted(const char* remedy) {
  remedy_said = remedy;
}

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);  // without SA_RESTART, so that waiting for a line ends too
}

bool interrupted() {
  return pressed != 0;
}

void clear_interrupt() {
  pressed = 0;
}

}  // namespace candor::cli
