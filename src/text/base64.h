// Base64 (RFC 4648, section 4), as tokenizer.json stores a precompiled character map.
#pragma once

#include <string>
#include <string_view>

namespace candor::text {

/// Throws Error(format), naming `label`: a character outside the alphabet, or wrong padding.
[[nodiscard]] std::string decode_base64(std::string_view text, std::string_view label);

}  // namespace candor::text
