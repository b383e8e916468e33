// Qwen 3 MoE (Yang et al. 2025, arXiv:2505.09388): Qwen 3 with a mixture of experts in some or all layers.
#include <algorithm>

#include "base/error.h"
#include "models/experts.h"
#include "models/families.h"
#include "models/qwen.h"

namespace candor::models {
namespace {

struct QwenMoe {
  DecoderConfig config;
  ExpertConfig experts;
  std::vector<std::uint32_t> sparse, dense;  ///< layers with experts, and those without
};

/// Layers have experts at every decoder_sparse_step-th, but not those that mlp_only_layers lists.
void read_sparse_layers(ConfigReader& reader, QwenMoe& model) {
  const std::uint64_t step = reader.optional_positive("decoder_sparse_step").value_or(1);
  std::vector<std::uint64_t> excepted;
  if (const Json* list = reader.find("mlp_only_layers")) {
    if (!list->is_array()) fail(ErrorCode::format, "{}: mlp_only_layers must be a list of layers", reader.label());
    for (const Json& layer : *list) {
      if (!layer.is_number_unsigned() || layer.get<std::uint64_t>() >= model.config.layers)
        fail(ErrorCode::format, "{}: mlp_only_layers names layer {}; the model has {}", reader.label(),
             printable(to_js_json(layer)), model.config.layers);
      excepted.push_back(layer.get<std::uint64_t>());
    }
  }
  for (std::uint32_t layer = 0; layer < model.config.layers; ++layer) {
    const bool listed = std::find(excepted.begin(), excepted.end(), layer) != excepted.end();
    (!listed && (layer + 1) % step == 0 ? model.sparse : model.dense).push_back(layer);
  }
}

QwenMoe read_huggingface_qwen_moe(const ModelSource& source, const DescribeOptions& options) {
  ConfigReader reader = huggingface_reader(source);
  QwenMoe model;
  model.config.options = options;
  read_huggingface_qwen(reader, model.config);
  reader.require("use_sliding_window", false, "windows in models with experts are not implemented");
  const auto newer = reader.optional_positive("num_local_experts");
  const auto older = reader.optional_positive("num_experts");
  if (newer && older && *newer != *older)
    fail(ErrorCode::format, "{}: num_local_experts {} differs from num_experts {}", reader.label(), *newer, *older);
  model.experts.count = newer ? *newer : older ? *older : reader.positive("num_experts");
  model.experts.per_token = reader.positive("num_experts_per_tok");
  model.experts.intermediate = reader.positive("moe_intermediate_size");
  model.experts.normalize = reader.boolean("norm_topk_prob", false);
  read_sparse_layers(reader, model);
  reader.harmless({"output_router_logits", "router_aux_loss_coef"});  // training's
  reader.finish();
  use_huggingface_names(source, model.config);
  const std::string mlp = model.config.prefix + "layers.{L}.mlp.";
  model.experts.router = mlp + "gate.weight";
  model.experts.gate_proj = mlp + "experts.{E}.gate_proj.weight";
  model.experts.up_proj = mlp + "experts.{E}.up_proj.weight";
  model.experts.down_proj = mlp + "experts.{E}.down_proj.weight";
  check_experts(reader.label(), model.experts);
  return model;
}

/// In GGUF files the layers without a feed-forward of their own have experts, whose probabilities are normalised.
QwenMoe read_gguf_qwen_moe(const ModelSource& source, const DescribeOptions& options) {
  GgufReader reader(source, "qwen3moe");
  QwenMoe model;
  model.config.options = options;
  read_gguf_qwen(reader, model.config);
  model.experts.count = reader.positive("expert_count");
  model.experts.per_token = reader.positive("expert_used_count");
  model.experts.intermediate = reader.positive("expert_feed_forward_length");
  reader.finish();
  use_gguf_expert_names(model.experts);
  for (std::uint32_t layer = 0; layer < model.config.layers; ++layer) {
    const bool dense = source.find(expand_pattern(model.config.names.gate_proj, layer)) != nullptr;
    (dense ? model.dense : model.sparse).push_back(layer);
  }
  check_experts(reader.label(), model.experts);
  return model;
}

ModelDescription describe_qwen3_moe(const ModelSource& source, const DescribeOptions& options) {
  QwenMoe model = is_gguf(source) ? read_gguf_qwen_moe(source, options) : read_huggingface_qwen_moe(source, options);
  DecoderConfig& config = model.config;
  config.qk_norm = true;
  ModelDescription description = begin_decoder(config, "qwen3_moe");
  description.experts = expert_facts(model.experts);
  StepBuilder steps(description);
  steps.section("preLayer").embed(config.names.embed, config.vocabulary, config.hidden);
  steps.section("layer");
  add_pre_norm_attention(steps, config);
  steps.rmsnorm("post_attn_norm", "state", "normed", config.names.post_attention_norm, config.norm());
  if (!model.dense.empty()) add_gated_feed_forward(steps.section("layer", model.dense), config);
  if (!model.sparse.empty()) add_expert_feed_forward(steps.section("layer", model.sparse), config, model.experts);
  steps.section("layer").residual("ffn_residual", "ffn_out", "state", "state");
  add_decoder_tail(steps, config);
  finish_decoder(source, config, description);
  return description;
}

}  // namespace

Family qwen3_moe_family() {
  return {"qwen3_moe", {"qwen3_moe"}, {"qwen3moe"}, describe_qwen3_moe};
}

}  // namespace candor::models
