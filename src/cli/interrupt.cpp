#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "base/error.h"

namespace candor::cli {
namespace {

volatile std::sig_atomic_t pressed = 0;

void on_interrupt(int) {
  if (pressed != 0) ::_exit(exit_status(ErrorCode::cancelled));
  pressed = 1;
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGPIPE, &action, nullptr);
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
