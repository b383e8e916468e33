#include "models/llama.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "models/config_reader.h"
#include "models/decoder.h"
#include "models/gguf_config.h"

namespace candor::models {
namespace {

DecoderConfig read_huggingface(const ModelSource& source) {
  ConfigReader reader(source.config(), (source.path() / "config.json").string());
  mark_huggingface_harmless(reader);
  DecoderConfig config;
  read_huggingface_dimensions(reader, config);
  config.norm_eps = reader.number("rms_norm_eps");
  config.activation = read_activation(reader, "hidden_act");
  config.rope_style = RopeStyle::half;
  config.rope = read_huggingface_rope(reader, config);
  config.attention_bias = reader.boolean("attention_bias", false);
  config.output_bias = config.attention_bias;
  config.mlp_bias = reader.boolean("mlp_bias", false);
  config.tied = reader.boolean("tie_word_embeddings", false);
  reader.finish();
  config.names = huggingface_decoder_names();
  return config;
}

DecoderConfig read_gguf(const ModelSource& source) {
  DecoderConfig config = read_gguf_dimensions(source, "llama");
  config.activation = "silu";
  config.rope_style = RopeStyle::interleaved;  // converters permute q and k for it
  config.names = gguf_decoder_names();
  config.tied = source.find(config.names.lm_head) == nullptr;
  return config;
}

ModelDescription describe_llama(const ModelSource& source) {
  const DecoderConfig config = source.format() == SourceFormat::gguf ? read_gguf(source) : read_huggingface(source);
  ModelDescription description = begin_decoder(config, "llama");
  StepBuilder steps(description);
  const NormShape norm{config.norm_eps, config.hidden, 0};
  const DecoderNames& names = config.names;

  steps.section("preLayer").embed(names.embed, config.vocabulary, config.hidden);
  steps.section("layer");
  steps.rmsnorm("input_norm", "state", "normed", names.input_norm, norm);
  add_attention_block(steps, config);
  steps.residual("attn_residual", "attn_out", "state", "state");
  steps.rmsnorm("post_attn_norm", "state", "normed", names.post_attention_norm, norm);
  add_gated_feed_forward(steps, config);
  steps.residual("ffn_residual", "ffn_out", "state", "state");
  add_decoder_tail(steps, config, norm);
  finish_decoder(source, config, description);
  return description;
}

}  // namespace

Family llama_family() {
  return {"llama", {"llama"}, {"llama"}, describe_llama};
}

}  // namespace candor::models
