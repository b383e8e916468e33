// Mixtral (Jiang et al. 2024, arXiv:2401.04088): Mistral with a mixture of experts in every layer. GGUF files of it are
// of the architecture "llama", with expert_count.
#include "models/experts.h"
#include "models/families.h"
#include "models/gguf_config.h"

namespace candor::models {
namespace {

struct Mixtral {
  DecoderConfig config;
  ExpertConfig experts;
};

Mixtral read_huggingface_mixtral(const ModelSource& source, const DescribeOptions& options) {
  ConfigReader reader = huggingface_reader(source);
  Mixtral model;
  model.config.options = options;
  DecoderConfig& config = model.config;
  config.default_theta = 1e6;
  read_huggingface_dimensions(reader, config);
  config.norm_eps = reader.number("rms_norm_eps");
  config.activation = read_activation(reader, "hidden_act");
  config.attention = {
      {{}, reader.optional_positive("sliding_window").value_or(0), read_huggingface_rope(reader, config)}};
  config.tied = reader.boolean("tie_word_embeddings", false);
  model.experts.count = reader.positive("num_local_experts");
  model.experts.per_token = reader.positive("num_experts_per_tok");
  reader.harmless({"output_router_logits", "router_aux_loss_coef", "router_jitter_noise"});  // training's
  reader.finish();
  use_huggingface_names(source, config);
  const std::string moe = config.prefix + "layers.{L}.block_sparse_moe.";
  model.experts.router = moe + "gate.weight";
  model.experts.gate_proj = moe + "experts.{E}.w1.weight";
  model.experts.up_proj = moe + "experts.{E}.w3.weight";
  model.experts.down_proj = moe + "experts.{E}.w2.weight";
  check_experts(reader.label(), model.experts);
  return model;
}

Mixtral read_gguf_mixtral(const ModelSource& source, const DescribeOptions& options) {
  GgufReader reader(source, "llama");
  Mixtral model;
  model.config.options = options;
  DecoderConfig& config = model.config;
  read_gguf_dimensions(reader, config);
  config.norm_eps = reader.number("attention.layer_norm_rms_epsilon");
  config.activation = "silu";
  config.rope_style = RopeStyle::interleaved;  // converters permute q and k for it
  config.attention = {{{}, reader.count("attention.sliding_window"), read_gguf_rope(reader, config)}};
  model.experts.count = reader.positive("expert_count");
  model.experts.per_token = reader.positive("expert_used_count");
  reader.finish();
  use_gguf_expert_names(model.experts);
  check_experts(reader.label(), model.experts);
  return model;
}

}  // namespace

ModelDescription describe_mixtral(const ModelSource& source, const DescribeOptions& options) {
  Mixtral model = is_gguf(source) ? read_gguf_mixtral(source, options) : read_huggingface_mixtral(source, options);
  const DecoderConfig& config = model.config;
  model.experts.intermediate = config.intermediate;
  ModelDescription description = begin_decoder(config, "mixtral");
  description.experts = expert_facts(model.experts);
  StepBuilder steps(description);
  steps.section("preLayer").embed(config.names.embed, config.vocabulary, config.hidden);
  steps.section("layer");
  add_pre_norm_attention(steps, config);
  steps.rmsnorm("post_attn_norm", "state", "normed", config.names.post_attention_norm, config.norm());
  add_expert_feed_forward(steps, config, model.experts);
  steps.residual("ffn_residual", "ffn_out", "state", "state");
  add_decoder_tail(steps, config);
  finish_decoder(source, config, description);
  return description;
}

Family mixtral_family() {
  return {"mixtral", {"mixtral"}, {}, describe_mixtral};
}

}  // namespace candor::models
