// WordPiece (BERT): a word is covered from the left by the longest entries, continuations spelled with a prefix ("##").
// A word that cannot be covered, or is too long, is one unknown token. WordLevel knows whole words only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/byte_trie.h"
#include "text/model.h"
#include "text/vocabulary.h"

namespace candor::text {

/// The token for what a vocabulary cannot express.
struct UnknownToken {
  std::string name;
  std::optional<std::uint32_t> id;

  /// The id. Throws Error(text) if the vocabulary has none.
  [[nodiscard]] std::uint32_t require() const;
};

class WordPiece final : public Model {
 public:
  WordPiece(const Vocabulary& vocabulary, std::string prefix, UnknownToken unknown, std::size_t max_word_characters);

  void tokenize(std::string_view word, WordCache& cache, std::vector<std::uint32_t>& out) const override;
  [[nodiscard]] std::string_view name() const override { return "WordPiece"; }

 private:
  [[nodiscard]] bool cover(std::string_view word, std::vector<std::uint32_t>& out) const;

  ByteTrie beginnings_;
  ByteTrie continuations_;  // without the prefix
  UnknownToken unknown_;
  std::size_t max_word_characters_;
};

class WordLevel final : public Model {
 public:
  WordLevel(const Vocabulary& vocabulary, UnknownToken unknown);

  void tokenize(std::string_view word, WordCache& cache, std::vector<std::uint32_t>& out) const override;
  [[nodiscard]] std::string_view name() const override { return "WordLevel"; }

 private:
  const Vocabulary& vocabulary_;
  UnknownToken unknown_;
};

}  // namespace candor::text
