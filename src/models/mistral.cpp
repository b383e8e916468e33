// Mistral (Jiang et al. 2023, arXiv:2310.06825): Llama with a window in every layer. GGUF files of it are of the
// architecture "llama".
#include "models/config_reader.h"
#include "models/decoder.h"
#include "models/families.h"

namespace candor::models {
namespace {

ModelDescription describe_mistral(const ModelSource& source, const DescribeOptions& options) {
  ConfigReader reader = huggingface_reader(source);
  DecoderConfig config;
  config.options = options;
  read_huggingface_dimensions(reader, config);
  config.norm_eps = reader.number("rms_norm_eps");
  config.activation = read_activation(reader, "hidden_act");
  reader.must_state({"sliding_window"});  // without the key it would be 4096
  config.attention = {
      {{}, reader.optional_positive("sliding_window").value_or(0), read_huggingface_rope(reader, config)}};
  config.tied = reader.boolean("tie_word_embeddings", false);
  reader.finish();
  use_huggingface_names(source, config);
  return describe_pre_norm_decoder(source, config, "mistral");
}

}  // namespace

Family mistral_family() {
  return {"mistral", {"mistral"}, {}, describe_mistral};
}

}  // namespace candor::models
