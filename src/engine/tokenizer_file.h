// A tokenizer by path, with or without the model it belongs to.
#pragma once

#include <filesystem>
#include <memory>

#include "text/tokenizer.h"

namespace candor {

/// Of a model (any that ModelSource opens), of a GGUF file with a vocabulary alone, of a tokenizer.json (with the
/// tokenizer_config.json beside it, where there is one), or of a SentencePiece .model file. Throws Error(unsupported)
/// for a model without one.
[[nodiscard]] std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& path);

}  // namespace candor
