// What is compiled into the program besides the registry, and the check that it still is what the sources say.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"

namespace candor::kernels {

/// A kernel whose digest in this program differs from its source's.
struct DigestDifference {
  std::string file;
  std::string entry;
  std::string compiled;  ///< empty if the program has none
  std::string source;    ///< empty if the source file does not exist
};

/// Recomputes the digest of every built-in kernel from the `src` folder at `source_directory`. Empty if all agree.
[[nodiscard]] std::vector<DigestDifference> verify(const std::filesystem::path& source_directory);

/// The kernel-path rules compiled in (kernel_path_rules.json), for RuleRegistry.
[[nodiscard]] const Json& builtin_kernel_path_rules();

/// The backward registry compiled in (backward_registry.json), for backward_registry().
[[nodiscard]] const Json& builtin_backward_registry();

}  // namespace candor::kernels
