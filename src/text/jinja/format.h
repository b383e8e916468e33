// The three ways of Python to put values into text: "…" % values, "…".format(values), and the format specifications
// both and format() share.
#pragma once

#include <string_view>

#include "text/jinja/runtime.h"

namespace candor::jinja {

/// text % arguments (printf style). `text` is a string; its markup is kept and what is put in is escaped then.
[[nodiscard]] Value format_percent(Runtime& runtime, const Value& text, const Value& arguments);

/// text.format(arguments), with the sandbox's rules for attributes.
[[nodiscard]] Value format_braces(Runtime& runtime, const Value& text, const Arguments& arguments);

/// Appends format(value, specification).
void format_value(Runtime& runtime, Buffer& out, const Value& value, std::string_view specification);

}  // namespace candor::jinja
