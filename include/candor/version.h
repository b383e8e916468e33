// The version of these headers. It is that of the CMake project; the package's test compares the two.
#pragma once

#include <string_view>

namespace candor {

/// Semantic version: until 1.0 a change of the minor number may break the interface.
inline constexpr std::string_view version = "0.1.0";

}  // namespace candor
