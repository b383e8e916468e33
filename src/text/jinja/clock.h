// Local dates and times, printed as Python's datetime.strftime does in the C locale.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace candor {

/// What strftime_now reads: a local date and time, without a zone.
struct LocalTime {
  int year = 1970;
  int month = 1;  ///< 1 to 12
  int day = 1;
  int hour = 0;
  int minute = 0;
  int second = 0;

  /// From "2026-03-14T09:26:53". Throws Error(usage) for anything else or a date that does not exist.
  [[nodiscard]] static LocalTime parse(std::string_view text);
  /// The computer's clock, in its time zone.
  [[nodiscard]] static LocalTime now();
};

namespace jinja {

/// `format` with its directives replaced; nothing if the result is unreasonably long or `format` holds a NUL.
[[nodiscard]] std::optional<std::string> format_time(const LocalTime& time, const std::string& format);

}  // namespace jinja
}  // namespace candor
