// A SentencePiece .model file (protocol buffer ModelProto) as it stands: pieces, scores, types and settings. Not a
// goal: what they mean, which its readers know (tokenizer_sentencepiece.cpp, tokenizer_to_gguf.cpp).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/sentencepiece.h"

namespace candor::text {

/// What is read of a ModelProto. Field numbers and defaults are those of sentencepiece_model.proto.
struct SentencePieceFile {
  std::vector<std::string_view> pieces;
  std::vector<float> scores;
  std::vector<PieceType> types;

  enum class Kind : std::uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 };
  Kind kind = Kind::unigram;
  bool white_space_is_suffix = false;
  bool byte_fallback = false;
  std::int64_t unk_id = 0;
  std::int64_t bos_id = 1;
  std::int64_t eos_id = 2;
  std::int64_t pad_id = -1;

  std::string_view charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_white_space = true;
  bool escape_white_space = true;
};

/// Views into `bytes`. Throws Error(format) or Error(unsupported), naming `label`.
[[nodiscard]] SentencePieceFile read_sentencepiece_file(std::string_view bytes, std::string_view label);

}  // namespace candor::text
