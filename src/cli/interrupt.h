// Signals of a terminal program. Where work can stop half-way and still have something to show, Ctrl-C asks it to; a
// second one before it has ends the process at once. Elsewhere the first one does: files are written whole or not at
// all. A closed pipe is an error of write(), not a signal.
#pragma once

namespace candor::cli {

/// Called once, by main().
void install_signal_handlers();

/// From now on Ctrl-C sets interrupted() and ends nothing.
void catch_interrupts();

/// True once Ctrl-C was pressed since the last clear_interrupt().
[[nodiscard]] bool interrupted();
void clear_interrupt();

}  // namespace candor::cli
