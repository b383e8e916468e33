// The small files that travel with a model's tensors, taken from a source of any format. Private to src/formats.
#pragma once

#include <vector>

#include "formats/artifact_writer.h"
#include "formats/gguf_writer.h"
#include "formats/model_source.h"
#include "formats/quant_mix.h"

namespace candor {

/// What an artifact keeps: the tokenizer (tokenizer.json, tokenizer_config.json, tokenizer.model, or for GGUF all its
/// metadata as tokenizer.gguf), the chat template where no other file holds it, config.json and generation_config.json.
[[nodiscard]] std::vector<SideFile> artifact_files(const ModelSource& source);

/// What a Hugging Face folder needs besides weights; config.json's dtype follows the mix.
[[nodiscard]] std::vector<SideFile> huggingface_files(const ModelSource& source, QuantMix mix);

/// A source's GGUF metadata as pairs to write: without split.* and alignment, file type by the mix.
[[nodiscard]] GgufPairs gguf_pairs(const GgufMetadata& metadata, QuantMix mix);

}  // namespace candor
