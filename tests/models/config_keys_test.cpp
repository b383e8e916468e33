// No key of a configuration is overlooked: each that changes what a model computes, in this family or in another,
// either changes the description or is refused by its name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "models/description.h"
#include "models/model_folder.h"

namespace candor::models {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kReferences = std::filesystem::path(CANDOR_SHARED_DIR) / "goldens/hf";

/// Everything a plan is made of, or the refusal.
std::string outcome(const ModelFolder& folder, const std::filesystem::path& path) {
  std::ofstream(path / "config.json") << folder.config.dump();
  try {
    const ModelDescription description = describe(ModelSource::open(path));
    Json steps = Json::array();
    for (const StepDraft& step : description.steps)
      steps.push_back({step.section, step.op, step.operation, step.src, step.dst, step.inputs, step.weights,
                       step.constants, step.layers});
    return steps.dump() + description.architecture.dump() + description.inference.dump();
  } catch (const Error& error) {
    return std::string("refused: ") + error.what();
  }
}

/// Settings of transformers' decoders, none of them at its usual value.
const std::map<std::string, Json> kSettings{
    {"attention_bias", true},
    {"attention_multiplier", 0.5},
    {"attention_sink", 4},
    {"attn_logit_softcapping", 20.0},
    {"attn_temperature_tuning", true},
    {"clip_qkv", 8.0},
    {"decoder_sparse_step", 2},
    {"embedding_multiplier", 12.0},
    {"final_logit_softcapping", 15.0},
    {"first_k_dense_replace", 1},
    {"head_dim", 8},
    {"hidden_act", "gelu"},
    {"lm_head_bias", true},
    {"logit_scale", 0.0625},
    {"logits_scaling", 8.0},
    {"mlp_bias", true},
    {"n_shared_experts", 1},
    {"no_rope_layers", {1, 0, 1}},
    {"norm_topk_prob", false},
    {"num_experts_per_tok", 1},
    {"num_key_value_heads", 1},
    {"parallel_attn", true},
    {"partial_rotary_factor", 0.5},
    {"qk_layernorm", true},
    {"quantization_config", {{"quant_method", "awq"}}},
    {"query_pre_attn_scalar", 7},
    {"residual_multiplier", 0.22},
    {"rms_norm_eps", 0.001},
    {"rope_interleave", true},
    {"rope_scaling", {{"rope_type", "linear"}, {"factor", 4.0}}},
    {"rope_theta", 1234.0},
    {"routed_scaling_factor", 2.5},
    {"scale_attn_by_inverse_layer_idx", true},
    {"scoring_func", "sigmoid"},
    {"tie_word_embeddings", "flipped"},
    {"use_bidirectional_attention", true},
    {"use_parallel_residual", true},
    {"use_qk_norm", true},
    {"use_sliding_window", true},
};

/// Where a key changes nothing in transformers either.
bool is_without_effect(const std::string& model, const std::string& key) {
  if (key == "hidden_act") return model.starts_with("gemma");                    // hidden_activation decides
  if (key == "use_sliding_window") return model == "qwen2" || model == "qwen3";  // sliding_window is null there
  return key == "tie_word_embeddings" && model == "bert";                        // an encoder has no head
}

class ConfigKeys : public ::testing::TestWithParam<const char*> {};

TEST_P(ConfigKeys, AreUsedOrRefused) {
  if (!std::filesystem::exists(kReferences)) GTEST_SKIP() << "no reference data at " << kReferences;
  ModelFolder folder(kReferences / GetParam());
  const std::filesystem::path path = folder.write();
  const Json original = folder.config;
  const std::string usual = outcome(folder, path);
  ASSERT_FALSE(usual.starts_with("refused")) << usual;
  for (const auto& [key, value] : kSettings) {
    folder.config = original;
    folder.config[key] = key == "tie_word_embeddings" ? Json(!original.value(key, true)) : value;
    if (folder.config[key] == original.value(key, Json())) continue;
    const std::string changed = outcome(folder, path);
    if (is_without_effect(GetParam(), key)) continue;
    EXPECT_NE(changed, usual) << key << " = " << folder.config[key] << " is ignored";
  }
  folder.config = original;
  folder.config["no_such_key"] = nullptr;
  EXPECT_EQ(outcome(folder, path), usual) << "null says nothing";
  folder.config["no_such_key"] = false;
  EXPECT_THAT(outcome(folder, path), HasSubstr("unknown key no_such_key = false"));
}

INSTANTIATE_TEST_SUITE_P(Families, ConfigKeys,
                         ::testing::Values("bert", "gemma2", "gemma3", "gpt2", "lfm2", "llama", "llama3-rope",
                                           "mistral-swa", "mixtral", "phi3", "phi3-longrope", "qwen2", "qwen3",
                                           "qwen3-moe"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace candor::models
