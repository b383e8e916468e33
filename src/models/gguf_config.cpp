#include "models/gguf_config.h"

#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/limits.h"

namespace candor::models {
namespace {

/// A tensor of positive f32 factors, one a rotated pair; empty if the file has none of that name.
std::vector<float> frequency_factors(const ModelSource& source, std::string_view name, std::size_t count) {
  const TensorInfo* tensor = source.find(name);
  if (!tensor) return {};
  if (tensor->encoding != Encoding::f32 || tensor->elements() != count)
    fail(ErrorCode::format, "{}: {} holds {} {} values where {} f32 are needed", source.path().string(), name,
         tensor->elements(), to_string(tensor->encoding), count);
  std::vector<float> factors(count);
  source.copy_bytes(*tensor, std::as_writable_bytes(std::span(factors)));
  for (std::size_t i = 0; i < factors.size(); ++i)
    if (!(factors[i] > 0))
      fail(ErrorCode::format, "{}: {}[{}] is {}; factors are positive", source.path().string(), name, i, factors[i]);
  return factors;
}

/// The scaling keys as the configuration object that rope_table reads; null without scaling.
Json rope_scaling(GgufReader& reader, std::uint64_t rotary_dim) {
  const auto type = reader.optional_string("rope.scaling.type");
  const auto factor = reader.optional_number("rope.scaling.factor");
  const auto original = reader.optional_positive("rope.scaling.original_context_length");
  const auto older_factor = reader.optional_number("rope.scale_linear");
  const auto long_factors = frequency_factors(reader.source(), "rope_factors_long.weight", rotary_dim / 2);
  const auto short_factors = frequency_factors(reader.source(), "rope_factors_short.weight", rotary_dim / 2);
  Json scaling = Json::object();
  if (original) scaling["original_max_position_embeddings"] = *original;
  if (!long_factors.empty() || !short_factors.empty()) {
    scaling["rope_type"] = "longrope";
    scaling["attention_factor"] = 1;  // read_gguf_rope has the format's own
    scaling["long_factor"] = long_factors;
    scaling["short_factor"] = short_factors;
    return scaling;
  }
  if (!type && older_factor && *older_factor != 1) return {{"rope_type", "linear"}, {"factor", *older_factor}};
  if (!type || *type == "none") return {};
  scaling["rope_type"] = std::string(*type);
  if (factor) scaling["factor"] = *factor;
  if (*type == "linear") return {{"rope_type", "linear"}, {"factor", factor.value_or(1)}};
  if (*type != "yarn")
    fail(ErrorCode::unsupported, "{}: rope.scaling.type \"{}\" is unknown; known are none, linear, yarn",
         reader.label(), printable(*type));
  if (const auto fast = reader.optional_number("rope.scaling.yarn_beta_fast")) scaling["beta_fast"] = *fast;
  if (const auto slow = reader.optional_number("rope.scaling.yarn_beta_slow")) scaling["beta_slow"] = *slow;
  return scaling;
}

}  // namespace

void read_gguf_dimensions(GgufReader& reader, DecoderConfig& config) {
  const std::string& label = reader.label();
  const std::uint64_t layers = reader.positive("block_count");
  if (layers > limits::layers)
    fail(ErrorCode::format, "{}: block_count {} is above the limit of {}", label, layers, limits::layers);
  config.layers = static_cast<std::uint32_t>(layers);
  config.hidden = reader.positive("embedding_length");
  config.intermediate = reader.positive("feed_forward_length");
  config.max_positions = reader.positive("context_length");
  config.heads = reader.positive("attention.head_count");
  for (const std::uint64_t heads : reader.contains("attention.head_count_kv")
                                       ? reader.by_layer("attention.head_count_kv", config.layers)
                                       : std::vector<std::uint64_t>{config.heads}) {
    if (heads != 0 && config.kv_heads != 0 && heads != config.kv_heads)
      fail(ErrorCode::unsupported, "{}: attention.head_count_kv is {} in some layers and {} in others", label,
           config.kv_heads, heads);
    if (heads != 0) config.kv_heads = heads;
  }
  const auto key_length = reader.optional_positive("attention.key_length");
  const auto value_length = reader.optional_positive("attention.value_length");
  if (config.hidden % config.heads != 0 && !key_length)
    fail(ErrorCode::format, "{}: embedding_length {} is not a multiple of head_count {}", label, config.hidden,
         config.heads);
  config.head_dim = key_length.value_or(config.hidden / config.heads);
  if (value_length && *value_length != config.head_dim)
    fail(ErrorCode::unsupported, "{}: value_length {} differs from key_length {}", label, *value_length,
         config.head_dim);
  if (config.kv_heads == 0 || config.heads % config.kv_heads != 0)
    fail(ErrorCode::format, "{}: head_count {} is not a multiple of head_count_kv {}", label, config.heads,
         config.kv_heads);

  const TensorInfo* embed = reader.source().find("token_embd.weight");
  if (!embed || embed->shape.size() != 2)
    fail(ErrorCode::format, "{}: tensor token_embd.weight is missing or no matrix", label);
  config.vocabulary = embed->shape[0];
  if (const auto stated = reader.optional_positive("vocab_size"); stated && *stated != config.vocabulary)
    fail(ErrorCode::format, "{}: vocab_size {} but token_embd.weight has {} rows", label, *stated, config.vocabulary);
  config.names = gguf_decoder_names();
  config.tied = reader.source().find(config.names.lm_head) == nullptr;
  config.pooling = choose_pooling(read_gguf_pooling(reader), config.options.pooling, label);
}

RopeTable read_gguf_rope(GgufReader& reader, const DecoderConfig& config) {
  RopeSettings settings;
  settings.theta = reader.optional_number("rope.freq_base").value_or(10000);
  settings.rotary_dim = reader.optional_positive("rope.dimension_count").value_or(config.head_dim);
  settings.max_positions = config.max_positions;
  settings.wanted_positions = config.options.context;
  if (settings.rotary_dim > config.head_dim)
    fail(ErrorCode::format, "{}: rope.dimension_count {} exceeds the head's {} dimensions", reader.label(),
         settings.rotary_dim, config.head_dim);
  const Json scaling = rope_scaling(reader, settings.rotary_dim);
  if (!scaling.is_null()) settings.scaling = &scaling;
  RopeTable rope = rope_table(settings, reader.label());
  rope.attention_scale *= reader.optional_number("rope.scaling.attn_factor").value_or(1);
  const auto factors = frequency_factors(reader.source(), "rope_freqs.weight", rope.inverse_frequencies.size());
  for (std::size_t i = 0; i < factors.size(); ++i) rope.inverse_frequencies[i] /= factors[i];
  if (!factors.empty()) rope.scaling = "llama3";
  return rope;
}

}  // namespace candor::models
