// The feed-forward of mixture-of-experts layers (Shazeer et al. 2017; Fedus et al. 2022): a router's softmax, the most
// probable experts of each token, their gated feed-forwards, and the weighted sum.
#pragma once

#include <cstdint>
#include <string>

#include "models/decoder.h"
#include "models/step_builder.h"

namespace candor::models {

struct ExpertConfig {
  std::uint64_t count = 0;      ///< experts of a layer
  std::uint64_t per_token = 0;  ///< chosen for a token
  std::uint64_t intermediate = 0;
  bool normalize = true;  ///< divide the chosen experts' probabilities by their sum
  std::string router;     ///< a tensor's pattern, [count, hidden]
  /// Patterns of the experts' matrices: with {E} a tensor an expert, without it one of [count, out, in].
  std::string gate_proj, up_proj, down_proj;
};

/// Throws Error(format) if more experts are chosen than there are.
void check_experts(const std::string& label, const ExpertConfig& experts);
/// The names of GGUF files.
void use_gguf_expert_names(ExpertConfig& experts);
/// Reads slot "normed", writes "ffn_out".
void add_expert_feed_forward(StepBuilder& steps, const DecoderConfig& config, const ExpertConfig& experts);
/// What artifacts state of experts.
[[nodiscard]] Json expert_facts(const ExpertConfig& experts);

}  // namespace candor::models
