// Llama 1, 2, 3 and models of the same shape (Touvron et al. 2023, arXiv:2302.13971, 2307.09288): RMSNorm before
// attention and feed-forward, RoPE, grouped-query attention, SwiGLU.
#include "models/config_reader.h"
#include "models/decoder.h"
#include "models/families.h"
#include "models/gguf_config.h"

namespace candor::models {
namespace {

DecoderConfig read_huggingface_llama(const ModelSource& source, const DescribeOptions& options) {
  ConfigReader reader = huggingface_reader(source);
  DecoderConfig config;
  config.options = options;
  read_huggingface_dimensions(reader, config);
  config.norm_eps = reader.number("rms_norm_eps");
  config.activation = read_activation(reader, "hidden_act");
  config.attention = {{{}, 0, read_huggingface_rope(reader, config)}};
  config.attention_bias = reader.boolean("attention_bias", false);
  config.output_bias = config.attention_bias;
  config.mlp_bias = reader.boolean("mlp_bias", false);
  config.tied = reader.boolean("tie_word_embeddings", false);
  reader.finish();
  use_huggingface_names(source, config);
  return config;
}

DecoderConfig read_gguf_llama(const ModelSource& source, const DescribeOptions& options) {
  GgufReader reader(source, "llama");
  DecoderConfig config;
  config.options = options;
  read_gguf_dimensions(reader, config);
  config.norm_eps = reader.number("attention.layer_norm_rms_epsilon");
  config.activation = "silu";
  config.rope_style = RopeStyle::interleaved;                             // converters permute q and k for it
  const std::uint64_t window = reader.count("attention.sliding_window");  // Mistral's files are of this architecture
  config.attention = {{{}, window, read_gguf_rope(reader, config)}};
  reader.harmless({"expert_count", "expert_used_count"});  // 0: describe_llama has looked
  reader.finish();
  return config;
}

ModelDescription describe_llama(const ModelSource& source, const DescribeOptions& options) {
  if (is_gguf(source) && GgufReader(source, "llama").count("expert_count") > 0)
    return describe_mixtral(source, options);
  const DecoderConfig config =
      is_gguf(source) ? read_gguf_llama(source, options) : read_huggingface_llama(source, options);
  return describe_pre_norm_decoder(source, config, "llama");
}

}  // namespace

Family llama_family() {
  return {"llama", {"llama"}, {"llama"}, describe_llama};
}

}  // namespace candor::models
