// What SentencePiece does beside its unigram model: its normalization, and byte-pair encoding by score. Used for .model
// files and for GGUF vocabularies made from them. Source: Kudo and Richardson 2018, and sentencepiece's normalizer.cc
// and bpe_model.cc for what the paper leaves open.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"
#include "text/charsmap.h"
#include "text/merge.h"
#include "text/model.h"
#include "text/vocabulary.h"

namespace candor::text {

/// Piece types as model files and tokenizer.ggml.token_type number them.
enum class PieceType : std::uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  ///< ▁, which stands for a space in pieces

/// A PieceType from a file. Throws Error(format), naming `label` and `id`.
[[nodiscard]] PieceType piece_type(std::int64_t value, std::size_t id, std::string_view label);

/// Space becomes ▁, after the character map and the handling of white space that the model was trained with.
struct SentencePieceRules {
  std::optional<Charsmap> map;
  bool add_dummy_prefix = true;           ///< a space before the text
  bool remove_extra_white_space = false;  ///< none at the ends, single spaces between words
  bool white_space_is_suffix = false;     ///< the dummy space goes to the end
  ByteTrie user_defined;                  ///< pieces that are copied as they are

  [[nodiscard]] std::string apply(std::string_view text) const;
};

/// BPE whose merges are implied: two neighbours merge if their text is a piece, the highest score first.
class ScoredBpe final : public Model {
 public:
  /// `scores` and `types` by id. Throws Error(format), naming `label`, for a score that is not a number.
  ScoredBpe(const Vocabulary& vocabulary, const std::vector<float>& scores, const std::vector<PieceType>& types,
            bool byte_fallback, std::string_view label);

  void tokenize(std::string_view word, WordCache& cache, std::vector<std::uint32_t>& out) const override;
  [[nodiscard]] std::string_view name() const override { return "BPE"; }

 private:
  static constexpr std::uint32_t kNoPiece = 0xffff'ffff;

  [[nodiscard]] Merge find_merge(std::string_view word, const Symbol& left, const Symbol& right) const;
  [[nodiscard]] std::vector<Symbol> first_symbols(std::string_view word) const;
  void emit(std::string_view text, std::uint32_t id, std::vector<std::uint32_t>& out) const;

  const Vocabulary& vocabulary_;
  std::vector<std::uint32_t> ranks_;  // by id; Merge::kNone for pieces that merges never make
  std::vector<bool> unused_;          // pieces that are made by merges and taken apart again
  ByteTrie user_defined_;
  std::array<std::optional<std::uint32_t>, 256> byte_ids_;
  std::optional<std::uint32_t> unknown_;
};

}  // namespace candor::text
