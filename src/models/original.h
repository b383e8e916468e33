// Artifacts that the original's converter wrote. Their manifest describes the model (`architecture`, `inference`), but
// its steps are for other kernels and leave out what the original's layer code adds. What it describes is said here as
// the configuration that a family reads, so that `candor convert` can write an artifact with complete steps. Not a
// goal: running the steps as they stand; they are another model's.
#pragma once

#include "base/json.h"
#include "formats/model_source.h"

namespace candor::models {

/// Whether the artifact has neither config.json nor GGUF metadata, only the original's description.
[[nodiscard]] bool is_original_artifact(const ModelSource& source);

/// config.json of an original artifact. Throws Error(unsupported), naming the field and its value, for a preset or a
/// setting that no family here has; Error(format) for a field that is missing.
[[nodiscard]] Json original_configuration(const ModelSource& source);

/// What its preset says of BOS, as tokenizer_config.json; nothing where tokenizer.json says it itself.
[[nodiscard]] std::optional<std::string> original_tokenizer_config(const ModelSource& source);

}  // namespace candor::models
