// Unigram language model (Kudo 2018): of all ways to cover a word with vocabulary pieces, the one whose scores add up
// highest, found by dynamic programming over byte positions. Characters without a piece cost 10 less than the worst
// piece; runs of them fuse into one unknown token, or fall back to bytes.
// Two arithmetics exist in the field and decide ties differently: double (Hugging Face) and float (SentencePiece).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"
#include "text/model.h"
#include "text/vocabulary.h"

namespace candor::text {

struct UnigramOptions {
  std::optional<std::uint32_t> unknown;
  bool byte_fallback = false;
};

struct UnigramPiece {
  double score = 0;
  bool matches = true;        ///< false for pieces that never cover text (control, unused, byte)
  bool user_defined = false;  ///< preferred to any other cover of its text (SentencePiece)
};

template <typename Real>
class Unigram final : public Model {
 public:
  /// `pieces` by id; missing ones at the end count as absent. Throws Error(format), naming `label`, for a score that is
  /// not a number.
  Unigram(const Vocabulary& vocabulary, const std::vector<UnigramPiece>& pieces, UnigramOptions options,
          std::string_view label);

  void tokenize(std::string_view word, WordCache& cache, std::vector<std::uint32_t>& out) const override;
  [[nodiscard]] std::string_view name() const override { return "Unigram"; }

 private:
  static constexpr std::uint32_t kUnknown = 0xffff'ffff;

  /// The best cover of the word's first bytes: its last piece, and where that begins.
  struct Node {
    Real score = 0;
    std::uint32_t begin = kUnset;
    std::uint32_t id = 0;
  };
  static constexpr std::uint32_t kUnset = 0xffff'ffff;

  void extend(std::string_view word, std::size_t at, std::vector<Node>& best) const;
  void emit_unknown(std::string_view text, std::vector<std::uint32_t>& out) const;

  const Vocabulary& vocabulary_;
  UnigramOptions options_;
  ByteTrie trie_;
  std::vector<Real> scores_;
  Real unknown_score_ = 0;
  std::array<std::optional<std::uint32_t>, 256> byte_ids_;
};

extern template class Unigram<double>;
extern template class Unigram<float>;

}  // namespace candor::text
