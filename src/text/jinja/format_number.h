// Digits of numbers for the format types of printf and of Python's format().
#pragma once

#include <string>

#include "text/jinja/runtime.h"

namespace candor::jinja {

/// The magnitude of an integer in base 2, 8, 10 or 16.
[[nodiscard]] std::string digits_of(Int value, int base, bool upper_case);

/// The magnitude of a float as printf's %e, %f or %g (`type` in "eEfFgG") with that many digits; "inf" or "nan" for
/// those. Fails for a precision that is too large.
[[nodiscard]] std::string digits_of(Runtime& runtime, double value, char type, Int precision, bool alternate);

}  // namespace candor::jinja
