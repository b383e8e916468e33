// What the str of Python knows of Unicode and libutf8proc does not tell. Written by make_unicode_tables.py.
#pragma once

#include <array>
#include <span>

namespace candor::jinja {

struct CodePointRange {
  char32_t first;
  char32_t last;
};

/// A code point whose upper or title case is more than one (Unicode's SpecialCasing.txt, unconditional).
struct FullMapping {
  char32_t from;
  std::array<char32_t, 3> to;  ///< ends at 0
};

extern const std::span<const CodePointRange> kOtherLowercase;  ///< lower case without being of category Ll
extern const std::span<const CodePointRange> kOtherUppercase;  ///< upper case without being of category Lu
extern const std::span<const CodePointRange> kDigits;          ///< digits that are not decimal: superscripts, circled
extern const std::span<const CodePointRange> kNumericLetters;  ///< numeric, but no number by category: ideographs
extern const std::span<const FullMapping> kFullUpper;
extern const std::span<const FullMapping> kFullTitle;

}  // namespace candor::jinja
