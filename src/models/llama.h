#pragma once

#include "models/description.h"

namespace candor::models {

/// Llama 1, 2, 3 and models of the same shape (LlamaForCausalLM; GGUF architecture "llama"): RMSNorm before attention
/// and feed-forward, RoPE, grouped-query attention, SwiGLU. Touvron et al. 2023, arXiv:2302.13971, 2307.09288.
[[nodiscard]] Family llama_family();

}  // namespace candor::models
