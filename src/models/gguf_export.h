// The GGUF form of a model that has Hugging Face's names. Its keys are written (gguf_keys.h) and read back by the
// family that reads such files; the two descriptions, step beside step, say which name each tensor gets, which rows
// change places, what is transposed or stacked, and whether anything of the computation would be lost, which is
// refused. So the tables of names are those of the readers, and there is no second one. Not a goal: tokenizer keys,
// which are the tokenizer's own (text/tokenizer_to_gguf.h).
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

/// `source` is a Hugging Face folder or an artifact made from one. Throws Error(unsupported), naming the step, for a
/// computation that the keys of its GGUF architecture cannot say; otherwise as describe().
[[nodiscard]] GgufExport export_gguf(const ModelSource& source, QuantMix mix);

}  // namespace candor::models
