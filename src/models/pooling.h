// Embedding models: how the rows of a text become one vector. Hugging Face folders of sentence-transformers say it in
// modules.json and the folders it names; GGUF files in "<architecture>.pooling_type".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/gguf_reader.h"
#include "models/step_builder.h"

namespace candor::models {

/// A linear layer after pooling.
struct DenseLayer {
  std::string weight;  ///< a tensor [out, in]
  std::uint64_t in = 0, out = 0;
  bool bias = false;
};

struct Pooling {
  std::string kind = "mean";  ///< mean, last, first
  std::vector<DenseLayer> dense = {};
  bool normalize = true;  ///< to length 1
};

/// What modules.json says; nothing if the folder has none. Throws Error(unsupported) for a module or a kind of pooling
/// that is not implemented.
[[nodiscard]] std::optional<Pooling> read_huggingface_pooling(const ModelSource& source);
/// What pooling_type says; nothing if the key is absent or 0.
[[nodiscard]] std::optional<Pooling> read_gguf_pooling(GgufReader& reader);

/// Reads `src`, one row of `width` columns a token; writes "embedding", one a sequence. Throws Error(format) where a
/// dense layer's input is of another width than what is before it.
void add_pooling(StepBuilder& steps, const Pooling& pooling, const std::string& src, std::uint64_t width);

}  // namespace candor::models
