// Tokenizers: text to token ids and back, with the ids the model was trained on.
//
// Goals: the same ids as Hugging Face's tokenizers for tokenizer.json, as SentencePiece for .model files, and as the
// vocabulary's own definition for GGUF; linear-logarithmic time on any input; one immutable object that any number of
// threads may use. A component, flag or pattern name this code does not know is an error that names it.
// Non-goals: training vocabularies, offsets, pairs of sequences, truncation and padding (the caller's decision).
// Rejected: one class per model type with virtual encode. The stages (added tokens, normalizer, pre-tokenizer, model,
// post-processor, decoder) vary independently, so a tokenizer is a value made of six stages. See text/detokenizer.h for
// streaming output and stop strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace candor {

class GgufMetadata;
namespace text {
struct TokenizerParts;
}

struct EncodeOptions {
  bool add_special = true;    ///< let the post-processor add its tokens (BOS, [CLS] … [SEP])
  bool parse_special = true;  ///< recognise special tokens spelled out in the text; off for text from untrusted users
};

class Tokenizer {
 public:
  explicit Tokenizer(text::TokenizerParts parts);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// The ids of `text`. Throws Error(text): not UTF-8, longer than limits::prompt_bytes, a pattern that exceeds its
  /// match limit, or a character the vocabulary cannot express and has no unknown token for.
  [[nodiscard]] std::vector<std::uint32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  /// The text of `ids`, always UTF-8: bytes that form no character become U+FFFD. `skip_special` leaves special tokens
  /// out. Ids without a token (a model's padding rows) contribute nothing.
  [[nodiscard]] std::string decode(std::span<const std::uint32_t> ids, bool skip_special = true) const;

  /// The raw bytes that `id` contributes after other tokens; possibly a part of a UTF-8 character.
  [[nodiscard]] std::string token_bytes(std::uint32_t id) const;

  /// The id of a token as the vocabulary spells it ("Ġthe", "▁the", "<|im_end|>").
  [[nodiscard]] std::optional<std::uint32_t> id_of(std::string_view token) const;
  /// The token as the vocabulary spells it; empty where `id` has none.
  [[nodiscard]] std::string_view token(std::uint32_t id) const;
  /// One more than the largest id.
  [[nodiscard]] std::uint32_t vocabulary_size() const;
  /// True for tokens that stand for structure rather than text (BOS, <|im_end|>).
  [[nodiscard]] bool is_special(std::uint32_t id) const;

  [[nodiscard]] std::optional<std::uint32_t> bos_id() const;
  [[nodiscard]] std::optional<std::uint32_t> eos_id() const;
  /// End of turn, where a GGUF file names one beside EOS.
  [[nodiscard]] std::optional<std::uint32_t> eot_id() const;
  [[nodiscard]] std::optional<std::uint32_t> unk_id() const;
  [[nodiscard]] std::optional<std::uint32_t> pad_id() const;
  /// True if encode() with add_special puts BOS first. Text that already starts with it would get two.
  [[nodiscard]] bool adds_bos() const;

  /// What the tokenizer is made of, for `candor inspect`: stages, sizes, ids, flags, digest.
  [[nodiscard]] nlohmann::ordered_json describe() const;
  /// "sha256:…" over the definition this tokenizer was read from.
  [[nodiscard]] const std::string& digest() const;

 private:
  friend class StreamDecoder;
  std::unique_ptr<const text::TokenizerParts> parts_;
};

/// Reads tokenizer.json (Hugging Face tokenizers 0.23 and earlier forms). `tokenizer_config_json`, or "", supplies the
/// names of BOS, EOS, PAD and UNK, and add_bos_token / add_eos_token, which override the post-processor.
/// `label` names the file in errors. Throws Error(format) or Error(unsupported).
[[nodiscard]] std::unique_ptr<Tokenizer> load_tokenizer_json(std::string_view tokenizer_json,
                                                             std::string_view tokenizer_config_json,
                                                             std::string_view label);

/// Reads the tokenizer.ggml.* keys of a GGUF file: models llama, gpt2, bert and t5.
[[nodiscard]] std::unique_ptr<Tokenizer> load_tokenizer_gguf(const GgufMetadata& metadata, std::string_view label);

/// Reads a SentencePiece .model file (protocol buffer ModelProto): BPE and unigram. The file does not say what
/// add_special adds: BOS before the text where the model has one, else EOS after it. Throws Error(format) or
/// Error(unsupported).
[[nodiscard]] std::unique_ptr<Tokenizer> load_sentencepiece_model(std::span<const std::byte> model,
                                                                  std::string_view label);

}  // namespace candor
