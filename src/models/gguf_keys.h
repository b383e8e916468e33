// The metadata of a GGUF file that say what a model's steps say: <architecture>.block_count and the like, as
// llama.cpp's readers and the family files here want them. Not a goal: tensors' names (gguf_export.h), tokenizer keys;
// a check that the keys say everything, which reading them back is.
#pragma once

#include <string>
#include <vector>

#include "formats/convert.h"
#include "formats/gguf_writer.h"
#include "formats/model_source.h"
#include "models/description.h"

namespace candor::models {

struct GgufKeys {
  std::string architecture;
  std::vector<AddedTensor> added;      ///< factors of RoPE, which GGUF keeps as tensors
  std::vector<TensorInfo> looked_for;  ///< tensors whose presence or shape is what a reader of the keys goes by
};

/// Puts general.architecture and the architecture's keys into `pairs`. `source` is a Hugging Face folder or an artifact
/// made from one, `model` its description. Throws Error(unsupported) for RoPE scaling that GGUF has no keys for.
[[nodiscard]] GgufKeys put_gguf_keys(GgufPairs& pairs, const ModelSource& source, const ModelDescription& model);

}  // namespace candor::models
