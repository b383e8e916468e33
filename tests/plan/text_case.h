// Reading *.test files (README.md describes them) and making a compiler's input of a case.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "kernels/registry.h"

namespace candor::plan {

struct TextSection {
  std::string name;                ///< "expect steps"
  std::string value;               ///< what follows a colon on the same line
  std::vector<std::string> lines;  ///< trimmed, without blank ones

  [[nodiscard]] std::string text() const;
  [[nodiscard]] Json json() const;
};

struct TextCase {
  std::string title;
  std::size_t line = 0;
  std::vector<TextSection> sections;

  /// Null if the case has none of that name.
  [[nodiscard]] const TextSection* find(const std::string& name) const;
};

[[nodiscard]] std::vector<TextCase> read_text_cases(const std::filesystem::path& file);

/// The registry of kernels.json. The digest of a kernel is that of its "<file>#<entry>".
[[nodiscard]] kernels::KernelRegistry text_registry(const std::filesystem::path& file);

struct TextInput {
  Json inference;
  Json overlay;  ///< null if the case has none
};

/// The manifest's inference and the overlay of a case, with what it leaves out filled in.
[[nodiscard]] TextInput make_input(const TextCase& text_case, const kernels::KernelRegistry& registry);

}  // namespace candor::plan
