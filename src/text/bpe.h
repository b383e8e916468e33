// Byte-pair encoding from an ordered list of merges, as tokenizer.json's BPE model defines it and GPT-2-style GGUF
// vocabularies use it. In byte mode a word is raw bytes and the vocabulary's spelling in the byte alphabet is undone
// once, when it is loaded; otherwise a word is UTF-8 and its first symbols are characters. Dropout is a training
// device: it is accepted and has no effect.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/merge.h"
#include "text/model.h"
#include "text/vocabulary.h"

namespace candor::text {

struct BpeOptions {
  std::optional<std::uint32_t> unknown;  ///< id for characters without a token; without it they are left out
  std::string unknown_token;             ///< its name, for the error when it has no id
  bool fuse_unknown = false;             ///< a run of unknown characters gives one token
  bool byte_fallback = false;            ///< unknown characters become tokens <0x00> … <0xFF>
  bool ignore_merges = false;            ///< a word that is a token is that token, whatever the merges
  bool byte_mode = false;                ///< words are bytes, see above
  std::string prefix;                    ///< put before every character but the first (continuing_subword_prefix)
  std::string suffix;                    ///< put after the last character (end_of_word_suffix)
};

class Bpe final : public Model {
 public:
  using MergeList = std::vector<std::pair<std::string_view, std::string_view>>;

  /// `merges` in order of rank. Throws Error(format), naming `label`, for a merge of tokens the vocabulary lacks.
  /// `vocabulary` must outlive this object.
  Bpe(const Vocabulary& vocabulary, const MergeList& merges, BpeOptions options, std::string_view label);

  void tokenize(std::string_view word, WordCache& cache, std::vector<std::uint32_t>& out) const override;
  [[nodiscard]] std::string_view name() const override { return "BPE"; }

 private:
  struct PairMerge {
    std::uint32_t left = 0;
    std::uint32_t right = 0;
    Merge merge;  // rank kNone: a free slot
  };

  void add_merge(std::uint32_t left, std::uint32_t right, Merge merge);
  [[nodiscard]] Merge find_merge(std::uint32_t left, std::uint32_t right) const;
  [[nodiscard]] std::size_t slot(std::uint32_t left, std::uint32_t right) const;
  [[nodiscard]] std::optional<std::uint32_t> whole_word(std::string_view word) const;
  void split_bytes(std::string_view word, std::vector<Symbol>& symbols) const;
  void split_characters(std::string_view word, std::vector<Symbol>& symbols) const;
  bool fall_back_to_bytes(std::string_view text, std::uint32_t begin, std::vector<Symbol>& symbols) const;
  [[nodiscard]] std::uint32_t unknown_id() const;

  const Vocabulary& vocabulary_;
  BpeOptions options_;
  std::vector<PairMerge> merges_;                           // open addressing, a power of two, at most half full
  std::array<std::optional<std::uint32_t>, 256> byte_ids_;  // byte mode: first symbols; else the tokens <0xNN>
  Vocabulary bytes_;                                        // byte mode with ignore_merges: tokens as raw bytes
};

}  // namespace candor::text
