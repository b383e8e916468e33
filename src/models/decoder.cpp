#include "models/decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "models/stop_tokens.h"

namespace candor::models {

DecoderNames huggingface_decoder_names() {
  const std::string layer = "model.layers.{L}.";
  return {.embed = "model.embed_tokens.weight",
          .input_norm = layer + "input_layernorm.weight",
          .q_proj = layer + "self_attn.q_proj.weight",
          .k_proj = layer + "self_attn.k_proj.weight",
          .v_proj = layer + "self_attn.v_proj.weight",
          .o_proj = layer + "self_attn.o_proj.weight",
          .post_attention_norm = layer + "post_attention_layernorm.weight",
          .gate_proj = layer + "mlp.gate_proj.weight",
          .up_proj = layer + "mlp.up_proj.weight",
          .down_proj = layer + "mlp.down_proj.weight",
          .final_norm = "model.norm.weight",
          .lm_head = "lm_head.weight"};
}

DecoderNames gguf_decoder_names() {
  const std::string layer = "blk.{L}.";
  return {.embed = "token_embd.weight",
          .input_norm = layer + "attn_norm.weight",
          .q_proj = layer + "attn_q.weight",
          .k_proj = layer + "attn_k.weight",
          .v_proj = layer + "attn_v.weight",
          .o_proj = layer + "attn_output.weight",
          .post_attention_norm = layer + "ffn_norm.weight",
          .gate_proj = layer + "ffn_gate.weight",
          .up_proj = layer + "ffn_up.weight",
          .down_proj = layer + "ffn_down.weight",
          .final_norm = "output_norm.weight",
          .lm_head = "output.weight"};
}

std::string bias_name(const std::string& weight_name) {
  constexpr std::string_view kSuffix = ".weight";
  return weight_name.substr(0, weight_name.size() - kSuffix.size()) + ".bias";
}

void read_huggingface_dimensions(ConfigReader& reader, DecoderConfig& config) {
  const std::uint64_t layers = reader.positive("num_hidden_layers");
  if (layers > limits::layers)
    fail(ErrorCode::format, "{}: num_hidden_layers {} is above the limit of {}", reader.label(), layers,
         limits::layers);
  config.layers = static_cast<std::uint32_t>(layers);
  config.hidden = reader.positive("hidden_size");
  config.intermediate = reader.positive("intermediate_size");
  config.vocabulary = reader.positive("vocab_size");
  config.max_positions = reader.positive("max_position_embeddings");
  config.heads = reader.positive("num_attention_heads");
  config.kv_heads = reader.optional_positive("num_key_value_heads").value_or(config.heads);
  const auto head_dim = reader.optional_positive("head_dim");
  if (!head_dim && config.hidden % config.heads != 0)
    fail(ErrorCode::format, "{}: hidden_size {} is not a multiple of num_attention_heads {}, and head_dim is missing",
         reader.label(), config.hidden, config.heads);
  config.head_dim = head_dim.value_or(config.hidden / config.heads);
  if (config.heads % config.kv_heads != 0)
    fail(ErrorCode::format, "{}: num_attention_heads {} is not a multiple of num_key_value_heads {}", reader.label(),
         config.heads, config.kv_heads);
}

RopeTable read_huggingface_rope(ConfigReader& reader, DecoderConfig& config) {
  RopeSettings settings;
  settings.rotary_dim = config.head_dim;
  settings.max_positions = config.max_positions;
  const Json* parameters = reader.find("rope_parameters");
  const Json* scaling = reader.find("rope_scaling");
  const auto top_level_theta = reader.optional_number("rope_theta");
  if (parameters && scaling)
    fail(ErrorCode::format, "{}: has both rope_parameters and rope_scaling; keep one", reader.label());
  settings.scaling = parameters ? parameters : scaling;
  std::optional<double> theta = top_level_theta;
  if (parameters) {
    ConfigReader inner(*parameters, reader.label() + ": rope_parameters");
    if (const auto given = inner.optional_number("rope_theta")) theta = given;
  }
  config.rope_theta = theta.value_or(10000);
  settings.theta = config.rope_theta;
  return rope_table(settings, reader.label());
}

std::string read_activation(ConfigReader& reader, std::string_view key) {
  const std::string name = reader.string(key);
  if (name == "silu" || name == "swish") return "silu";
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return "gelu_tanh";
  if (name == "gelu") return "gelu_erf";
  fail(ErrorCode::unsupported, "{}: {} \"{}\" is unknown; known are silu, swish, gelu, gelu_new, gelu_pytorch_tanh",
       reader.label(), key, printable(name));
}

namespace {

/// What artifacts state for people and for other readers; the steps say the same in full. A field without meaning for
/// the model is null.
Json decoder_facts(const DecoderConfig& config) {
  Json facts;
  facts["attention"] = {{"queryPreAttnScalar", config.head_dim},
                        {"attnLogitSoftcapping", nullptr},
                        {"slidingWindow", nullptr},
                        {"queryKeyNorm", false},
                        {"attentionOutputGate", false},
                        {"causal", true},
                        {"attentionBias", config.attention_bias}};
  facts["normalization"] = {{"rmsNormEps", config.norm_eps},
                            {"rmsNormWeightOffset", false},
                            {"postAttentionNorm", true},
                            {"preFeedforwardNorm", false},
                            {"postFeedforwardNorm", false}};
  facts["ffn"] = {{"activation", config.activation == "silu" ? "silu" : "gelu"},
                  {"gatedActivation", true},
                  {"swigluLimit", nullptr}};
  facts["rope"] = {{"ropeTheta", config.rope_theta}, {"ropeLocalTheta", nullptr}, {"ropeScalingType", nullptr},
                   {"ropeScalingFactor", 1},         {"yarnBetaFast", nullptr},   {"yarnBetaSlow", nullptr},
                   {"yarnOriginalMaxPos", nullptr}};
  facts["output"] = {{"finalLogitSoftcapping", nullptr},
                     {"tieWordEmbeddings", config.tied},
                     {"scaleEmbeddings", false},
                     {"embeddingTranspose", false},
                     {"embeddingVocabSize", config.vocabulary}};
  facts["layerPattern"] = {{"type", "uniform"},
                           {"globalPattern", nullptr},
                           {"period", nullptr},
                           {"offset", nullptr},
                           {"layerTypes", nullptr}};
  facts["chatTemplate"] = {{"type", nullptr}, {"enabled", false}};
  facts["pipeline"] = nullptr;
  return facts;
}

}  // namespace

ModelDescription begin_decoder(const DecoderConfig& config, std::string family) {
  ModelDescription description;
  description.family = std::move(family);
  description.model_type = "transformer";
  description.layers = config.layers;
  description.vocabulary = config.vocabulary;
  description.max_positions = config.max_positions;
  description.architecture = {{"numLayers", config.layers},
                              {"hiddenSize", config.hidden},
                              {"intermediateSize", config.intermediate},
                              {"numAttentionHeads", config.heads},
                              {"numKeyValueHeads", config.kv_heads},
                              {"headDim", config.head_dim},
                              {"vocabSize", config.vocabulary},
                              {"maxSeqLen", config.max_positions},
                              {"ropeTheta", config.rope_theta}};
  description.inference = decoder_facts(config);
  return description;
}

void add_attention_block(StepBuilder& steps, const DecoderConfig& config, std::uint64_t window) {
  const DecoderNames& names = config.names;
  const std::uint64_t q_width = config.heads * config.head_dim;
  const std::uint64_t kv_width = config.kv_heads * config.head_dim;
  const auto project = [&](const std::string& op, const std::string& dst, const std::string& weight,
                           std::uint64_t width) {
    steps.linear(op, "normed", dst, weight, width, config.hidden);
    if (config.attention_bias) steps.bias(op + "_bias", dst, bias_name(weight), width);
  };
  project("q_proj", "q", names.q_proj, q_width);
  project("k_proj", "k", names.k_proj, kv_width);
  project("v_proj", "v", names.v_proj, kv_width);
  steps.rope("rope_q", "q", config.rope, config.head_dim, config.rope_style);
  steps.rope("rope_k", "k", config.rope, config.head_dim, config.rope_style);
  const double scale = 1 / std::sqrt(static_cast<double>(config.head_dim));
  steps.attention("q", "k", "v", "attn", {config.heads, config.kv_heads, config.head_dim, scale, window, 0});
  steps.linear("o_proj", "attn", "attn_out", names.o_proj, config.hidden, q_width);
  if (config.output_bias) steps.bias("o_proj_bias", "attn_out", bias_name(names.o_proj), config.hidden);
}

void add_gated_feed_forward(StepBuilder& steps, const DecoderConfig& config) {
  const DecoderNames& names = config.names;
  steps.linear("gate_proj", "normed", "gate", names.gate_proj, config.intermediate, config.hidden);
  if (config.mlp_bias) steps.bias("gate_proj_bias", "gate", bias_name(names.gate_proj), config.intermediate);
  steps.linear("up_proj", "normed", "up", names.up_proj, config.intermediate, config.hidden);
  if (config.mlp_bias) steps.bias("up_proj_bias", "up", bias_name(names.up_proj), config.intermediate);
  steps.gated_activation("gate", "up", "act", config.activation);
  steps.linear("down_proj", "act", "ffn_out", names.down_proj, config.hidden, config.intermediate);
  if (config.mlp_bias) steps.bias("down_proj_bias", "ffn_out", bias_name(names.down_proj), config.hidden);
}

void add_decoder_tail(StepBuilder& steps, const DecoderConfig& config, const NormShape& final_norm) {
  steps.section("postLayer");
  steps.select_last_row();
  steps.rmsnorm("final_norm", "state", "normed", config.names.final_norm, final_norm);
  const std::string& head = config.tied ? config.names.embed : config.names.lm_head;
  steps.linear("lm_head", "normed", "logits", head, config.vocabulary, config.hidden);
  steps.section("sampling").sample("logits");
}

void finish_decoder(const ModelSource& source, const DecoderConfig& config, ModelDescription& description) {
  description.stop_tokens = stop_tokens(source, config.vocabulary);
  for (const TensorInfo& tensor : source.tensors())
    if (tensor.name.ends_with(".rotary_emb.inv_freq") || tensor.name == "rope_freqs.weight")
      description.ignored_tensors.push_back(tensor.name);
  const TensorInfo* head = source.find(config.names.lm_head);
  if (!config.tied || !head) return;
  // A tied model may still carry its head; it may only be left unread where it is the embedding's copy.
  const TensorInfo* embed = source.find(config.names.embed);
  const bool same = embed && embed->encoding == head->encoding && embed->bytes == head->bytes &&
                    std::memcmp(source.bytes(*embed).data(), source.bytes(*head).data(), head->bytes) == 0;
  if (!same)
    fail(ErrorCode::format,
         "{}: tie_word_embeddings is true but {} differs from {}; set it to false to use the stored head",
         source.path().string(), config.names.lm_head, config.names.embed);
  description.ignored_tensors.push_back(config.names.lm_head);
}

}  // namespace candor::models
