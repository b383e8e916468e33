// SentencePiece's precompiled character map: a Darts-clone double array whose values point into a block of replacement
// strings. Read in place with every index checked. Source: sentencepiece's normalizer.cc and darts-clone's unit layout.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace candor::text {

class Charsmap {
 public:
  struct Match {
    std::size_t length = 0;  ///< bytes of the text that are replaced
    std::string_view replacement;
  };

  /// Parses the blob: u32 size of the array in bytes, the array, zero-terminated strings. An empty blob maps nothing.
  /// Throws Error(format), naming `label`.
  Charsmap(std::string_view blob, std::string_view label);

  /// The longest, or the shortest, key that `text` starts with.
  [[nodiscard]] std::optional<Match> longest(std::string_view text) const;
  [[nodiscard]] std::optional<Match> shortest(std::string_view text) const;

  /// What Hugging Face's tokenizers do: a grapheme of fewer than 6 bytes is replaced as a whole by the value of the
  /// shortest key it starts with; other text is mapped character by character. Clears `at_start` when the first
  /// characters were removed.
  [[nodiscard]] std::string apply_by_grapheme(std::string_view text, bool& at_start) const;

 private:
  template <typename Visit>
  void for_each_prefix(std::string_view text, const Visit& visit) const;
  [[nodiscard]] std::string_view string_at(std::uint32_t offset) const;

  std::vector<std::uint32_t> units_;
  std::string strings_;
};

}  // namespace candor::text
