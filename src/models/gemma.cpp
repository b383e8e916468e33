// Gemma 2 (Gemma Team 2024, arXiv:2408.00118) and Gemma 3 text models (2025, arXiv:2503.19786): embeddings scaled by
// √hidden, four RMSNorms a layer whose weights are stored less one (GGUF files store them whole), GeGLU, a query scale
// of its own. Gemma 2 caps scores and logits and alternates windows; Gemma 3 norms queries and keys and has five layers
// with a window to one without, each sort with its own RoPE base.
#include <cmath>

#include "base/error.h"
#include "models/config_reader.h"
#include "models/decoder.h"
#include "models/families.h"
#include "models/gguf_config.h"

namespace candor::models {
namespace {

struct GemmaNames {
  std::string after_attention, before_feed_forward, after_feed_forward;
};

GemmaNames gemma_names(const ModelSource& source, const DecoderConfig& config) {
  if (is_gguf(source))
    return {"blk.{L}.post_attention_norm.weight", "blk.{L}.ffn_norm.weight", "blk.{L}.post_ffw_norm.weight"};
  const std::string layer = config.prefix + "layers.{L}.";
  return {layer + "post_attention_layernorm.weight", layer + "pre_feedforward_layernorm.weight",
          layer + "post_feedforward_layernorm.weight"};
}

/// Every `period`-th layer is full, the others have a window.
std::vector<std::string> periodic_types(std::uint32_t layers, std::uint64_t period) {
  std::vector<std::string> types;
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    types.emplace_back((layer + 1) % period == 0 ? "full_attention" : "sliding_attention");
  return types;
}

void read_huggingface_gemma(const ModelSource& source, ConfigReader& reader, DecoderConfig& config) {
  read_huggingface_dimensions(reader, config);
  config.norm_eps = reader.number("rms_norm_eps");
  config.norm_offset = 1;
  // hidden_activation decides; hidden_act is what older configurations also had.
  config.activation = read_activation(reader, reader.find("hidden_activation") ? "hidden_activation" : "hidden_act");
  reader.harmless({"hidden_act", "cache_implementation", "use_cache"});
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden));
  const double query_scalar = reader.number("query_pre_attn_scalar");
  if (query_scalar == 0) fail(ErrorCode::format, "{}: query_pre_attn_scalar is 0; it must be above", reader.label());
  config.query_scale = 1 / std::sqrt(query_scalar);
  config.attention_softcap = reader.optional_number("attn_logit_softcapping").value_or(0);
  config.logit_softcap = reader.optional_number("final_logit_softcapping").value_or(0);
  config.attention_bias = reader.boolean("attention_bias", false);
  config.output_bias = config.attention_bias;
  config.tied = reader.boolean("tie_word_embeddings", true);
  use_huggingface_names(source, config);
}

void read_gguf_gemma(GgufReader& reader, DecoderConfig& config, std::uint32_t layers_of_27b) {
  read_gguf_dimensions(reader, config);
  config.norm_eps = reader.number("attention.layer_norm_rms_epsilon");
  config.activation = "gelu_tanh";
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden));
  config.attention_softcap = reader.optional_number("attn_logit_softcapping").value_or(0);
  config.logit_softcap = reader.optional_number("final_logit_softcapping").value_or(0);
  // The format has no key for the query scale. By convention it is head_dim, but in the models of 27 billion
  // parameters, which are known by their number of layers, hidden / heads.
  const std::uint64_t scalar = config.layers == layers_of_27b ? config.hidden / config.heads : config.head_dim;
  config.query_scale = reader.optional_number("attention.scale").value_or(1 / std::sqrt(static_cast<double>(scalar)));
}

ModelDescription gemma_description(const ModelSource& source, const DecoderConfig& config, const std::string& family) {
  ModelDescription description = begin_decoder(config, family);
  const GemmaNames names = gemma_names(source, config);
  const NormShape norm = config.norm();
  StepBuilder steps(description);
  steps.section("preLayer").embed(config.names.embed, config.vocabulary, config.hidden, config.embedding_scale);
  steps.section("layer");
  steps.rmsnorm("input_norm", "state", "normed", config.names.input_norm, norm);
  add_qkv_projections(steps, config);
  add_attention(steps, config);
  steps.rmsnorm("post_attn_norm", "attn_out", "attn_out", names.after_attention, norm);
  steps.residual("attn_residual", "attn_out", "state", "state");
  steps.rmsnorm("pre_ffn_norm", "state", "normed", names.before_feed_forward, norm);
  add_gated_feed_forward(steps, config);
  steps.rmsnorm("post_ffn_norm", "ffn_out", "ffn_out", names.after_feed_forward, norm);
  steps.residual("ffn_residual", "ffn_out", "state", "state");
  add_decoder_tail(steps, config);
  finish_decoder(source, config, description);
  return description;
}

ModelDescription describe_gemma2(const ModelSource& source, const DescribeOptions& options) {
  DecoderConfig config;
  config.options = options;
  if (is_gguf(source)) {
    constexpr std::uint32_t kLayersOf27B = 46;
    GgufReader reader(source, "gemma2");
    read_gguf_gemma(reader, config, kLayersOf27B);
    const RopeTable rope = read_gguf_rope(reader, config);
    config.attention =
        attention_kinds(periodic_types(config.layers, 2), reader.count("attention.sliding_window"), rope, rope);
    reader.finish();
  } else {
    ConfigReader reader = huggingface_reader(source);
    reader.must_state(
        {"attn_logit_softcapping", "final_logit_softcapping"});  // without the keys they would be 50 and 30
    reader.require("use_bidirectional_attention", false, "Gemma 2 sees earlier tokens only");
    read_huggingface_gemma(source, reader, config);
    const RopeTable rope = read_huggingface_rope(reader, config);
    const auto types = read_layer_types(reader, config.layers, {"full_attention", "sliding_attention"});
    config.attention = attention_kinds(types ? *types : periodic_types(config.layers, 2),
                                       reader.positive("sliding_window"), rope, rope);
    reader.harmless({"sliding_window_size"});
    reader.finish();
  }
  return gemma_description(source, config, "gemma2");
}

/// Gemma 3's RoPE: scaling applies to the full layers only.
struct GemmaRope {
  RopeTable sliding, full;
};

GemmaRope read_huggingface_gemma3_rope(ConfigReader& reader, const DecoderConfig& config) {
  auto sliding = read_huggingface_rope(reader, config, "sliding_attention");
  auto full = read_huggingface_rope(reader, config, "full_attention");
  if (sliding && full) return {*std::move(sliding), *std::move(full)};
  RopeSettings local;
  local.theta = reader.number("rope_local_base_freq");
  local.rotary_dim = config.head_dim;
  local.max_positions = config.max_positions;
  return {rope_table(local, reader.label()), read_huggingface_rope(reader, config)};
}

/// Half a window to either side, where attention goes both ways (EmbeddingGemma).
std::uint64_t gemma3_window(const DecoderConfig& config, std::uint64_t window) {
  return config.causal || window == 0 ? window : window / 2 + 1;
}

/// Which layers have a window: every but the `period`-th, unless the file says otherwise.
std::vector<std::string> read_gguf_layer_types(GgufReader& reader, std::uint32_t layers, std::uint64_t period) {
  constexpr std::string_view kKey = "attention.sliding_window_pattern";
  if (!reader.is_array(kKey)) return periodic_types(layers, reader.optional_positive(kKey).value_or(period));
  std::vector<std::string> types;
  for (const bool windowed : reader.booleans(kKey, layers))
    types.emplace_back(windowed ? "sliding_attention" : "full_attention");
  return types;
}

/// "gemma-embedding" is the same model with attention in both directions, and pooling.
void read_gguf_gemma3(const ModelSource& source, DecoderConfig& config, std::uint64_t period) {
  constexpr std::uint32_t kLayersOf27B = 62;
  const std::string architecture(*source.gguf()->string("general.architecture"));
  GgufReader reader(source, architecture);
  config.causal = reader.optional_boolean("attention.causal").value_or(architecture == "gemma3");
  read_gguf_gemma(reader, config, kLayersOf27B);
  RopeSettings local;
  local.theta = reader.optional_number("rope.freq_base_swa").value_or(10000);
  local.rotary_dim = config.head_dim;
  local.max_positions = config.max_positions;
  config.attention = attention_kinds(read_gguf_layer_types(reader, config.layers, period),
                                     gemma3_window(config, reader.count("attention.sliding_window")),
                                     rope_table(local, reader.label()), read_gguf_rope(reader, config));
  reader.finish();
}

ModelDescription describe_gemma3(const ModelSource& source, const DescribeOptions& options) {
  constexpr std::uint64_t kPeriod = 6;
  DecoderConfig config;
  config.options = options;
  if (is_gguf(source)) {
    read_gguf_gemma3(source, config, kPeriod);
  } else {
    ConfigReader reader = huggingface_reader(source);
    config.default_theta = 1e6;  // of the full layers
    config.causal = !reader.boolean("use_bidirectional_attention", false);
    read_huggingface_gemma(source, reader, config);
    const GemmaRope rope = read_huggingface_gemma3_rope(reader, config);
    const auto types = read_layer_types(reader, config.layers, {"full_attention", "sliding_attention"});
    const auto older = reader.optional_positive("sliding_window_pattern");
    const auto newer = reader.optional_positive("_sliding_window_pattern");
    const std::uint64_t period = older ? *older : newer.value_or(kPeriod);
    const std::uint64_t window = gemma3_window(config, reader.positive("sliding_window"));
    config.attention =
        attention_kinds(types ? *types : periodic_types(config.layers, period), window, rope.sliding, rope.full);
    reader.finish();
  }
  config.qk_norm = true;
  return gemma_description(source, config, "gemma3");
}

}  // namespace

Family gemma2_family() {
  return {"gemma2", {"gemma2"}, {"gemma2"}, describe_gemma2};
}

Family gemma3_family() {
  return {"gemma3", {"gemma3_text"}, {"gemma3", "gemma-embedding"}, describe_gemma3};
}

}  // namespace candor::models
