#include "text/jinja/clock.h"

#include <clocale>
#include <ctime>
#include <limits>

#include "base/error.h"

namespace candor {
namespace {

std::tm to_tm(const LocalTime& time) {
  std::tm parts{};
  parts.tm_year = time.year - 1900;
  parts.tm_mon = time.month - 1;
  parts.tm_mday = time.day;
  parts.tm_hour = time.hour;
  parts.tm_min = time.minute;
  parts.tm_sec = time.second;
  parts.tm_isdst = -1;
  // The calendar's own functions, in UTC, find the day of the week and of the year.
  std::tm utc = parts;
  utc.tm_isdst = 0;
  const std::time_t seconds = timegm(&utc);
  std::tm normalized{};
  gmtime_r(&seconds, &normalized);
  parts.tm_wday = normalized.tm_wday;
  parts.tm_yday = normalized.tm_yday;
  return parts;
}

/// Replaces what Python handles itself: microseconds, and the absent zone.
std::string replace_own_directives(const std::string& format) {
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    ++i;
    if (format[i] == 'f') {
      out += "000000";
    } else if (format[i] != 'z' && format[i] != 'Z') {
      out += '%';
      out += format[i];
    }
  }
  return out;
}

/// The process's C locale, made once.
locale_t c_locale() {
  static const locale_t locale = newlocale(LC_ALL_MASK, "C", nullptr);
  return locale;
}

}  // namespace

LocalTime LocalTime::parse(std::string_view text) {
  const auto invalid = [&]() {
    fail(ErrorCode::usage, "\"{}\" is not a date and time like 2026-03-14T09:26:53", printable(text));
  };
  static constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  if (text.size() != kForm.size()) invalid();
  for (std::size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == 'd' ? (text[i] < '0' || text[i] > '9') : text[i] != kForm[i]) invalid();
  const auto number = [&](std::size_t at, std::size_t count) {
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) value = value * 10 + (text[at + i] - '0');
    return value;
  };
  const LocalTime time{number(0, 4), number(5, 2), number(8, 2), number(11, 2), number(14, 2), number(17, 2)};
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (time.year < 1 || time.month < 1 || time.month > 12 || time.hour > 23 || time.minute > 59 || time.second > 59)
    invalid();
  const bool leap = time.year % 4 == 0 && (time.year % 100 != 0 || time.year % 400 == 0);
  const int days = kDays[time.month - 1] + (leap && time.month == 2 ? 1 : 0);
  if (time.day < 1 || time.day > days) invalid();
  return time;
}

LocalTime LocalTime::now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  return {parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec};
}

namespace jinja {
std::optional<std::string> format_time(const LocalTime& time, const std::string& format) {
  constexpr std::size_t kLongest = 64 << 10;
  if (format.find('\0') != std::string::npos || format.size() > kLongest) return std::nullopt;
  const std::tm parts = to_tm(time);
  std::string marked(1, 'x');  // so that an empty result is no failure
  marked += replace_own_directives(format);
  std::string out(256, '\0');
  for (;;) {
    const std::size_t size = strftime_l(out.data(), out.size(), marked.c_str(), &parts, c_locale());
    if (size > 0) return out.substr(1, size - 1);
    if (out.size() > kLongest) return std::nullopt;
    out.resize(out.size() * 4);
  }
}

}  // namespace jinja
}  // namespace candor
