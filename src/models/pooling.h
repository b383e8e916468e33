// Embedding models: how the rows of a text become one vector. Hugging Face folders of sentence-transformers say it in
// modules.json and the folders it names; GGUF files in "<architecture>.pooling_type".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

/// What an option says: mean, first or last, and ",normalize" for length 1. Throws Error(usage) for anything else.
[[nodiscard]] Pooling parse_pooling(std::string_view text);
/// What the files state; where they state nothing, what `asked` says, if anything. Throws Error(usage) where both do.
[[nodiscard]] std::optional<Pooling> choose_pooling(std::optional<Pooling> stated, std::string_view asked,
                                                    std::string_view label);
/// ModelDescription::undecided of an encoder that nobody says how to pool.
inline constexpr std::string_view kPoolingUndecided =
    "neither modules.json nor pooling_type says how the rows of a text become one vector; say it with --pooling mean, "
    "first or last, and \",normalize\" after it for vectors of length 1";

/// Reads `src`, one row of `width` columns a token; writes "embedding", one a sequence. Throws Error(format) where a
/// dense layer's input is of another width than what is before it.
void add_pooling(StepBuilder& steps, const Pooling& pooling, const std::string& src, std::uint64_t width);

}  // namespace candor::models
