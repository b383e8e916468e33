// What decoder families share: the numbers most configurations have, the usual names of their tensors, and the blocks
// most layers are made of. A family file uses what fits and spells out what is its own. Not a goal: one decoder with a
// switch for every family's peculiarity.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/config_reader.h"
#include "models/description.h"
#include "models/gguf_reader.h"
#include "models/pooling.h"
#include "models/rope.h"
#include "models/step_builder.h"

namespace candor::models {

/// Patterns of tensor names; {L} stands for the layer. A bias's name is bias_name of its weight's.
struct DecoderNames {
  std::string embed, input_norm, q_proj, k_proj, v_proj, o_proj, q_norm, k_norm, post_attention_norm, gate_proj,
      up_proj, down_proj, final_norm, lm_head;
};

[[nodiscard]] DecoderNames huggingface_decoder_names(const std::string& prefix = "model.");
[[nodiscard]] DecoderNames gguf_decoder_names();

/// Layers that attend alike.
struct AttentionKind {
  std::vector<std::uint32_t> layers;  ///< empty: all that attend
  std::uint64_t window = 0;           ///< positions seen, the current one included; 0: all
  RopeTable rope;
};

struct DecoderConfig {
  DescribeOptions options;
  std::uint32_t layers = 0;
  std::uint64_t hidden = 0, intermediate = 0, vocabulary = 0, max_positions = 0;
  std::uint64_t heads = 0, kv_heads = 0, head_dim = 0;
  double norm_eps = 0;
  double norm_offset = 0;  ///< added to the weights of RMSNorms: 1 where they are stored less one
  std::string activation;  ///< silu, gelu_tanh, gelu_erf
  RopeStyle rope_style = RopeStyle::half;
  std::vector<AttentionKind> attention;
  double default_theta = 10000;   ///< of Hugging Face configurations that state none
  bool partial_rotation = false;  ///< the family knows partial_rotary_factor
  double query_scale = 0;         ///< factor of the scores; 0: head_dim^-1/2
  double attention_softcap = 0, logit_softcap = 0;
  double embedding_scale = 1;
  bool causal = true;
  bool attention_bias = false;  ///< on q, k and v
  bool output_bias = false;     ///< on the attention's output projection
  bool mlp_bias = false;
  bool qk_norm = false;  ///< RMSNorm of each query and key head before RoPE
  bool tied = false;     ///< lm_head is the embedding
  DecoderNames names;
  std::string prefix = "model.";   ///< of Hugging Face's names: none in checkpoints of the bare model
  std::optional<Pooling> pooling;  ///< an embedding model: pooled rather than sampled

  [[nodiscard]] NormShape norm() const { return {norm_eps, hidden, norm_offset}; }
  [[nodiscard]] NormShape head_norm() const { return {norm_eps, head_dim, norm_offset}; }
  [[nodiscard]] double score_factor() const;
  /// Samples tokens; otherwise the rows of a text become one vector.
  [[nodiscard]] bool generates() const { return causal && !pooling; }
};

/// Whether the source is a GGUF file or an artifact made from one, with that format's names and keys, or has Hugging
/// Face's.
[[nodiscard]] bool is_gguf(const ModelSource& source);
[[nodiscard]] ConfigReader huggingface_reader(const ModelSource& source);

/// A number of layers, held to the limit.
[[nodiscard]] std::uint32_t read_layer_count(ConfigReader& reader, std::string_view key);
/// head_dim and kv_heads where the configuration states neither.
void check_head_split(const std::string& label, DecoderConfig& config);
/// Names and prefix as the folder has them, and pooling if it is an embedding model's.
void use_huggingface_names(const ModelSource& source, DecoderConfig& config);
/// hidden_size, num_hidden_layers, heads, head_dim, vocabulary, max_position_embeddings; intermediate_size unless the
/// family has read it already.
void read_huggingface_dimensions(ConfigReader& reader, DecoderConfig& config);
/// rope_theta with rope_scaling, or rope_parameters (the form of transformers 5); partial_rotary_factor in either.
[[nodiscard]] RopeTable read_huggingface_rope(ConfigReader& reader, const DecoderConfig& config);
/// The parameters of one layer type, where rope_parameters has an object for each. Nothing if it has none.
[[nodiscard]] std::optional<RopeTable> read_huggingface_rope(ConfigReader& reader, const DecoderConfig& config,
                                                             const std::string& layer_type);
/// `layer_types`: one of `known` a layer. Nothing if absent.
[[nodiscard]] std::optional<std::vector<std::string>> read_layer_types(ConfigReader& reader, std::uint32_t layers,
                                                                       std::initializer_list<std::string_view> known);
/// The layers whose type is `type`.
[[nodiscard]] std::vector<std::uint32_t> layers_of(const std::vector<std::string>& types, std::string_view type);
/// Kinds for layers of types sliding_attention and full_attention; one kind for all where only one type occurs.
[[nodiscard]] std::vector<AttentionKind> attention_kinds(const std::vector<std::string>& types, std::uint64_t window,
                                                         const RopeTable& sliding, const RopeTable& full);
/// The activation under `key` by our name. Throws Error(unsupported) for one that is unknown.
[[nodiscard]] std::string read_activation(ConfigReader& reader, std::string_view key);

/// A description with architecture and facts filled in from the configuration.
[[nodiscard]] ModelDescription begin_decoder(const DecoderConfig& config, std::string family);
/// q, k, v and their biases, one projection each: reads slot `src`, writes "q", "k", "v".
void add_qkv_projections(StepBuilder& steps, const DecoderConfig& config, const std::string& src = "normed");
/// Norms of q and k, RoPE, attention and output projection: reads "q", "k", "v", writes "attn_out".
void add_attention(StepBuilder& steps, const DecoderConfig& config);
/// gate, up, activation, down: reads slot `src`, writes "ffn_out".
void add_gated_feed_forward(StepBuilder& steps, const DecoderConfig& config, const std::string& src = "normed");
/// x + attention(norm(x)).
void add_pre_norm_attention(StepBuilder& steps, const DecoderConfig& config);
/// The layer of most decoders: x + attention(norm(x)), then x + feed_forward(norm(x)).
void add_pre_norm_layer(StepBuilder& steps, const DecoderConfig& config);
/// A whole model of such layers: embedding, layers, tail, and finish_decoder().
[[nodiscard]] ModelDescription describe_pre_norm_decoder(const ModelSource& source, const DecoderConfig& config,
                                                         const std::string& family);
/// Row selection, final norm and add_decoder_head().
void add_decoder_tail(StepBuilder& steps, const DecoderConfig& config);
/// The last row, where that is all that goes on.
void add_row_selection(StepBuilder& steps, const DecoderConfig& config);
/// lm_head, soft-cap and sampling, or pooling: reads "normed".
void add_decoder_head(StepBuilder& steps, const DecoderConfig& config);
/// Stop tokens, and the tensors that some files carry although no step reads them.
void finish_decoder(const ModelSource& source, const DecoderConfig& config, ModelDescription& description);

}  // namespace candor::models
