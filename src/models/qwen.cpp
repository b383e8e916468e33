// Qwen 2 and 2.5 (Yang et al. 2024, arXiv:2407.10671): Llama with biases on q, k and v, for which the configuration has
// no key. Qwen 3 (Yang et al. 2025, arXiv:2505.09388): no biases, but RMSNorm of each query and key head.
#include "models/qwen.h"

#include "base/error.h"
#include "models/families.h"
#include "models/gguf_config.h"

namespace candor::models {
namespace {

std::vector<std::string> qwen_layer_types(ConfigReader& reader, const DecoderConfig& config, bool windows) {
  const double first = reader.optional_number("max_window_layers").value_or(0);
  if (auto given = read_layer_types(reader, config.layers, {"full_attention", "sliding_attention"})) {
    if (!windows && !layers_of(*given, "sliding_attention").empty())
      fail(ErrorCode::format,
           "{}: layer_types has sliding_attention, but use_sliding_window or sliding_window is not set",
           reader.label());
    return *given;
  }
  std::vector<std::string> types;
  for (std::uint32_t layer = 0; layer < config.layers; ++layer)
    types.emplace_back(windows && layer >= first ? "sliding_attention" : "full_attention");
  return types;
}

DecoderConfig read_qwen(const ModelSource& source, const DescribeOptions& options, const std::string& architecture) {
  DecoderConfig config;
  config.options = options;
  if (is_gguf(source)) {
    GgufReader reader(source, architecture);
    read_gguf_qwen(reader, config);
    reader.finish();
  } else {
    ConfigReader reader = huggingface_reader(source);
    read_huggingface_qwen(reader, config);
    reader.finish();
    use_huggingface_names(source, config);
  }
  return config;
}

ModelDescription describe_qwen2(const ModelSource& source, const DescribeOptions& options) {
  DecoderConfig config = read_qwen(source, options, "qwen2");
  config.attention_bias = true;
  return describe_pre_norm_decoder(source, config, "qwen2");
}

ModelDescription describe_qwen3(const ModelSource& source, const DescribeOptions& options) {
  DecoderConfig config = read_qwen(source, options, "qwen3");
  config.qk_norm = true;
  return describe_pre_norm_decoder(source, config, "qwen3");
}

}  // namespace

void read_huggingface_qwen(ConfigReader& reader, DecoderConfig& config) {
  read_huggingface_dimensions(reader, config);
  config.norm_eps = reader.number("rms_norm_eps");
  config.activation = read_activation(reader, "hidden_act");
  config.attention_bias = reader.boolean("attention_bias", false);
  config.output_bias = config.attention_bias;
  config.tied = reader.boolean("tie_word_embeddings", false);
  reader.require("use_mrope", false, "positions of several dimensions are for images");
  const std::uint64_t window = reader.optional_positive("sliding_window").value_or(0);
  const bool windows = reader.boolean("use_sliding_window", false) && window != 0;
  const RopeTable rope = read_huggingface_rope(reader, config);
  config.attention = attention_kinds(qwen_layer_types(reader, config, windows), window, rope, rope);
}

void read_gguf_qwen(GgufReader& reader, DecoderConfig& config) {
  read_gguf_dimensions(reader, config);
  config.norm_eps = reader.number("attention.layer_norm_rms_epsilon");
  config.activation = "silu";
  config.attention = {{{}, 0, read_gguf_rope(reader, config)}};
}

Family qwen2_family() {
  return {"qwen2", {"qwen2"}, {"qwen2"}, describe_qwen2};
}

Family qwen3_family() {
  return {"qwen3", {"qwen3"}, {"qwen3"}, describe_qwen3};
}

}  // namespace candor::models
