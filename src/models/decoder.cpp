#include "models/decoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "models/stop_tokens.h"

namespace candor::models {

DecoderNames huggingface_decoder_names(const std::string& prefix) {
  const std::string layer = prefix + "layers.{L}.";
  return {.embed = prefix + "embed_tokens.weight",
          .input_norm = layer + "input_layernorm.weight",
          .q_proj = layer + "self_attn.q_proj.weight",
          .k_proj = layer + "self_attn.k_proj.weight",
          .v_proj = layer + "self_attn.v_proj.weight",
          .o_proj = layer + "self_attn.o_proj.weight",
          .q_norm = layer + "self_attn.q_norm.weight",
          .k_norm = layer + "self_attn.k_norm.weight",
          .post_attention_norm = layer + "post_attention_layernorm.weight",
          .gate_proj = layer + "mlp.gate_proj.weight",
          .up_proj = layer + "mlp.up_proj.weight",
          .down_proj = layer + "mlp.down_proj.weight",
          .final_norm = prefix + "norm.weight",
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
          .q_norm = layer + "attn_q_norm.weight",
          .k_norm = layer + "attn_k_norm.weight",
          .post_attention_norm = layer + "ffn_norm.weight",
          .gate_proj = layer + "ffn_gate.weight",
          .up_proj = layer + "ffn_up.weight",
          .down_proj = layer + "ffn_down.weight",
          .final_norm = "output_norm.weight",
          .lm_head = "output.weight"};
}

std::uint32_t read_layer_count(ConfigReader& reader, std::string_view key) {
  const std::uint64_t layers = reader.positive(key);
  if (layers > limits::layers)
    fail(ErrorCode::format, "{}: {} {} is above the limit of {}", reader.label(), key, layers, limits::layers);
  return static_cast<std::uint32_t>(layers);
}

void check_head_split(const std::string& label, DecoderConfig& config) {
  if (config.hidden % config.heads != 0)
    fail(ErrorCode::format, "{}: {} columns are not a multiple of {} heads", label, config.hidden, config.heads);
  config.head_dim = config.hidden / config.heads;
  config.kv_heads = config.heads;
}

void read_huggingface_dimensions(ConfigReader& reader, DecoderConfig& config) {
  config.layers = read_layer_count(reader, "num_hidden_layers");
  config.hidden = reader.positive("hidden_size");
  if (config.intermediate == 0) config.intermediate = reader.positive("intermediate_size");
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

namespace {

/// One set of RoPE parameters, from wherever it stands. `older_theta` is for the form that keeps it outside.
RopeTable rope_from(const Json* parameters, ConfigReader& reader, const DecoderConfig& config,
                    std::optional<double> older_theta) {
  RopeSettings settings;
  settings.max_positions = config.max_positions;
  settings.wanted_positions = config.options.context;
  settings.original_positions = reader.optional_positive("original_max_position_embeddings");
  settings.scaling = parameters;
  std::optional<double> theta = older_theta;
  std::optional<double> partial = reader.optional_number("partial_rotary_factor");
  if (parameters) {
    ConfigReader inner(*parameters, reader.label() + ": RoPE parameters");
    const auto take = [&](std::optional<double>& value, std::string_view key) {
      const auto given = inner.optional_number(key);
      if (given && value && *given != *value)
        fail(ErrorCode::format, "{}: {} is {}, and {} beside the RoPE parameters", inner.label(), key, *given, *value);
      if (given) value = given;
    };
    take(theta, "rope_theta");
    take(partial, "partial_rotary_factor");
  }
  if (partial && !(*partial > 0 && *partial <= 1))
    fail(ErrorCode::format, "{}: partial_rotary_factor must be above 0 and at most 1; got {}", reader.label(),
         *partial);
  if (partial.value_or(1) != 1 && !config.partial_rotation)
    fail(ErrorCode::unsupported, "{}: partial_rotary_factor is {}; heads of this family are rotated whole",
         reader.label(), *partial);
  settings.theta = theta.value_or(config.default_theta);
  settings.rotary_dim = static_cast<std::uint64_t>(static_cast<double>(config.head_dim) * partial.value_or(1));
  return rope_table(settings, reader.label());
}

}  // namespace

RopeTable read_huggingface_rope(ConfigReader& reader, const DecoderConfig& config) {
  const Json* parameters = reader.find("rope_parameters");
  const Json* scaling = reader.find("rope_scaling");
  const auto theta = reader.optional_number("rope_theta");
  if (parameters && scaling)
    fail(ErrorCode::format, "{}: has both rope_parameters and rope_scaling; keep one", reader.label());
  return rope_from(parameters ? parameters : scaling, reader, config, theta);
}

std::optional<RopeTable> read_huggingface_rope(ConfigReader& reader, const DecoderConfig& config,
                                               const std::string& layer_type) {
  const Json* parameters = reader.find("rope_parameters");
  if (!parameters) return std::nullopt;
  ConfigReader by_type(*parameters, reader.label() + ": rope_parameters");
  by_type.harmless({"full_attention", "sliding_attention"});
  const Json* own = by_type.find(layer_type);
  if (!own || !own->is_object()) return std::nullopt;
  by_type.finish();
  return rope_from(own, reader, config, std::nullopt);
}

std::optional<std::vector<std::string>> read_layer_types(ConfigReader& reader, std::uint32_t layers,
                                                         std::initializer_list<std::string_view> known) {
  const Json* list = reader.find("layer_types");
  if (!list) return std::nullopt;
  if (!list->is_array() || list->size() != layers)
    fail(ErrorCode::format, "{}: layer_types must list {} types, one a layer", reader.label(), layers);
  std::vector<std::string> types;
  for (const Json& entry : *list) {
    const std::string type = entry.is_string() ? entry.get<std::string>() : to_js_json(entry);
    if (std::find(known.begin(), known.end(), type) == known.end())
      fail(ErrorCode::unsupported, "{}: layer type \"{}\" is unknown; known here are {}", reader.label(),
           printable(type), fmt::join(known, ", "));
    types.push_back(type);
  }
  return types;
}

std::vector<std::uint32_t> layers_of(const std::vector<std::string>& types, std::string_view type) {
  std::vector<std::uint32_t> layers;
  for (std::uint32_t layer = 0; layer < types.size(); ++layer)
    if (types[layer] == type) layers.push_back(layer);
  return layers;
}

std::vector<AttentionKind> attention_kinds(const std::vector<std::string>& types, std::uint64_t window,
                                           const RopeTable& sliding, const RopeTable& full) {
  auto windowed = layers_of(types, "sliding_attention");
  auto global = layers_of(types, "full_attention");
  if (windowed.empty()) return {{{}, 0, full}};
  if (global.empty()) return {{{}, window, sliding}};
  return {{std::move(windowed), window, sliding}, {std::move(global), 0, full}};
}

std::string read_activation(ConfigReader& reader, std::string_view key) {
  const std::string name = reader.string(key);
  if (name == "silu" || name == "swish") return "silu";
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return "gelu_tanh";
  if (name == "gelu") return "gelu_erf";
  fail(ErrorCode::unsupported, "{}: {} \"{}\" is unknown; known are silu, swish, gelu, gelu_new, gelu_pytorch_tanh",
       reader.label(), key, printable(name));
}

bool is_gguf(const ModelSource& source) {
  return source.gguf() != nullptr;
}

ConfigReader huggingface_reader(const ModelSource& source) {
  ConfigReader reader(source.config(), (source.path() / "config.json").string());
  mark_huggingface_harmless(reader);
  return reader;
}

double DecoderConfig::score_factor() const {
  return query_scale != 0 ? query_scale : 1 / std::sqrt(static_cast<double>(head_dim));
}

void use_huggingface_names(const ModelSource& source, DecoderConfig& config) {
  if (!source.find(config.prefix + "embed_tokens.weight") && source.find("embed_tokens.weight")) config.prefix.clear();
  config.names = huggingface_decoder_names(config.prefix);
  config.pooling = choose_pooling(read_huggingface_pooling(source), config.options.pooling, source.path().string());
}

namespace {

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

/// The kind of the layers that see everything, or else the first.
const AttentionKind& global_kind(const DecoderConfig& config) {
  for (const AttentionKind& kind : config.attention)
    if (kind.window == 0) return kind;
  return config.attention.front();
}

const AttentionKind* windowed_kind(const DecoderConfig& config) {
  for (const AttentionKind& kind : config.attention)
    if (kind.window != 0) return &kind;
  return nullptr;
}

Json rope_facts(const DecoderConfig& config) {
  const RopeTable& rope = global_kind(config).rope;
  const AttentionKind* windowed = windowed_kind(config);
  const bool local = windowed && windowed->rope.theta != rope.theta;
  return {{"ropeTheta", rope.theta},
          {"ropeLocalTheta", local ? Json(windowed->rope.theta) : Json()},
          {"ropeScalingType", rope.scaling.empty() ? Json() : Json(rope.scaling)},
          {"ropeScalingFactor", rope.factor.value_or(1)},
          {"yarnBetaFast", or_null(rope.beta_fast)},
          {"yarnBetaSlow", or_null(rope.beta_slow)},
          {"yarnOriginalMaxPos", rope.scaling == "yarn" ? or_null(rope.original_positions) : Json()}};
}

/// Which of LongRoPE's lists the frequencies were divided by; nothing for other models.
void add_longrope_facts(Json& facts, const RopeTable& rope) {
  if (rope.scaling == "longrope") facts["longRopeFactors"] = rope.holds_only ? "short" : "long";
}

Json layer_pattern(const DecoderConfig& config) {
  Json types;
  if (config.attention.size() > 1) {
    types = Json::array();
    for (std::uint32_t layer = 0; layer < config.layers; ++layer) types.push_back("conv");
    for (const AttentionKind& kind : config.attention)
      for (const std::uint32_t layer : kind.layers)
        types[layer] = kind.window == 0 ? "full_attention" : "sliding_attention";
  }
  return {{"type", types.is_null() ? "uniform" : "custom"},
          {"globalPattern", nullptr},
          {"period", nullptr},
          {"offset", nullptr},
          {"layerTypes", types}};
}

/// What artifacts state for people and for other readers; the steps say the same in full. A field without meaning for
/// the model is null.
Json decoder_facts(const DecoderConfig& config) {
  const AttentionKind* windowed = windowed_kind(config);
  const double scale = config.score_factor();
  Json facts;
  facts["attention"] = {
      {"queryPreAttnScalar", std::round(1e6 / (scale * scale)) / 1e6},
      {"attnLogitSoftcapping", config.attention_softcap != 0 ? Json(config.attention_softcap) : Json()},
      {"slidingWindow", windowed ? Json(windowed->window) : Json()},
      {"queryKeyNorm", config.qk_norm},
      {"attentionOutputGate", false},
      {"causal", config.causal},
      {"attentionBias", config.attention_bias}};
  facts["normalization"] = {{"rmsNormEps", config.norm_eps}, {"rmsNormWeightOffset", config.norm_offset != 0}};
  facts["ffn"] = {{"activation", config.activation == "silu" ? "silu" : "gelu"},
                  {"gatedActivation", true},
                  {"swigluLimit", nullptr}};
  facts["rope"] = rope_facts(config);
  add_longrope_facts(facts["rope"], global_kind(config).rope);
  facts["output"] = {{"finalLogitSoftcapping", config.logit_softcap != 0 ? Json(config.logit_softcap) : Json()},
                     {"tieWordEmbeddings", config.tied},
                     {"scaleEmbeddings", config.embedding_scale != 1},
                     {"embeddingTranspose", false},
                     {"embeddingVocabSize", config.vocabulary}};
  facts["layerPattern"] = layer_pattern(config);
  facts["chatTemplate"] = {{"type", nullptr}, {"enabled", false}};
  facts["pipeline"] = nullptr;
  return facts;
}

}  // namespace

ModelDescription begin_decoder(const DecoderConfig& config, std::string family) {
  ModelDescription description;
  description.family = std::move(family);
  description.model_type = config.generates() ? "transformer" : "embedding";
  description.layers = config.layers;
  description.vocabulary = config.vocabulary;
  description.max_positions = config.max_positions;
  for (const AttentionKind& kind : config.attention)
    description.max_positions =
        std::min(description.max_positions, kind.rope.holds_only.value_or(config.max_positions));
  description.architecture = {{"numLayers", config.layers},
                              {"hiddenSize", config.hidden},
                              {"intermediateSize", config.intermediate},
                              {"numAttentionHeads", config.heads},
                              {"numKeyValueHeads", config.kv_heads},
                              {"headDim", config.head_dim},
                              {"vocabSize", config.vocabulary},
                              {"maxSeqLen", description.max_positions},
                              {"ropeTheta", global_kind(config).rope.theta}};
  description.inference = decoder_facts(config);
  return description;
}

void add_qkv_projections(StepBuilder& steps, const DecoderConfig& config, const std::string& src) {
  const DecoderNames& names = config.names;
  const auto project = [&](const std::string& op, const std::string& dst, const std::string& weight,
                           std::uint64_t width) {
    steps.linear(op, src, dst, weight, width, config.hidden);
    if (config.attention_bias) steps.bias(op + "_bias", dst, bias_name(weight), width);
  };
  project("q_proj", "q", names.q_proj, config.heads * config.head_dim);
  project("k_proj", "k", names.k_proj, config.kv_heads * config.head_dim);
  project("v_proj", "v", names.v_proj, config.kv_heads * config.head_dim);
}

void add_attention(StepBuilder& steps, const DecoderConfig& config) {
  const DecoderNames& names = config.names;
  if (config.qk_norm) {
    steps.rmsnorm("q_norm", "q", "q", names.q_norm, config.head_norm());
    steps.rmsnorm("k_norm", "k", "k", names.k_norm, config.head_norm());
  }
  const std::vector<std::uint32_t> outer = steps.layers();
  for (const AttentionKind& kind : config.attention) {
    steps.section("layer", kind.layers.empty() ? outer : kind.layers);
    if (!kind.rope.inverse_frequencies.empty()) {
      steps.rope("rope_q", "q", kind.rope, config.head_dim, config.rope_style);
      steps.rope("rope_k", "k", kind.rope, config.head_dim, config.rope_style);
    }
    steps.attention("q", "k", "v", "attn",
                    {.heads = config.heads,
                     .kv_heads = config.kv_heads,
                     .head_dim = config.head_dim,
                     .scale = config.score_factor(),
                     .window = kind.window,
                     .softcap = config.attention_softcap,
                     .causal = config.causal});
  }
  steps.section("layer", outer);
  steps.linear("o_proj", "attn", "attn_out", names.o_proj, config.hidden, config.heads * config.head_dim);
  if (config.output_bias) steps.bias("o_proj_bias", "attn_out", bias_name(names.o_proj), config.hidden);
}

void add_gated_feed_forward(StepBuilder& steps, const DecoderConfig& config, const std::string& src) {
  const DecoderNames& names = config.names;
  steps.linear("gate_proj", src, "gate", names.gate_proj, config.intermediate, config.hidden);
  if (config.mlp_bias) steps.bias("gate_proj_bias", "gate", bias_name(names.gate_proj), config.intermediate);
  steps.linear("up_proj", src, "up", names.up_proj, config.intermediate, config.hidden);
  if (config.mlp_bias) steps.bias("up_proj_bias", "up", bias_name(names.up_proj), config.intermediate);
  steps.gated_activation("gate", "up", "act", config.activation);
  steps.linear("down_proj", "act", "ffn_out", names.down_proj, config.hidden, config.intermediate);
  if (config.mlp_bias) steps.bias("down_proj_bias", "ffn_out", bias_name(names.down_proj), config.hidden);
}

void add_pre_norm_attention(StepBuilder& steps, const DecoderConfig& config) {
  steps.rmsnorm("input_norm", "state", "normed", config.names.input_norm, config.norm());
  add_qkv_projections(steps, config);
  add_attention(steps, config);
  steps.residual("attn_residual", "attn_out", "state", "state");
}

void add_pre_norm_layer(StepBuilder& steps, const DecoderConfig& config) {
  add_pre_norm_attention(steps, config);
  steps.rmsnorm("post_attn_norm", "state", "normed", config.names.post_attention_norm, config.norm());
  add_gated_feed_forward(steps, config);
  steps.residual("ffn_residual", "ffn_out", "state", "state");
}

void add_decoder_tail(StepBuilder& steps, const DecoderConfig& config) {
  steps.section("postLayer");
  add_row_selection(steps, config);
  steps.rmsnorm("final_norm", "state", "normed", config.names.final_norm, config.norm());
  add_decoder_head(steps, config);
}

void add_row_selection(StepBuilder& steps, const DecoderConfig& config) {
  if (config.generates()) steps.select_last_row();
}

void add_decoder_head(StepBuilder& steps, const DecoderConfig& config) {
  if (config.pooling) add_pooling(steps, *config.pooling, "normed", config.hidden);
  if (!config.generates()) return;
  const std::string& head = config.tied ? config.names.embed : config.names.lm_head;
  steps.linear("lm_head", "normed", "logits", head, config.vocabulary, config.hidden);
  if (config.logit_softcap != 0) steps.softcap("logit_softcap", "logits", config.logit_softcap);
  steps.section("sampling").sample("logits");
}

void finish_decoder(const ModelSource& source, const DecoderConfig& config, ModelDescription& description) {
  description.stop_tokens = stop_tokens(source, config.vocabulary);
  for (const TensorInfo& tensor : source.tensors())
    if (tensor.name.ends_with(".rotary_emb.inv_freq") || tensor.name == "rope_freqs.weight" ||
        tensor.name == "rope_factors_long.weight" || tensor.name == "rope_factors_short.weight")
      description.ignored_tensors.push_back(tensor.name);
  const TensorInfo* head = source.find(config.names.lm_head);
  if (!config.generates()) {
    if (!config.pooling) description.undecided = kPoolingUndecided;
    if (head) description.ignored_tensors.push_back(config.names.lm_head);
    return;
  }
  if (!config.tied || !head) return;
  // A tied model may still carry its head; it may only be left unread where it is the embedding's copy.
  const TensorInfo* embed = source.find(config.names.embed);
  if (!embed || !source.have_same_bytes(*embed, *head))
    fail(ErrorCode::format,
         "{}: tie_word_embeddings is true but {} differs from {}; set it to false to use the stored head",
         source.path().string(), config.names.lm_head, config.names.embed);
  description.ignored_tensors.push_back(config.names.lm_head);
}

ModelDescription describe_pre_norm_decoder(const ModelSource& source, const DecoderConfig& config,
                                           const std::string& family) {
  ModelDescription description = begin_decoder(config, family);
  StepBuilder steps(description);
  steps.section("preLayer").embed(config.names.embed, config.vocabulary, config.hidden);
  add_pre_norm_layer(steps.section("layer"), config);
  add_decoder_tail(steps, config);
  finish_decoder(source, config, description);
  return description;
}

}  // namespace candor::models
