#pragma once

#include <cstdint>
#include <vector>

#include "formats/model_source.h"

namespace candor::models {

/// Ids that end a generation: eos_token_id of generation_config.json, else of config.json (a number or a list); for
/// GGUF tokenizer.ggml.eos_token_id and eot_token_id. Throws Error(format) for an id outside the vocabulary.
[[nodiscard]] std::vector<std::uint32_t> stop_tokens(const ModelSource& source, std::uint64_t vocabulary);

}  // namespace candor::models
