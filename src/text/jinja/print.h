// str() and repr() of values.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/runtime.h"

namespace candor::jinja {

/// Appends str(value). Fails for what Python prints with an address (functions, iterators).
void print(Runtime& runtime, Buffer& out, const Value& value);
/// Appends repr(value).
void print_repr(Runtime& runtime, Buffer& out, const Value& value);

/// Appends ascii(value): repr with everything beyond ASCII escaped.
void print_ascii(Runtime& runtime, Buffer& out, const Value& value);

/// str(value) as a value; a string is itself, without its markup.
[[nodiscard]] Value to_text(Runtime& runtime, const Value& value);
/// The same that keeps markup (soft_str).
[[nodiscard]] Value to_soft_text(Runtime& runtime, const Value& value);

/// Appends `text` with &, <, >, ' and " replaced.
void append_escaped(Buffer& out, std::string_view text);
/// Marked-up text of the value: escaped unless it is markup already.
[[nodiscard]] Value escape(Runtime& runtime, const Value& value);

}  // namespace candor::jinja
