// Embedding models: how the rows of a text become one vector. Hugging Face folders of sentence-transformers say it in
// modules.json and the folders it names; GGUF files in "<architecture>.pooling_type".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/gguf_reader.h"
#include "models/step_builder.h"

namespace candor::models {

struct Pooling {
  std::string kind = "mean";  ///< mean, last, first
  bool normalize = true;      ///< to length 1
};

/// What modules.json says; nothing if the folder has none. Throws Error(unsupported) for a module or a kind of pooling
/// that is not implemented.
[[nodiscard]] std::optional<Pooling> read_huggingface_pooling(const ModelSource& source);
/// What pooling_type says; nothing if the key is absent or 0.
[[nodiscard]] std::optional<Pooling> read_gguf_pooling(GgufReader& reader);

/// Reads `src`, one row a token; writes "embedding", one a sequence.
void add_pooling(StepBuilder& steps, const Pooling& pooling, const std::string& src);

}  // namespace candor::models
