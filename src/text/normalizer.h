// Normalizers rewrite text before it is cut into words. A normalizer is a list of steps, each a value; the semantics
// are those of Hugging Face's tokenizers, component by component, and of SentencePiece where the step says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/charsmap.h"
#include "text/pattern.h"
#include "text/sentencepiece.h"
#include "text/unicode.h"

namespace candor::text {

struct UnicodeForm {
  unicode::Form form = unicode::Form::nfc;
};
struct Lowercase {};
/// Removes combining marks (general category M).
struct StripAccents {};
/// Removes white space at the ends.
struct StripWhiteSpace {
  bool left = true;
  bool right = true;
};
/// SentencePiece's nmt rules: control characters go, unusual spaces become spaces.
struct Nmt {};
/// Puts `text` before a text that is not empty.
struct Prepend {
  std::string text;
};
struct Replace {
  Pattern pattern;
  std::string content;
};
/// BERT's own: control characters go, white space becomes spaces, ideographs stand alone, accents and case are dropped.
struct BertNormalizer {
  bool clean_text = true;
  bool space_ideographs = true;
  bool strip_accents = true;
  bool lowercase = true;
};
/// Spells the text in the byte alphabet.
struct SpellBytes {};
/// A precompiled character map, applied grapheme by grapheme as Hugging Face's tokenizers do.
struct Precompiled {
  Charsmap map;
};

using NormalizerStep = std::variant<UnicodeForm, Lowercase, StripAccents, StripWhiteSpace, Nmt, Prepend, Replace,
                                    BertNormalizer, SpellBytes, Precompiled, SentencePieceRules>;

class Normalizer {
 public:
  Normalizer() = default;
  explicit Normalizer(std::vector<NormalizerStep> steps) : steps_(std::move(steps)) {}

  [[nodiscard]] bool empty() const { return steps_.empty(); }

  /// `text` normalized. `at_start`, true where the text begins the input, becomes false when a step removed its first
  /// characters: components that act "at the start" then do not, as in Hugging Face's.
  [[nodiscard]] std::string apply(std::string_view text, bool& at_start) const;

  /// The steps' names, for describe().
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::vector<NormalizerStep> steps_;
};

}  // namespace candor::text
