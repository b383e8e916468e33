// What decoder families read of a GGUF file's metadata alike: dimensions, and RoPE with its scaling.
#pragma once

#include "models/decoder.h"
#include "models/gguf_reader.h"

namespace candor::models {

/// block_count, embedding_length, heads, key_length, context_length; the vocabulary from token_embd.weight; tied unless
/// the file has an output matrix; pooling. Does not read feed_forward_length of models whose layers have experts only.
void read_gguf_dimensions(GgufReader& reader, DecoderConfig& config);

/// RoPE with its scaling keys and, where the file has them, the tensors rope_freqs.weight (Llama 3.1) or
/// rope_factors_long.weight and rope_factors_short.weight (LongRoPE).
[[nodiscard]] RopeTable read_gguf_rope(GgufReader& reader, const DecoderConfig& config);

}  // namespace candor::models
