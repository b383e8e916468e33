// The model of a tokenizer: one word (a piece between pre-tokenizer splits) to ids. Text goes in as the pre-tokenizer
// left it; the models differ in how they cover a word with vocabulary entries.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace candor::text {

class WordCache;

class Model {
 public:
  virtual ~Model() = default;

  /// Appends the ids of `word`, which is not empty. `cache` remembers short words of this model between calls.
  virtual void tokenize(std::string_view word, WordCache& cache, std::vector<std::uint32_t>& out) const = 0;

  /// "BPE", "Unigram", "WordPiece" … as describe() shows it.
  [[nodiscard]] virtual std::string_view name() const = 0;
};

}  // namespace candor::text
