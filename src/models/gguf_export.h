// The GGUF form of a model that has Hugging Face's names: which name each tensor gets, which rows change places, and
// the keys of its architecture. The inverse of what the family files read. Not a goal: tokenizer keys, which are the
// tokenizer's own (text/tokenizer_to_gguf.h); families whose GGUF form is not written down here are refused.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/convert.h"
#include "formats/gguf_writer.h"
#include "formats/model_source.h"
#include "formats/quant_mix.h"

namespace candor::models {

struct GgufExport {
  GgufPairs pairs;  ///< general.* and <architecture>.*
  std::function<std::optional<TensorEdit>(const TensorInfo&)> edit;
  std::vector<AddedTensor> added;
  std::uint64_t vocabulary = 0;  ///< rows of the embedding: how many tokens the file must list
};

/// `source` is a Hugging Face folder or an artifact made from one. Throws Error(unsupported) for another family, or for
/// RoPE that GGUF has no keys for; otherwise as describe().
[[nodiscard]] GgufExport export_gguf(const ModelSource& source, QuantMix mix);

}  // namespace candor::models
