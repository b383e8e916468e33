// Pre-tokenizers cut normalized text into the words that the model sees. A pre-tokenizer is a list of steps; each step
// cuts every piece that the one before it left. Semantics are those of Hugging Face's tokenizers, component by
// component.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/pattern.h"

namespace candor::text {

/// What becomes of the delimiters that a split finds.
enum class SplitBehavior : std::uint8_t { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Cuts at matches of a pattern; `invert` exchanges matches and the text between them.
struct PatternSplit {
  Pattern pattern;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;
};

/// Cuts at single characters of a class.
struct CharacterSplit {
  enum class Class : std::uint8_t { white_space, punctuation, number };
  Class characters = Class::white_space;
  SplitBehavior behavior = SplitBehavior::removed;
};

/// Writes spaces as `replacement` (▁), puts one before the text as `scheme` says, and cuts before each.
struct Metaspace {
  enum class Scheme : std::uint8_t { always, first, never };
  char32_t replacement = 0x2581;
  Scheme scheme = Scheme::always;
  bool split = true;
};

/// Spells words in the byte alphabet (unless the model takes raw bytes), after cutting them by `pattern`.
struct ByteLevelSplit {
  bool add_prefix_space = false;
  std::optional<Pattern> pattern;
  bool spell = true;
};

/// Cuts into pieces of `length` characters.
struct FixedLengthSplit {
  std::size_t length = 1;
};

using PreTokenizerStep = std::variant<PatternSplit, CharacterSplit, Metaspace, ByteLevelSplit, FixedLengthSplit>;

/// GPT-2's pattern, which a ByteLevel step with use_regex cuts by.
[[nodiscard]] Pattern gpt2_pattern();

class PreTokenizer {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void word(std::string_view word) = 0;
  };

  PreTokenizer() = default;
  /// Throws Error(unsupported), naming `label`, for more than 64 steps.
  PreTokenizer(std::vector<PreTokenizerStep> steps, std::string_view label);

  /// Gives each word of `text` to `sink`, in order; none is empty. `at_start`: the text starts where the input did.
  void split(std::string_view text, bool at_start, Sink& sink) const { run(0, text, at_start, sink); }

  /// True if the last step, and only that, spells words in the byte alphabet.
  [[nodiscard]] bool ends_in_byte_level() const;
  /// Makes that step hand out raw bytes, for a model in byte mode.
  void leave_bytes_raw();

  /// The steps' names, for describe().
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  void run(std::size_t step, std::string_view text, bool at_start, Sink& sink) const;

  std::vector<PreTokenizerStep> steps_;
};

}  // namespace candor::text
