#include "models/gguf_config.h"

#include <cstring>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/limits.h"

namespace candor::models {
namespace {

/// Metadata under one prefix, each key used or refused.
class GgufReader {
 public:
  GgufReader(const ModelSource& source, std::string prefix)
      : metadata_(*source.gguf()), label_(source.path().string()), prefix_(std::move(prefix) + ".") {}

  std::optional<std::uint64_t> optional_positive(std::string_view key) {
    const auto value = metadata_.unsigned_integer(name(key));
    if (value && *value == 0) fail(ErrorCode::format, "{}: {}{} must be positive; got 0", label_, prefix_, key);
    return value;
  }
  std::uint64_t positive(std::string_view key) {
    if (const auto value = optional_positive(key)) return *value;
    fail(ErrorCode::format, "{}: {}{} is missing", label_, prefix_, key);
  }
  std::optional<double> optional_number(std::string_view key) { return metadata_.number(name(key)); }
  double number(std::string_view key) {
    if (const auto value = optional_number(key)) return *value;
    fail(ErrorCode::format, "{}: {}{} is missing", label_, prefix_, key);
  }
  std::optional<std::string_view> optional_string(std::string_view key) { return metadata_.string(name(key)); }
  void harmless(std::string_view key) { (void)name(key); }

  void finish() const {
    for (const std::string& key : metadata_.keys())
      if (key.starts_with(prefix_) && !used_.contains(key))
        fail(ErrorCode::unsupported, "{}: unknown key {}; a setting that may change the computation is not ignored",
             label_, printable(key));
  }

 private:
  std::string name(std::string_view key) {
    std::string full = prefix_ + std::string(key);
    used_.insert(full);
    return full;
  }

  const GgufMetadata& metadata_;
  std::string label_;
  std::string prefix_;
  std::set<std::string, std::less<>> used_;
};

/// The scaling keys as the configuration object that rope_table reads; null without scaling.
Json rope_scaling(GgufReader& reader, const std::string& label) {
  const auto type = reader.optional_string("rope.scaling.type");
  const auto factor = reader.optional_number("rope.scaling.factor");
  const auto original = reader.optional_positive("rope.scaling.original_context_length");
  reader.harmless("rope.scaling.finetuned");
  const auto older_factor = reader.optional_number("rope.scale_linear");
  if (!type && older_factor && *older_factor != 1) return {{"rope_type", "linear"}, {"factor", *older_factor}};
  if (!type || *type == "none") return {};
  Json scaling{{"rope_type", std::string(*type)}};
  if (factor) scaling["factor"] = *factor;
  if (*type == "linear") return scaling;
  if (*type != "yarn") fail(ErrorCode::unsupported, "{}: rope.scaling.type \"{}\" is unknown", label, printable(*type));
  if (original) scaling["original_max_position_embeddings"] = *original;
  if (const auto fast = reader.optional_number("rope.scaling.yarn_beta_fast")) scaling["beta_fast"] = *fast;
  if (const auto slow = reader.optional_number("rope.scaling.yarn_beta_slow")) scaling["beta_slow"] = *slow;
  if (const auto attention = reader.optional_number("rope.scaling.attn_factor"))
    scaling["attention_factor"] = *attention;
  return scaling;
}

/// Llama 3.1's factors stand in a tensor: each frequency is divided by its factor.
void apply_frequency_factors(const ModelSource& source, RopeTable& rope) {
  const TensorInfo* tensor = source.find("rope_freqs.weight");
  if (!tensor) return;
  if (tensor->encoding != Encoding::f32 || tensor->elements() != rope.inverse_frequencies.size())
    fail(ErrorCode::format, "{}: rope_freqs.weight holds {} {} values where {} f32 are needed", source.path().string(),
         tensor->elements(), to_string(tensor->encoding), rope.inverse_frequencies.size());
  std::vector<float> factors(rope.inverse_frequencies.size());
  std::memcpy(factors.data(), source.bytes(*tensor).data(), tensor->bytes);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (!(factors[i] > 0))
      fail(ErrorCode::format, "{}: rope_freqs.weight[{}] is {}; factors are positive", source.path().string(), i,
           factors[i]);
    rope.inverse_frequencies[i] /= factors[i];
  }
}

}  // namespace

DecoderConfig read_gguf_dimensions(const ModelSource& source, const std::string& architecture) {
  const std::string label = source.path().string();
  GgufReader reader(source, architecture);
  DecoderConfig config;
  const std::uint64_t layers = reader.positive("block_count");
  if (layers > limits::layers)
    fail(ErrorCode::format, "{}: block_count {} is above the limit of {}", label, layers, limits::layers);
  config.layers = static_cast<std::uint32_t>(layers);
  config.hidden = reader.positive("embedding_length");
  config.intermediate = reader.positive("feed_forward_length");
  config.max_positions = reader.positive("context_length");
  config.heads = reader.positive("attention.head_count");
  config.kv_heads = reader.optional_positive("attention.head_count_kv").value_or(config.heads);
  config.norm_eps = reader.number("attention.layer_norm_rms_epsilon");
  const auto key_length = reader.optional_positive("attention.key_length");
  const auto value_length = reader.optional_positive("attention.value_length");
  if (config.hidden % config.heads != 0 && !key_length)
    fail(ErrorCode::format, "{}: embedding_length {} is not a multiple of head_count {}", label, config.hidden,
         config.heads);
  config.head_dim = key_length.value_or(config.hidden / config.heads);
  if (value_length && *value_length != config.head_dim)
    fail(ErrorCode::unsupported, "{}: value_length {} differs from key_length {}", label, *value_length,
         config.head_dim);
  if (config.heads % config.kv_heads != 0)
    fail(ErrorCode::format, "{}: head_count {} is not a multiple of head_count_kv {}", label, config.heads,
         config.kv_heads);

  const TensorInfo* embed = source.find("token_embd.weight");
  if (!embed || embed->shape.size() != 2)
    fail(ErrorCode::format, "{}: tensor token_embd.weight is missing or no matrix", label);
  config.vocabulary = embed->shape[0];
  if (const auto stated = reader.optional_positive("vocab_size"); stated && *stated != config.vocabulary)
    fail(ErrorCode::format, "{}: vocab_size {} but token_embd.weight has {} rows", label, *stated, config.vocabulary);

  RopeSettings settings;
  settings.theta = reader.optional_number("rope.freq_base").value_or(10000);
  settings.rotary_dim = reader.optional_positive("rope.dimension_count").value_or(config.head_dim);
  settings.max_positions = config.max_positions;
  if (settings.rotary_dim > config.head_dim)
    fail(ErrorCode::format, "{}: rope.dimension_count {} exceeds the head's {} dimensions", label, settings.rotary_dim,
         config.head_dim);
  const Json scaling = rope_scaling(reader, label);
  if (!scaling.is_null()) settings.scaling = &scaling;
  config.rope_theta = settings.theta;
  config.rope = rope_table(settings, label);
  apply_frequency_factors(source, config.rope);
  reader.finish();
  return config;
}

}  // namespace candor::models
