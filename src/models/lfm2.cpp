// LFM2 (Liquid AI 2025, arXiv:2511.23404): most layers mix positions by a short gated convolution, y = C · conv(B · x),
// the others by attention with normed queries and keys; every layer ends in SwiGLU.
#include "base/error.h"
#include "models/decoder.h"
#include "models/families.h"
#include "models/gguf_config.h"

namespace candor::models {
namespace {

struct Lfm2 {
  DecoderConfig config;
  std::uint64_t taps = 0;
  std::vector<std::uint32_t> conv, attention;  ///< layers
  std::string conv_in, conv_taps, conv_out;
  std::vector<std::uint64_t> conv_shape;  ///< of conv_taps, as the format stores it
};

/// The feed-forward width: older configurations state one that is to be adjusted.
std::uint64_t feed_forward_width(ConfigReader& reader) {
  const auto older = reader.optional_positive("block_ff_dim");
  std::uint64_t width = older ? *older : reader.positive("intermediate_size");
  const bool adjust = reader.boolean("block_auto_adjust_ff_dim", true);
  const double multiplier = reader.optional_number("block_ffn_dim_multiplier").value_or(1);
  const std::uint64_t multiple = reader.optional_positive("block_multiple_of").value_or(256);
  if (!adjust) return width;
  width = static_cast<std::uint64_t>(multiplier * static_cast<double>(2 * width / 3));
  return (width + multiple - 1) / multiple * multiple;
}

std::vector<std::string> read_lfm2_layer_types(ConfigReader& reader, std::uint32_t layers) {
  const Json* list = reader.find("full_attn_idxs");
  if (auto types = read_layer_types(reader, layers, {"conv", "full_attention"})) return *types;
  if (!list || !list->is_array())
    fail(ErrorCode::format, "{}: neither layer_types nor full_attn_idxs says which layers attend", reader.label());
  std::vector<std::string> types(layers, "conv");
  for (const Json& layer : *list) {
    if (!layer.is_number_unsigned() || layer.get<std::uint64_t>() >= layers)
      fail(ErrorCode::format, "{}: full_attn_idxs names layer {}; the model has {}", reader.label(),
           printable(to_js_json(layer)), layers);
    types[layer.get<std::size_t>()] = "full_attention";
  }
  return types;
}

void read_huggingface_lfm2(const ModelSource& source, Lfm2& model) {
  ConfigReader reader = huggingface_reader(source);
  DecoderConfig& config = model.config;
  config.intermediate = feed_forward_width(reader);
  read_huggingface_dimensions(reader, config);
  // Older names, which repeat newer ones.
  for (const char* key : {"block_dim", "conv_dim", "conv_dim_out"})
    reader.require(key, config.hidden, "another width than hidden_size is not implemented");
  reader.require("num_heads", config.heads, "it contradicts num_attention_heads");
  config.default_theta = reader.optional_number("theta").value_or(1e6);
  reader.harmless({"intermediate_size"});  // block_ff_dim's newer name
  config.norm_eps = reader.number("norm_eps");
  config.activation = "silu";
  model.taps = reader.positive("conv_L_cache");
  reader.require("conv_bias", false, "biases of convolutions are not implemented");
  reader.require("block_use_swiglu", true, "feed-forwards without a gate are not implemented");
  reader.require("use_pos_enc", true, "attention without RoPE is not implemented");
  config.tied = reader.boolean("tie_embedding", reader.boolean("tie_word_embeddings", true));
  reader.require("tie_word_embeddings", config.tied, "tie_embedding contradicts it");
  // How weights were initialised, and an eps that norm_eps has replaced.
  reader.harmless({"block_mlp_init_scale", "block_norm_eps", "block_out_init_scale", "block_use_xavier_init",
                   "conv_use_xavier_init"});
  const auto types = read_lfm2_layer_types(reader, config.layers);
  model.conv = layers_of(types, "conv");
  model.attention = layers_of(types, "full_attention");
  config.attention = {{model.attention, 0, read_huggingface_rope(reader, config)}};
  reader.require("theta", config.attention.front().rope.theta, "rope_theta contradicts it");
  reader.finish();
  use_huggingface_names(source, config);
  const std::string layer = config.prefix + "layers.{L}.";
  config.names.input_norm = layer + "operator_norm.weight";
  config.names.o_proj = layer + "self_attn.out_proj.weight";
  config.names.q_norm = layer + "self_attn.q_layernorm.weight";
  config.names.k_norm = layer + "self_attn.k_layernorm.weight";
  config.names.post_attention_norm = layer + "ffn_norm.weight";
  config.names.gate_proj = layer + "feed_forward.w1.weight";
  config.names.up_proj = layer + "feed_forward.w3.weight";
  config.names.down_proj = layer + "feed_forward.w2.weight";
  config.names.final_norm = config.prefix + "embedding_norm.weight";
  model.conv_in = layer + "conv.in_proj.weight";
  model.conv_taps = layer + "conv.conv.weight";
  model.conv_out = layer + "conv.out_proj.weight";
  model.conv_shape = {config.hidden, 1, model.taps};
}

void read_gguf_lfm2(const ModelSource& source, Lfm2& model) {
  GgufReader reader(source, "lfm2");
  DecoderConfig& config = model.config;
  read_gguf_dimensions(reader, config);
  config.norm_eps = reader.number("attention.layer_norm_rms_epsilon");
  config.activation = "silu";
  model.taps = reader.positive("shortconv.l_cache");
  const auto heads = reader.by_layer("attention.head_count_kv", config.layers);  // 0: a convolution
  for (std::uint32_t layer = 0; layer < config.layers; ++layer)
    (heads[layer] == 0 ? model.conv : model.attention).push_back(layer);
  config.attention = {{model.attention, 0, read_gguf_rope(reader, config)}};
  reader.finish();
  const bool older = source.find("token_embd_norm.weight") != nullptr;
  if (older) config.names.final_norm = "token_embd_norm.weight";
  model.conv_in = "blk.{L}.shortconv.in_proj.weight";
  model.conv_taps = "blk.{L}.shortconv.conv.weight";
  model.conv_out = "blk.{L}.shortconv.out_proj.weight";
  model.conv_shape = {config.hidden, model.taps};
}

void add_short_convolution(StepBuilder& steps, const Lfm2& model) {
  const std::uint64_t hidden = model.config.hidden;
  steps.linear("conv_in_proj", "normed", "bcx", model.conv_in, 3 * hidden, hidden);
  steps.slice("conv_b", "bcx", "conv_b", 0, hidden);
  steps.slice("conv_c", "bcx", "conv_c", hidden, hidden);
  steps.slice("conv_x", "bcx", "conv_x", 2 * hidden, hidden);
  steps.multiply("conv_gate_in", "conv_x", "conv_b", "conv_x");
  steps.short_conv("short_conv", "conv_x", "conv_y", model.conv_taps, model.conv_shape, hidden, model.taps);
  steps.multiply("conv_gate_out", "conv_y", "conv_c", "conv_y");
  steps.linear("conv_out_proj", "conv_y", "attn_out", model.conv_out, hidden, hidden);
}

ModelDescription describe_lfm2(const ModelSource& source, const DescribeOptions& options) {
  Lfm2 model;
  model.config.options = options;
  if (is_gguf(source)) {
    read_gguf_lfm2(source, model);
  } else {
    read_huggingface_lfm2(source, model);
  }
  DecoderConfig& config = model.config;
  config.qk_norm = true;
  ModelDescription description = begin_decoder(config, "lfm2");
  StepBuilder steps(description);
  steps.section("preLayer").embed(config.names.embed, config.vocabulary, config.hidden);
  steps.section("layer");
  steps.rmsnorm("operator_norm", "state", "normed", config.names.input_norm, config.norm());
  if (!model.conv.empty()) add_short_convolution(steps.section("layer", model.conv), model);
  if (!model.attention.empty()) {
    add_qkv_projections(steps.section("layer", model.attention), config);
    add_attention(steps, config);
  }
  steps.section("layer").residual("operator_residual", "attn_out", "state", "state");
  steps.rmsnorm("ffn_norm", "state", "normed", config.names.post_attention_norm, config.norm());
  add_gated_feed_forward(steps, config);
  steps.residual("ffn_residual", "ffn_out", "state", "state");
  add_decoder_tail(steps, config);
  finish_decoder(source, config, description);
  return description;
}

}  // namespace

Family lfm2_family() {
  return {"lfm2", {"lfm2"}, {"lfm2"}, describe_lfm2};
}

}  // namespace candor::models
