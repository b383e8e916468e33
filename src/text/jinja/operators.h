// Python's operators on template values. Errors name the types, as "unsupported operand types for +: 'str' and 'int'".
#pragma once

#include <compare>
#include <optional>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

namespace candor::jinja {

[[nodiscard]] bool truth(Runtime& runtime, const Value& value);
[[nodiscard]] bool equal(Runtime& runtime, const Value& a, const Value& b);
/// a is b, as far as values here can tell: the same object, or equal small constants.
[[nodiscard]] bool identical(const Value& a, const Value& b);
/// The result of <, <=, > or >=.
[[nodiscard]] bool ordered(Runtime& runtime, CompareOp op, const Value& a, const Value& b);
[[nodiscard]] bool contains(Runtime& runtime, const Value& container, const Value& element);
[[nodiscard]] bool compare(Runtime& runtime, CompareOp op, const Value& a, const Value& b);

[[nodiscard]] Value binary(Runtime& runtime, BinaryOp op, const Value& a, const Value& b);
[[nodiscard]] Value unary(Runtime& runtime, UnaryOp op, const Value& value);

/// len(value); nothing if the type has none.
[[nodiscard]] std::optional<std::size_t> length(Runtime& runtime, const Value& value);

/// value[start:stop:step]; absent parts are None.
[[nodiscard]] Value slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
                          const Value& step);

/// Whether `value` can be a key of a dict. Counts the work of comparing it with the keys of one.
[[nodiscard]] bool is_hashable(Runtime& runtime, const Value& value);
/// Fails unless it can.
void require_hashable(Runtime& runtime, const Value& value);

/// Fails with the message of an undefined value.
void require_defined(Runtime& runtime, const Value& value);

}  // namespace candor::jinja
