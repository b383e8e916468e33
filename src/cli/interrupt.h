// Signals of a terminal program. Ctrl-C asks the running work to stop; a second one before it has ends the process at
// once. A closed pipe is an error of write(), not a signal.
#pragma once

namespace candor::cli {

/// Called once, by main().
void install_signal_handlers();

/// True once Ctrl-C was pressed since the last clear_interrupt().
[[nodiscard]] bool interrupted();
void clear_interrupt();

}  // namespace candor::cli
