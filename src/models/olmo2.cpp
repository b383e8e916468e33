// OLMo 2 (OLMo Team 2024, arXiv:2501.00656): Llama whose norms come after attention and feed-forward, before each sum,
// and whose queries and keys are normed over all heads at once.
#include "models/decoder.h"
#include "models/families.h"
#include "models/gguf_config.h"

namespace candor::models {
namespace {

DecoderConfig read_huggingface_olmo2(const ModelSource& source, const DescribeOptions& options) {
  ConfigReader reader = huggingface_reader(source);
  DecoderConfig config;
  config.options = options;
  read_huggingface_dimensions(reader, config);
  config.norm_eps = reader.number("rms_norm_eps");
  config.activation = read_activation(reader, "hidden_act");
  config.attention = {{{}, 0, read_huggingface_rope(reader, config)}};
  config.attention_bias = reader.boolean("attention_bias", false);
  config.output_bias = config.attention_bias;
  config.tied = reader.boolean("tie_word_embeddings", false);
  reader.finish();
  use_huggingface_names(source, config);
  return config;
}

DecoderConfig read_gguf_olmo2(const ModelSource& source, const DescribeOptions& options) {
  GgufReader reader(source, "olmo2");
  DecoderConfig config;
  config.options = options;
  read_gguf_dimensions(reader, config);
  config.norm_eps = reader.number("attention.layer_norm_rms_epsilon");
  config.activation = "silu";
  config.attention = {{{}, 0, read_gguf_rope(reader, config)}};
  reader.finish();
  config.names.post_attention_norm = "blk.{L}.post_attention_norm.weight";
  return config;
}

ModelDescription describe_olmo2(const ModelSource& source, const DescribeOptions& options) {
  const DecoderConfig config =
      is_gguf(source) ? read_gguf_olmo2(source, options) : read_huggingface_olmo2(source, options);
  const std::string after_feed_forward =
      is_gguf(source) ? "blk.{L}.post_ffw_norm.weight" : config.prefix + "layers.{L}.post_feedforward_layernorm.weight";
  ModelDescription description = begin_decoder(config, "olmo2");
  description.inference["attention"]["queryKeyNorm"] = true;
  StepBuilder steps(description);
  steps.section("preLayer").embed(config.names.embed, config.vocabulary, config.hidden);
  steps.section("layer");
  add_qkv_projections(steps, config, "state");
  steps.rmsnorm("q_norm", "q", "q", config.names.q_norm, {config.norm_eps, config.heads * config.head_dim, 0});
  steps.rmsnorm("k_norm", "k", "k", config.names.k_norm, {config.norm_eps, config.kv_heads * config.head_dim, 0});
  add_attention(steps, config);
  steps.rmsnorm("post_attn_norm", "attn_out", "attn_out", config.names.post_attention_norm, config.norm());
  steps.residual("attn_residual", "attn_out", "state", "state");
  add_gated_feed_forward(steps, config, "state");
  steps.rmsnorm("post_ffn_norm", "ffn_out", "ffn_out", after_feed_forward, config.norm());
  steps.residual("ffn_residual", "ffn_out", "state", "state");
  add_decoder_tail(steps, config);
  finish_decoder(source, config, description);
  return description;
}

}  // namespace

Family olmo2_family() {
  return {"olmo2", {"olmo2"}, {"olmo2"}, describe_olmo2};
}

}  // namespace candor::models
