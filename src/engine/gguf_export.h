// What a conversion to GGUF needs to know of a model that comes from Hugging Face: names, rows and keys of its family,
// and its tokenizer.
#pragma once

#include "formats/convert.h"
#include "formats/model_source.h"

namespace candor {

/// Fills in pairs, edit and added. Throws Error(unsupported) for what has no GGUF form here.
void describe_as_gguf(const ModelSource& source, ConvertOptions& options);

}  // namespace candor
