#include "models/experts.h"

#include "base/error.h"

namespace candor::models {

constexpr std::uint64_t kMostExperts = 4096;

void check_experts(const std::string& label, const ExpertConfig& experts) {
  if (experts.per_token > experts.count)
    fail(ErrorCode::format, "{}: {} experts a token of {} there are", label, experts.per_token, experts.count);
  if (experts.count > kMostExperts)
    fail(ErrorCode::format, "{}: {} experts are above the limit of {}", label, experts.count, kMostExperts);
}

void use_gguf_expert_names(ExpertConfig& experts) {
  experts.router = "blk.{L}.ffn_gate_inp.weight";
  experts.gate_proj = "blk.{L}.ffn_gate_exps.weight";
  experts.up_proj = "blk.{L}.ffn_up_exps.weight";
  experts.down_proj = "blk.{L}.ffn_down_exps.weight";
}

void add_expert_feed_forward(StepBuilder& steps, const DecoderConfig& config, const ExpertConfig& experts) {
  steps.linear("router", "normed", "router_logits", experts.router, experts.count, config.hidden);
  steps.softmax("router_softmax", "router_logits", "router_probabilities");
  steps.top_k("choose_experts", "router_probabilities", "experts", experts.per_token);
  steps.routing_weights("expert_weights", "router_probabilities", "experts", "expert_weights", experts.normalize);
  const auto product = [&](const std::string& op, const std::string& src, const std::string& dst,
                           const std::string& weight, std::uint64_t out, std::uint64_t in, std::uint64_t groups) {
    steps.expert_linear(op, src, "experts", dst, weight,
                        {.experts = experts.count, .per_token = experts.per_token, .groups = groups}, out, in);
  };
  product("expert_gate_proj", "normed", "gate", experts.gate_proj, experts.intermediate, config.hidden, 1);
  product("expert_up_proj", "normed", "up", experts.up_proj, experts.intermediate, config.hidden, 1);
  steps.gated_activation("gate", "up", "act", config.activation);
  product("expert_down_proj", "act", "expert_out", experts.down_proj, config.hidden, experts.intermediate,
          experts.per_token);
  steps.combine_experts("combine_experts", "expert_out", "expert_weights", "ffn_out");
}

Json expert_facts(const ExpertConfig& experts) {
  return {{"numExperts", experts.count}, {"numExpertsPerToken", experts.per_token}, {"expertFormat", "mixtral"}};
}

}  // namespace candor::models
