// GPT-2 (Radford et al. 2019): LayerNorm with biases, learned positions, biases on every projection, q, k and v in one
// matrix, tanh GELU without a gate, a tied head. Hugging Face stores matrices as [in, out]; GGUF files turn them round.
#include "models/config_reader.h"
#include "models/decoder.h"
#include "models/families.h"
#include "models/gguf_config.h"

namespace candor::models {
namespace {

struct Gpt2Names {
  std::string embed, positions, first_norm, qkv, attention_out, second_norm, up, down, final_norm, head;
};

/// Checkpoints were saved from the bare model and from the one with a head.
Gpt2Names huggingface_gpt2_names(const ModelSource& source) {
  const std::string prefix = source.find("wte.weight") ? "" : "transformer.";
  const std::string layer = prefix + "h.{L}.";
  return {prefix + "wte.weight",        prefix + "wpe.weight", layer + "ln_1.weight",     layer + "attn.c_attn.weight",
          layer + "attn.c_proj.weight", layer + "ln_2.weight", layer + "mlp.c_fc.weight", layer + "mlp.c_proj.weight",
          prefix + "ln_f.weight",       "lm_head.weight"};
}

Gpt2Names gguf_gpt2_names() {
  const std::string layer = "blk.{L}.";
  return {"token_embd.weight",          "position_embd.weight",
          layer + "attn_norm.weight",   layer + "attn_qkv.weight",
          layer + "attn_output.weight", layer + "ffn_norm.weight",
          layer + "ffn_up.weight",      layer + "ffn_down.weight",
          "output_norm.weight",         "output.weight"};
}

DecoderConfig read_huggingface_gpt2(const ModelSource& source, const DescribeOptions& options) {
  ConfigReader reader = huggingface_reader(source);
  DecoderConfig config;
  config.options = options;
  config.layers = read_layer_count(reader, "n_layer");
  config.hidden = reader.positive("n_embd");
  config.heads = reader.positive("n_head");
  config.intermediate = reader.optional_positive("n_inner").value_or(4 * config.hidden);
  config.vocabulary = reader.positive("vocab_size");
  config.max_positions = reader.positive("n_positions");
  config.norm_eps = reader.number("layer_norm_epsilon");
  config.activation = read_activation(reader, "activation_function");
  config.tied = reader.boolean("tie_word_embeddings", true);
  reader.require("scale_attn_weights", true, "unscaled scores are not implemented");
  reader.require("scale_attn_by_inverse_layer_idx", false, "a scale for each layer is not implemented");
  reader.require("add_cross_attention", false, "there is no encoder to attend to");
  reader.harmless({"n_ctx", "attn_pdrop", "reorder_and_upcast_attn", "task_specific_params", "summary_activation",
                   "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj"});
  reader.finish();
  check_head_split(reader.label(), config);
  config.pooling = choose_pooling(read_huggingface_pooling(source), options.pooling, source.path().string());
  return config;
}

DecoderConfig read_gguf_gpt2(const ModelSource& source, const DescribeOptions& options) {
  GgufReader reader(source, "gpt2");
  DecoderConfig config;
  config.options = options;
  read_gguf_dimensions(reader, config);
  config.norm_eps = reader.number("attention.layer_norm_epsilon");
  config.activation = "gelu_tanh";
  reader.finish();
  return config;
}

ModelDescription describe_gpt2(const ModelSource& source, const DescribeOptions& options) {
  const bool gguf = is_gguf(source);
  DecoderConfig config = gguf ? read_gguf_gpt2(source, options) : read_huggingface_gpt2(source, options);
  config.attention = {{}};  // no RoPE, no window
  const Gpt2Names names = gguf ? gguf_gpt2_names() : huggingface_gpt2_names(source);
  config.names.embed = names.embed;
  config.names.lm_head = names.head;
  ModelDescription description = begin_decoder(config, "gpt2");
  StepBuilder steps(description);
  const auto project = [&](const std::string& op, const std::string& src, const std::string& dst,
                           const std::string& weight, std::uint64_t out, std::uint64_t in) {
    if (gguf) {
      steps.linear(op, src, dst, weight, out, in);
    } else {
      steps.linear_transposed(op, src, dst, weight, out, in);
    }
    steps.bias(op + "_bias", dst, bias_name(weight), out);
  };
  const auto norm = [&](const std::string& op, const std::string& weight) {
    steps.layernorm(op, "state", "normed", weight, config.hidden, config.norm_eps);
  };
  const std::uint64_t hidden = config.hidden;

  steps.section("preLayer").embed(names.embed, config.vocabulary, hidden);
  steps.positions("positions", names.positions, config.max_positions, hidden);
  steps.residual("add_positions", "positions", "state", "state");
  steps.section("layer");
  norm("input_norm", names.first_norm);
  project("qkv_proj", "normed", "qkv", names.qkv, 3 * hidden, hidden);
  steps.slice("q_slice", "qkv", "q", 0, hidden);
  steps.slice("k_slice", "qkv", "k", hidden, hidden);
  steps.slice("v_slice", "qkv", "v", 2 * hidden, hidden);
  steps.attention(
      "q", "k", "v", "attn",
      {.heads = config.heads, .kv_heads = config.heads, .head_dim = config.head_dim, .scale = config.score_factor()});
  project("o_proj", "attn", "attn_out", names.attention_out, hidden, hidden);
  steps.residual("attn_residual", "attn_out", "state", "state");
  norm("post_attn_norm", names.second_norm);
  project("up_proj", "normed", "up", names.up, config.intermediate, hidden);
  steps.activation("up", "act", config.activation);
  project("down_proj", "act", "ffn_out", names.down, hidden, config.intermediate);
  steps.residual("ffn_residual", "ffn_out", "state", "state");
  add_row_selection(steps.section("postLayer"), config);
  norm("final_norm", names.final_norm);
  add_decoder_head(steps, config);
  finish_decoder(source, config, description);
  // Masks that old checkpoints saved beside the weights.
  for (const TensorInfo& tensor : source.tensors())
    if (tensor.name.ends_with(".attn.bias") || tensor.name.ends_with(".attn.masked_bias"))
      description.ignored_tensors.push_back(tensor.name);
  return description;
}

}  // namespace

Family gpt2_family() {
  return {"gpt2", {"gpt2"}, {"gpt2"}, describe_gpt2};
}

}  // namespace candor::models
