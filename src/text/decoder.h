// Decoders turn tokens back into text. A decoder is a list of steps with the semantics of Hugging Face's tokenizers:
// each maps a list of strings to a list of strings, and the last list is joined. The same steps, applied to one token
// at a time, give the bytes that a token contributes to a stream.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/pattern.h"

namespace candor::text {

/// Undoes the byte alphabet.
struct ByteLevelDecode {};
/// <0xNN> tokens are bytes. A run of them that is not UTF-8 becomes U+FFFD for each byte.
struct ByteFallbackDecode {};
struct FuseDecode {};
/// Writes `replacement` (▁) as a space; in the first token it disappears if `strip_first`.
struct MetaspaceDecode {
  char32_t replacement = 0x2581;
  bool strip_first = true;
};
/// Joins continuations (`prefix`, "##") to their word and puts spaces before other tokens; `cleanup` removes spaces
/// before punctuation and English contractions.
struct WordPieceDecode {
  std::string prefix;
  bool cleanup = true;
};
struct ReplaceDecode {
  Pattern pattern;
  std::string content;
};
/// Removes up to `start` and `stop` characters `content` from the ends.
struct StripDecode {
  char32_t content = ' ';
  std::size_t start = 0;
  std::size_t stop = 0;
};
/// Joins tokens with spaces: what happens when a tokenizer has no decoder.
struct SpaceJoinDecode {};

using DecoderStep = std::variant<ByteLevelDecode, ByteFallbackDecode, FuseDecode, MetaspaceDecode, WordPieceDecode,
                                 ReplaceDecode, StripDecode, SpaceJoinDecode>;

/// SentencePiece's decoder: ▁ becomes a space, bytes become characters, and with `strip_space` the dummy space that was
/// put before the text goes.
[[nodiscard]] std::vector<DecoderStep> sentencepiece_decoder(bool strip_space);

class Decoder {
 public:
  /// Throws Error(unsupported), naming `label`, for a chain that cannot be streamed: after Fuse or ByteLevel, which
  /// join all tokens, only a Strip of leading characters may follow.
  Decoder(std::vector<DecoderStep> steps, std::string_view label);

  /// The text of a whole list of tokens.
  [[nodiscard]] std::string decode(std::vector<std::string> tokens) const;

  /// The bytes that `token` contributes, as the first of a stream or after other tokens.
  [[nodiscard]] std::string bytes_of(std::string_view token, bool first) const;

  /// Characters to remove from the beginning of the whole stream (a Strip after Fuse), and which.
  [[nodiscard]] const StripDecode& stream_strip() const { return stream_strip_; }

  /// The steps' names, for describe().
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::vector<DecoderStep> steps_;
  StripDecode stream_strip_;
};

}  // namespace candor::text
