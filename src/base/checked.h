// Arithmetic on numbers that came from a file or a request: every overflow is an Error, never a wrap.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace candor {

/// a + b, or a format error naming `what`.
[[nodiscard]] inline std::uint64_t checked_add(std::uint64_t a, std::uint64_t b, std::string_view what) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) fail(ErrorCode::format, "{}: {} + {} overflows 64 bits", what, a, b);
  return sum;
}

/// a * b, or a format error naming `what`.
[[nodiscard]] inline std::uint64_t checked_mul(std::uint64_t a, std::uint64_t b, std::string_view what) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) fail(ErrorCode::format, "{}: {} × {} overflows 64 bits", what, a, b);
  return product;
}

/// `value` rounded up to a multiple of `alignment` (a power of two), or a format error naming `what`.
[[nodiscard]] inline std::uint64_t checked_align(std::uint64_t value, std::uint64_t alignment, std::string_view what) {
  return checked_add(value, alignment - 1, what) & ~(alignment - 1);
}

/// `value` as a To, or a format error naming `what` if it does not fit.
template <std::integral To, std::integral From>
[[nodiscard]] To checked_cast(From value, std::string_view what) {
  if (!std::in_range<To>(value)) fail(ErrorCode::format, "{}: {} is out of range", what, value);
  return static_cast<To>(value);
}

}  // namespace candor
