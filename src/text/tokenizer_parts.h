// What a tokenizer is made of. The loaders (tokenizer_json.cpp, tokenizer_gguf.cpp, tokenizer_sentencepiece.cpp) fill
// these in and tokenizer.cpp runs them; nothing else needs this header.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/model.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/vocabulary.h"
#include "text/word_cache.h"

namespace candor::text {

/// The tokens put around a text: [CLS] before and [SEP] after, or BOS before.
struct PostProcessor {
  std::vector<std::uint32_t> before;
  std::vector<std::uint32_t> after;
};

struct SpecialIds {
  std::optional<std::uint32_t> bos, eos, eot, unk, pad;
};

struct TokenizerParts {
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view token) const {
    const auto id = vocabulary->find(token);
    return id ? id : added_vocabulary.find(token);
  }
  [[nodiscard]] bool contains(std::uint32_t id) const {
    return vocabulary->contains(id) || added_vocabulary.contains(id);
  }
  [[nodiscard]] std::string_view token(std::uint32_t id) const {
    return vocabulary->contains(id) ? vocabulary->token(id) : added_vocabulary.token(id);
  }

  /// Registers `token`: its id, its flags, whether it is special. A token already registered takes the new flags.
  /// Throws Error(format) when the id or the content is already taken by another token.
  void add_token(const AddedToken& token);
  /// Builds raw_added and normalized_added from `added`; call once the normalizer and all added tokens are in place.
  void build_added_sets();

  std::string label;   ///< the file, for errors
  std::string source;  ///< "tokenizer.json", "gguf" or "sentencepiece"
  std::string digest;

  /// The model's tokens; the model keeps a reference to it.
  std::unique_ptr<Vocabulary> vocabulary = std::make_unique<Vocabulary>();
  /// Added tokens that the model does not know.
  Vocabulary added_vocabulary;
  std::vector<AddedToken> added;
  std::unordered_map<std::uint32_t, std::size_t> added_index;  ///< id → index in added
  std::unordered_set<std::uint32_t> special;

  AddedTokenSet raw_added;         ///< looked for before normalization
  AddedTokenSet normalized_added;  ///< and after
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<const Model> model;
  PostProcessor post_processor;
  std::optional<Decoder> decoder;
  SpecialIds ids;

  std::unique_ptr<WordCachePool> caches = std::make_unique<WordCachePool>();
};

}  // namespace candor::text
