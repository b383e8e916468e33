// Streaming output: tokens in, whole characters out, and text held back while it may be the beginning of a stop string.
//
// Goals: what StreamDecoder has emitted never changes and never ends inside a UTF-8 character; push() costs the length
// of the token. Non-goals: deciding what to do at a stop (the caller ends generation).
// Rejected: decoding a window of tokens again at each step, which costs more and mistakes a real U+FFFD for a part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace candor {

class Tokenizer;

/// Turns a sequence of ids into text piece by piece. The pieces add up to Tokenizer::decode(ids, skip_special), except
/// after a malformed run of byte tokens, where decode() (as Hugging Face's) replaces the whole run.
class StreamDecoder {
 public:
  /// `tokenizer` must outlive this object.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true);

  /// The characters that `id` completes; empty while a character is held back.
  [[nodiscard]] std::string push(std::uint32_t id);
  /// What is still held back; an incomplete character becomes U+FFFD. The object is then as new.
  [[nodiscard]] std::string finish();

 private:
  void reset();
  [[nodiscard]] std::string strip(std::string text);

  const Tokenizer* tokenizer_;
  bool skip_special_;
  bool first_ = true;         // no token has contributed yet
  std::size_t to_strip_ = 0;  // leading characters the decoder still removes
  std::string held_;          // bytes not yet emitted
};

/// Finds stop strings in streamed text, also across the borders of pieces.
class StopMatcher {
 public:
  /// Throws Error(usage) for an empty stop string.
  explicit StopMatcher(std::vector<std::string> stops);

  /// The part of the text so far that can be shown: everything before a stop string, or before what may become one.
  [[nodiscard]] std::string push(std::string_view text);
  /// The text still held back, once no more follows; empty after a stop.
  [[nodiscard]] std::string finish();

  [[nodiscard]] bool stopped() const { return matched_.has_value(); }
  /// The stop string found: the one that was complete first, of several the longest. How the text was cut into pieces
  /// makes no difference.
  [[nodiscard]] std::optional<std::string_view> matched() const;

 private:
  /// Bytes at the end of the held text that a stop string may begin with.
  [[nodiscard]] std::size_t possible_beginning() const;

  std::vector<std::string> stops_;
  std::string held_;
  std::optional<std::size_t> matched_;
};

}  // namespace candor
