// What every kind of vocabulary has among GGUF's tokenizer.ggml.* keys, and the check that what was written is read as
// the original. Private to src/text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/gguf_writer.h"
#include "text/sentencepiece.h"
#include "text/tokenizer.h"

namespace candor::text {

/// Tokens by id, with their types; scores where the vocabulary has them.
struct GgufTokens {
  std::vector<std::string> tokens;
  std::vector<PieceType> types;
  std::vector<float> scores;
};

class TokenizerKeys {
 public:
  /// `original` must outlive this.
  TokenizerKeys(GgufPairs& pairs, std::string label, const Tokenizer& original)
      : pairs_(pairs), label_(std::move(label)), original_(original) {}

  [[nodiscard]] GgufPairs& pairs() { return pairs_; }
  [[nodiscard]] const std::string& label() const { return label_; }
  [[nodiscard]] const Tokenizer& original() const { return original_; }

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::unsupported, "{}: {}, which GGUF's keys cannot say; convert to an artifact", label_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  /// `rows` tokens: those that the vocabulary lacks become unused ones. Throws Error(format) if it has more.
  void put_tokens(GgufTokens tokens, std::uint64_t rows);
  /// Whether BOS and EOS are put around a text; anything else that is put there is refused.
  void put_ends();
  /// BOS, padding and unknown, and up to two tokens that end an answer.
  void put_ids(std::span<const std::uint32_t> stop_tokens);
  void put_id(std::string_view name, std::optional<std::uint32_t> id);
  /// Reads the keys back and compares ids on texts of many scripts. Texts that the original refuses are passed over.
  void check() const;

 private:
  GgufPairs& pairs_;
  std::string label_;
  const Tokenizer& original_;
};

}  // namespace candor::text
