// A decoder's configuration from GGUF metadata. As with config.json, a key of the architecture's own that is not known
// is refused.
#pragma once

#include <string>

#include "formats/model_source.h"
#include "models/decoder.h"

namespace candor::models {

/// Reads "<architecture>.*": dimensions, norm eps, RoPE (with scaling keys and the tensor rope_freqs.weight) and checks
/// that no other key of that architecture is left.
[[nodiscard]] DecoderConfig read_gguf_dimensions(const ModelSource& source, const std::string& architecture);

}  // namespace candor::models
