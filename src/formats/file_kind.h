// What a file that is not the expected model file probably is, for error messages that name the remedy.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace candor {

/// A sentence about a file recognised by its first bytes as something other than model weights in a format read here (a
/// Git LFS pointer, a web page, a pickle, an archive), with what to do; nothing if it is not recognised.
[[nodiscard]] std::optional<std::string_view> recognise_other_file(std::span<const std::byte> file);

}  // namespace candor
