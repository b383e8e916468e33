// What decoder families share: the numbers most configurations have, the usual names of their tensors, and the blocks
// most layers are made of. A family file uses what fits and spells out what is its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/config_reader.h"
#include "models/description.h"
#include "models/rope.h"
#include "models/step_builder.h"

namespace candor::models {

/// Patterns of tensor names; {L} stands for the layer. A bias, where there is one, is the weight's name with ".weight"
/// replaced by ".bias".
struct DecoderNames {
  std::string embed, input_norm, q_proj, k_proj, v_proj, o_proj, post_attention_norm, gate_proj, up_proj, down_proj,
      final_norm, lm_head;
};

[[nodiscard]] DecoderNames huggingface_decoder_names();
[[nodiscard]] DecoderNames gguf_decoder_names();
[[nodiscard]] std::string bias_name(const std::string& weight_name);

struct DecoderConfig {
  std::uint32_t layers = 0;
  std::uint64_t hidden = 0, intermediate = 0, vocabulary = 0, max_positions = 0;
  std::uint64_t heads = 0, kv_heads = 0, head_dim = 0;
  double norm_eps = 0;
  std::string activation;  ///< silu, gelu_tanh, gelu_erf
  double rope_theta = 10000;
  RopeTable rope;
  RopeStyle rope_style = RopeStyle::half;
  bool attention_bias = false;  ///< on q, k and v
  bool output_bias = false;     ///< on the attention's output projection
  bool mlp_bias = false;
  bool tied = false;  ///< lm_head is the embedding
  DecoderNames names;
};

/// hidden_size, num_hidden_layers, heads, head_dim, vocabulary, max_position_embeddings.
void read_huggingface_dimensions(ConfigReader& reader, DecoderConfig& config);
/// rope_theta with rope_scaling, or rope_parameters (the form of transformers 5). Also sets config.rope_theta.
[[nodiscard]] RopeTable read_huggingface_rope(ConfigReader& reader, DecoderConfig& config);
/// The activation under `key` by our name. Throws Error(unsupported) for one that is unknown.
[[nodiscard]] std::string read_activation(ConfigReader& reader, std::string_view key);

/// A description with architecture and facts filled in from the configuration.
[[nodiscard]] ModelDescription begin_decoder(const DecoderConfig& config, std::string family);
/// q, k, v, RoPE, attention and output projection: reads slot "normed", writes "attn_out".
void add_attention_block(StepBuilder& steps, const DecoderConfig& config, std::uint64_t window = 0);
/// gate, up, activation, down: reads slot "normed", writes "ffn_out".
void add_gated_feed_forward(StepBuilder& steps, const DecoderConfig& config);
/// Row selection, final norm, lm_head, sampling.
void add_decoder_tail(StepBuilder& steps, const DecoderConfig& config, const NormShape& final_norm);
/// Stop tokens, and the tensors that some files carry although no step reads them.
void finish_decoder(const ModelSource& source, const DecoderConfig& config, ModelDescription& description);

}  // namespace candor::models
