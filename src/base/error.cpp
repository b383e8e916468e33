#include "base/error.h"

#include "base/utf8.h"

namespace candor {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return "usage";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::io:
      return "io";
    case ErrorCode::format:
      return "format";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::plan:
      return "plan";
    case ErrorCode::integrity:
      return "integrity";
    case ErrorCode::resource:
      return "resource";
    case ErrorCode::text:
      return "text";
    case ErrorCode::device:
      return "device";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return 2;
    case ErrorCode::not_found:
      return 3;
    case ErrorCode::io:
      return 3;
    case ErrorCode::format:
      return 4;
    case ErrorCode::unsupported:
      return 5;
    case ErrorCode::plan:
      return 6;
    case ErrorCode::integrity:
      return 7;
    case ErrorCode::resource:
      return 8;
    case ErrorCode::text:
      return 9;
    case ErrorCode::device:
      return 10;
    case ErrorCode::cancelled:
      return 130;
    case ErrorCode::internal:
      return 1;
  }
  return 1;
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    if (out.size() >= limit) return out + "…";
    const std::size_t length = utf8_sequence_length(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    // U+0080 … U+009F move the cursor of some terminals too.
    const bool is_c1 = length == 2 && byte == 0xc2 && static_cast<unsigned char>(text[at + 1]) < 0xa0;
    if (length == 0 || byte < 0x20 || byte == 0x7f || is_c1) {
      out += fmt::format("\\x{:02x}", is_c1 ? static_cast<unsigned char>(text[++at]) : byte);
      ++at;
    } else {
      out += text.substr(at, length);
      at += length;
    }
  }
  return out;
}

}  // namespace candor
