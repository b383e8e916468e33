// What the Qwen families share in their configurations.
#pragma once

#include "models/config_reader.h"
#include "models/decoder.h"

namespace candor::models {

/// Dimensions, norm, activation, RoPE and windows of a Qwen 2, 3 or MoE configuration. Windows: only with
/// use_sliding_window, in the layers that layer_types says, or else from max_window_layers on.
void read_huggingface_qwen(ConfigReader& reader, DecoderConfig& config);
/// The same of a GGUF file, which never states windows.
void read_gguf_qwen(GgufReader& reader, DecoderConfig& config);

}  // namespace candor::models
