// The methods of Python's built-in types that a template may call, one table a type.
#pragma once

#include <span>
#include <string_view>

#include "text/jinja/attribute.h"

namespace candor::jinja {

[[nodiscard]] std::span<const Method> text_methods();
[[nodiscard]] std::span<const Method> dict_methods();
[[nodiscard]] std::span<const Method> list_methods();
[[nodiscard]] std::span<const Method> tuple_methods();
[[nodiscard]] std::span<const Method> range_methods();
[[nodiscard]] std::span<const Method> integer_methods();
[[nodiscard]] std::span<const Method> float_methods();

}  // namespace candor::jinja
