// A tokenizer of a Hugging Face folder as GGUF's tokenizer.ggml.* keys, so that a GGUF file made from a folder
// tokenizes as the folder did: byte-level BPE whose pre-tokenizer GGUF knows by a name, BPE over SentencePiece's
// pieces, SentencePiece models, and WordPiece. What those keys cannot say is refused, and the result is read back and
// compared with the original on texts of many scripts. Not a goal: other vocabularies.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "formats/gguf_writer.h"
#include "formats/model_source.h"

namespace candor {

/// Puts the tokenizer of `source` into `pairs`: `rows` tokens, those the tokenizer lacks as unused ones; `stop_tokens`,
/// of which GGUF has room for two, come before the tokenizer's EOS. Without a tokenizer, that there is none. Throws
/// Error(unsupported) for a vocabulary of another kind, or more stop tokens.
void put_gguf_tokenizer(GgufPairs& pairs, const ModelSource& source, std::uint64_t rows,
                        std::span<const std::uint32_t> stop_tokens);

}  // namespace candor
