// Signals of a terminal program. Where work can stop half-way and still have something to show, Ctrl-C asks it to; a
// second one before it has ends the process at once. Elsewhere the first one does, with one line and the status of
// ErrorCode::cancelled: files are written whole or not at all. A closed pipe is an error of write(), not a signal.
#pragma once

namespace candor::cli {

/// Called once, by main(). `json`: what a signal has to say is a line of JSON, like errors.
void install_signal_handlers(bool json);

/// What an interrupt from now on says besides that it was one, such as how to go on. The text lives for good.
void say_when_interrupted(const char* remedy);

/// From now on Ctrl-C sets interrupted() and ends nothing.
void catch_interrupts();

/// True once Ctrl-C was pressed since the last clear_interrupt().
[[nodiscard]] bool interrupted();
void clear_interrupt();

}  // namespace candor::cli
