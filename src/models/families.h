// One function a family file; family.cpp lists them.
#pragma once

#include "models/description.h"

namespace candor::models {

[[nodiscard]] Family bert_family();
[[nodiscard]] Family gemma2_family();
[[nodiscard]] Family gemma3_family();
[[nodiscard]] Family gpt2_family();
[[nodiscard]] Family llama_family();
[[nodiscard]] Family lfm2_family();
[[nodiscard]] Family mistral_family();
[[nodiscard]] Family mixtral_family();
[[nodiscard]] Family olmo2_family();
[[nodiscard]] Family phi3_family();
[[nodiscard]] Family qwen2_family();
[[nodiscard]] Family qwen3_family();
[[nodiscard]] Family qwen3_moe_family();

/// For GGUF files of the architecture "llama" that have experts.
[[nodiscard]] ModelDescription describe_mixtral(const ModelSource& source, const DescribeOptions& options);

}  // namespace candor::models
