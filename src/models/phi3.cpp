// Phi-3 and Phi-4 mini (Abdin et al. 2024, arXiv:2404.14219): Llama with q, k and v in one matrix, gate and up in
// another, a window, and LongRoPE in the models of 128k positions.
#include "base/error.h"
#include "models/config_reader.h"
#include "models/decoder.h"
#include "models/families.h"
#include "models/gguf_config.h"

namespace candor::models {
namespace {

struct PhiNames {
  std::string qkv, gate_up;
};

DecoderConfig read_huggingface_phi3(const ModelSource& source, const DescribeOptions& options) {
  ConfigReader reader = huggingface_reader(source);
  DecoderConfig config;
  config.options = options;
  config.partial_rotation = true;
  read_huggingface_dimensions(reader, config);
  config.norm_eps = reader.number("rms_norm_eps");
  config.activation = read_activation(reader, "hidden_act");
  config.attention = {
      {{}, reader.optional_positive("sliding_window").value_or(0), read_huggingface_rope(reader, config)}};
  config.tied = reader.boolean("tie_word_embeddings", false);
  for (const char* bias : {"attention_bias", "mlp_bias", "lm_head_bias"})
    reader.require(bias, false, "Phi-3 models have no biases");
  for (const char* key : {"full_attn_mod", "interpolate_factor"})
    reader.require(key, 1, "other values are not implemented");
  reader.finish();
  use_huggingface_names(source, config);
  return config;
}

DecoderConfig read_gguf_phi3(const ModelSource& source, const DescribeOptions& options) {
  GgufReader reader(source, "phi3");
  DecoderConfig config;
  config.options = options;
  read_gguf_dimensions(reader, config);
  config.norm_eps = reader.number("attention.layer_norm_rms_epsilon");
  config.activation = "silu";
  config.attention = {{{}, reader.count("attention.sliding_window"), read_gguf_rope(reader, config)}};
  reader.finish();
  return config;
}

ModelDescription describe_phi3(const ModelSource& source, const DescribeOptions& options) {
  const DecoderConfig config =
      is_gguf(source) ? read_gguf_phi3(source, options) : read_huggingface_phi3(source, options);
  const std::string layer = config.prefix + "layers.{L}.";
  const PhiNames names = is_gguf(source)
                             ? PhiNames{"blk.{L}.attn_qkv.weight", "blk.{L}.ffn_up.weight"}
                             : PhiNames{layer + "self_attn.qkv_proj.weight", layer + "mlp.gate_up_proj.weight"};
  const std::uint64_t q_width = config.heads * config.head_dim;
  const std::uint64_t kv_width = config.kv_heads * config.head_dim;
  const std::uint64_t ffn_width = config.intermediate;
  ModelDescription description = begin_decoder(config, "phi3");
  StepBuilder steps(description);
  steps.section("preLayer").embed(config.names.embed, config.vocabulary, config.hidden);
  steps.section("layer");
  steps.rmsnorm("input_norm", "state", "normed", config.names.input_norm, config.norm());
  steps.linear("qkv_proj", "normed", "qkv", names.qkv, q_width + 2 * kv_width, config.hidden);
  steps.slice("q_slice", "qkv", "q", 0, q_width);
  steps.slice("k_slice", "qkv", "k", q_width, kv_width);
  steps.slice("v_slice", "qkv", "v", q_width + kv_width, kv_width);
  add_attention(steps, config);
  steps.residual("attn_residual", "attn_out", "state", "state");
  steps.rmsnorm("post_attn_norm", "state", "normed", config.names.post_attention_norm, config.norm());
  steps.linear("gate_up_proj", "normed", "gate_up", names.gate_up, 2 * ffn_width, config.hidden);
  steps.slice("gate_slice", "gate_up", "gate", 0, ffn_width);
  steps.slice("up_slice", "gate_up", "up", ffn_width, ffn_width);
  steps.gated_activation("gate", "up", "act", config.activation);
  steps.linear("down_proj", "act", "ffn_out", config.names.down_proj, config.hidden, ffn_width);
  steps.residual("ffn_residual", "ffn_out", "state", "state");
  add_decoder_tail(steps, config);
  finish_decoder(source, config, description);
  return description;
}

}  // namespace

Family phi3_family() {
  return {"phi3", {"phi3"}, {"phi3"}, describe_phi3};
}

}  // namespace candor::models
