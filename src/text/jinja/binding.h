// Arguments of a call against the parameters of a built-in function.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "text/jinja/runtime.h"

namespace candor::jinja {

/// The arguments by parameter. A parameter that was not given is Missing.
class Bound {
 public:
  static constexpr std::size_t kMax = 6;

  Bound(Runtime& runtime, std::string_view function) : runtime_(runtime), function_(function) {}

  [[nodiscard]] bool has(std::size_t i) const { return !values_[i].is_missing(); }
  [[nodiscard]] const Value& operator[](std::size_t i) const { return values_[i]; }
  [[nodiscard]] Value or_else(std::size_t i, Value fallback) const { return has(i) ? values_[i] : std::move(fallback); }
  [[nodiscard]] bool truth(std::size_t i, bool fallback) const;
  /// An int; fails for another type.
  [[nodiscard]] Int integer(std::size_t i, Int fallback) const;
  /// A string; fails for another type.
  [[nodiscard]] std::string_view text(std::size_t i, std::string_view fallback) const;

  Value& slot(std::size_t i) { return values_[i]; }

 private:
  Runtime& runtime_;
  std::string_view function_;
  std::array<Value, kMax> values_;
};

enum class Naming : std::uint8_t { allowed, positional_only };

/// Fails for too many, unknown, repeated or missing arguments. The first `required` parameters have no default.
[[nodiscard]] Bound bind(Runtime& runtime, const Arguments& arguments, std::string_view function,
                         std::initializer_list<std::string_view> parameters, std::size_t required,
                         Naming naming = Naming::allowed);

/// The same for what takes no arguments by name, as most methods of Python's types.
[[nodiscard]] inline Bound positional(Runtime& runtime, const Arguments& arguments, std::string_view function,
                                      std::initializer_list<std::string_view> parameters, std::size_t required) {
  return bind(runtime, arguments, function, parameters, required, Naming::positional_only);
}

}  // namespace candor::jinja
