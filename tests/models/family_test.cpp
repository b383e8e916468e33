// What families refuse, by name, and that the older and the newer form of a configuration mean the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "models/description.h"
#include "models/model_folder.h"

namespace candor::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::filesystem::path kGoldens = std::filesystem::path(CANDOR_SHARED_DIR) / "goldens/hf";

#define SKIP_WITHOUT_GOLDENS() \
  if (!std::filesystem::exists(kGoldens)) GTEST_SKIP() << "no reference data at " << kGoldens

ModelDescription describe_folder(ModelFolder& folder) {
  return describe(ModelSource::open(folder.write()));
}

std::string refusal(const char* model, const std::function<void(ModelFolder&)>& change) {
  ModelFolder folder(kGoldens / model);
  change(folder);
  try {
    (void)describe_folder(folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

/// The steps of a description, written out.
std::string steps_of(const ModelDescription& description) {
  Json out = Json::array();
  for (const StepDraft& step : description.steps)
    out.push_back({step.section, step.op, step.operation, step.src, step.dst, step.inputs, step.weights, step.constants,
                   step.layers});
  return out.dump();
}

void expect_same_meaning(const char* model, const std::function<void(Json&)>& rewrite) {
  ModelFolder newer(kGoldens / model);
  ModelFolder older(kGoldens / model);
  rewrite(older.config);
  const std::string wanted = steps_of(describe_folder(newer));
  EXPECT_EQ(steps_of(describe_folder(older)), wanted) << model;
}

TEST(Families, RefuseWhatTheyDoNotKnowByName) {
  SKIP_WITHOUT_GOLDENS();
  EXPECT_THAT(refusal("llama", [](ModelFolder& f) { f.config["rope_parameters"]["rope_type"] = "dynamic"; }),
              AllOf(HasSubstr("\"dynamic\" is unknown"), HasSubstr("linear, llama3, longrope, yarn")));
  EXPECT_THAT(refusal("llama", [](ModelFolder& f) { f.config["hidden_act"] = "relu2"; }),
              AllOf(HasSubstr("hidden_act \"relu2\" is unknown"), HasSubstr("silu")));
  EXPECT_THAT(refusal("qwen2", [](ModelFolder& f) { f.config["attention_sink"] = 4; }),
              HasSubstr("unknown key attention_sink = 4"));
  EXPECT_THAT(refusal("llama", [](ModelFolder& f) { f.config["model_type"] = "mamba"; }),
              AllOf(HasSubstr("\"mamba\" is not a family"), HasSubstr("qwen3_moe")));
  EXPECT_THAT(refusal("gemma2", [](ModelFolder& f) { f.config["layer_types"][1] = "chunked_attention"; }),
              HasSubstr("layer type \"chunked_attention\" is unknown"));
  EXPECT_THAT(refusal("gpt2", [](ModelFolder& f) { f.config["scale_attn_by_inverse_layer_idx"] = true; }),
              HasSubstr("scale_attn_by_inverse_layer_idx is true"));
  EXPECT_THAT(refusal("mixtral", [](ModelFolder& f) { f.config["num_experts_per_tok"] = 5; }),
              HasSubstr("5 experts a token of 4"));
  EXPECT_THAT(refusal("lfm2", [](ModelFolder& f) { f.config["conv_bias"] = true; }), HasSubstr("conv_bias is true"));
  EXPECT_THAT(refusal("phi3-longrope", [](ModelFolder& f) { f.config["rope_parameters"]["long_factor"].erase(0); }),
              HasSubstr("long_factor must be a list of 8 numbers"));
  EXPECT_THAT(refusal("bert", [](ModelFolder& f) { f.config["position_embedding_type"] = "relative_key"; }),
              HasSubstr("\"relative_key\" is not implemented"));
}

TEST(Families, ListTensorsThatAreMissingOfAnotherShapeOrUnexpected) {
  SKIP_WITHOUT_GOLDENS();
  const char* kProjection = "model.layers.1.mlp.up_proj.weight";
  EXPECT_THAT(refusal("qwen3", [&](ModelFolder& f) { f.tensors.erase(kProjection); }),
              AllOf(HasSubstr("1 missing"), HasSubstr(kProjection)));
  EXPECT_THAT(refusal("qwen3",
                      [&](ModelFolder& f) {
                        auto& shape = f.tensors[kProjection].shape;
                        std::swap(shape[0], shape[1]);
                      }),
              AllOf(HasSubstr("1 of another shape"), HasSubstr("up_proj.weight is [64, 160], expected [160, 64]")));
  EXPECT_THAT(refusal("qwen3",
                      [&](ModelFolder& f) {
                        f.tensors["model.layers.0.extra"] = {{1}, {0}};
                      }),
              AllOf(HasSubstr("1 unexpected"), HasSubstr("model.layers.0.extra")));
  EXPECT_THAT(refusal("mixtral",
                      [](ModelFolder& f) { f.tensors.erase("model.layers.2.block_sparse_moe.experts.3.w2.weight"); }),
              HasSubstr("experts.3.w2.weight"));
  EXPECT_THAT(refusal("lfm2",
                      [](ModelFolder& f) {
                        f.tensors["model.layers.0.conv.conv.weight"].shape = {64, 3, 1};
                      }),
              HasSubstr("conv.conv.weight is [64, 3, 1], expected [64, 1, 3]"));
  EXPECT_THAT(refusal("gpt2",
                      [](ModelFolder& f) {
                        f.tensors["transformer.h.0.attn.c_attn.weight"].shape = {192, 64};
                      }),
              HasSubstr("c_attn.weight is [192, 64], expected [64, 192]"));
}

TEST(Families, OlderConfigurationsMeanTheSame) {
  SKIP_WITHOUT_GOLDENS();
  const auto flat_rope = [](Json& config) {
    Json scaling = config["rope_parameters"];
    config.erase("rope_parameters");
    config["rope_theta"] = scaling["rope_theta"];
    scaling.erase("rope_theta");
    config["rope_scaling"] = scaling["rope_type"] == "default" ? Json() : scaling;
    config["torch_dtype"] = config["dtype"];
    config.erase("dtype");
  };
  for (const char* model : {"llama", "llama3-rope", "mistral-swa", "qwen3", "mixtral"})
    expect_same_meaning(model, flat_rope);
  expect_same_meaning("qwen2", [&](Json& config) {
    flat_rope(config);
    config.erase("layer_types");
    config["use_mrope"] = false;
  });
  expect_same_meaning("qwen3-moe", [&](Json& config) {
    flat_rope(config);
    config["num_experts"] = config["num_local_experts"];
    config.erase("num_local_experts");
  });
  expect_same_meaning("gemma2", [&](Json& config) {
    flat_rope(config);
    config.erase("layer_types");
    config["hidden_act"] = config["hidden_activation"];
    config["cache_implementation"] = "hybrid";
  });
  expect_same_meaning("gemma3", [](Json& config) {
    config.erase("layer_types");
    config.erase("_sliding_window_pattern");
    config.erase("rope_parameters");
    config["rope_theta"] = 1000000.0;
    config["rope_local_base_freq"] = 10000.0;
    config["rope_scaling"] = nullptr;
    config["sliding_window_pattern"] = 6;
  });
  expect_same_meaning("phi3-longrope", [](Json& config) {
    Json scaling = config["rope_parameters"];
    config.erase("rope_parameters");
    config["rope_theta"] = scaling["rope_theta"];
    config["rope_scaling"] = {
        {"type", "longrope"}, {"long_factor", scaling["long_factor"]}, {"short_factor", scaling["short_factor"]}};
  });
  expect_same_meaning("lfm2", [](Json& config) {
    config["rope_theta"] = config["rope_parameters"]["rope_theta"];
    config.erase("rope_parameters");
    config.erase("layer_types");
    config["full_attn_idxs"] = {2};
    config["block_ff_dim"] = config["intermediate_size"];
    config.erase("intermediate_size");
    config["tie_embedding"] = config["tie_word_embeddings"];
    config.erase("tie_word_embeddings");
  });
}

TEST(Families, WindowsOnlyWhereTheConfigurationWantsThem) {
  SKIP_WITHOUT_GOLDENS();
  const auto windows = [](const char* model, const std::function<void(Json&)>& change) {
    ModelFolder folder(kGoldens / model);
    change(folder.config);
    std::vector<std::pair<std::size_t, std::uint64_t>> found;  // layers (0: all), window
    for (const StepDraft& step : describe_folder(folder).steps)
      if (step.operation == "attention")
        found.emplace_back(step.layers.size(), step.constants["window"].get<std::uint64_t>());
    return found;
  };
  using Found = std::vector<std::pair<std::size_t, std::uint64_t>>;
  EXPECT_EQ(windows("mistral-swa", [](Json&) {}), (Found{{0, 8}}));
  EXPECT_EQ(windows("gemma2", [](Json&) {}), (Found{{2, 8}, {1, 0}}));
  EXPECT_EQ(windows("gemma3", [](Json&) {}), (Found{{5, 8}, {1, 0}}));
  EXPECT_EQ(windows("phi3", [](Json&) {}), (Found{{0, 12}}));
  EXPECT_EQ(windows("qwen2", [](Json& config) { config["sliding_window"] = 16; }), (Found{{0, 0}}));
  EXPECT_EQ(windows("qwen2",
                    [](Json& config) {
                      config.erase("layer_types");
                      config["sliding_window"] = 16;
                      config["use_sliding_window"] = true;
                      config["max_window_layers"] = 1;
                    }),
            (Found{{2, 16}, {1, 0}}));
}

TEST(Families, MissingKeysThatDoNotMeanNoneAndContradictionsAreRefused) {
  SKIP_WITHOUT_GOLDENS();
  EXPECT_THAT(refusal("mistral-swa", [](ModelFolder& f) { f.config.erase("sliding_window"); }),
              HasSubstr("sliding_window is missing; null says that there is none"));
  EXPECT_THAT(refusal("gemma2", [](ModelFolder& f) { f.config.erase("attn_logit_softcapping"); }),
              HasSubstr("attn_logit_softcapping is missing"));
  EXPECT_THAT(refusal("llama", [](ModelFolder& f) { f.config["rope_theta"] = 500000; }),
              HasSubstr("rope_theta is 10000, and 500000 beside the RoPE parameters"));
  EXPECT_THAT(refusal("lfm2", [](ModelFolder& f) { f.config["theta"] = 500; }),
              HasSubstr("theta is 500; rope_theta contradicts it"));
  EXPECT_THAT(refusal("lfm2", [](ModelFolder& f) { f.config["conv_dim"] = 32; }), HasSubstr("conv_dim is 32"));
  EXPECT_THAT(refusal("lfm2", [](ModelFolder& f) { f.config["tie_embedding"] = false; }),
              HasSubstr("tie_embedding contradicts it"));
  EXPECT_THAT(refusal("qwen2", [](ModelFolder& f) { f.config["layer_types"][1] = "sliding_attention"; }),
              HasSubstr("use_sliding_window or sliding_window is not set"));
  EXPECT_THAT(refusal("llama", [](ModelFolder& f) { f.config["partial_rotary_factor"] = 0.5; }),
              HasSubstr("partial_rotary_factor is 0.5; heads of this family are rotated whole"));
}

TEST(Families, NumbersThatGiveNoLogitsAreRefused) {
  SKIP_WITHOUT_GOLDENS();
  EXPECT_THAT(refusal("llama", [](ModelFolder& f) { f.config["rms_norm_eps"] = -1; }), HasSubstr("rms_norm_eps"));
  EXPECT_THAT(refusal("gpt2", [](ModelFolder& f) { f.config["layer_norm_epsilon"] = -1; }),
              HasSubstr("layer_norm_epsilon"));
  EXPECT_THAT(refusal("gemma2", [](ModelFolder& f) { f.config["final_logit_softcapping"] = -30; }),
              HasSubstr("final_logit_softcapping"));
  EXPECT_THAT(refusal("gemma2", [](ModelFolder& f) { f.config["query_pre_attn_scalar"] = 0; }),
              HasSubstr("query_pre_attn_scalar is 0"));
}

TEST(Families, LongRopeIsChosenByThePositionsThatAPlanHolds) {
  SKIP_WITHOUT_GOLDENS();
  const ModelSource source = ModelSource::open(kGoldens / "phi3-longrope");  // 32 positions extended to 128
  const auto frequencies = [](const ModelDescription& description) {
    for (const StepDraft& step : description.steps)
      if (step.operation == "rope") return step.constants["inverseFrequencies"];
    return Json();
  };
  const ModelDescription all = describe(source);
  const ModelDescription within = describe(source, {.context = 32, .pooling = {}});
  const ModelDescription beyond = describe(source, {.context = 33, .pooling = {}});
  EXPECT_EQ(all.inference["rope"]["longRopeFactors"], "long");
  EXPECT_EQ(within.inference["rope"]["longRopeFactors"], "short");
  EXPECT_EQ(frequencies(beyond), frequencies(all));
  EXPECT_NE(frequencies(within), frequencies(all));
  EXPECT_EQ(all.max_positions, 128u);
  EXPECT_EQ(within.max_positions, 32u);
  EXPECT_EQ(within.architecture["maxSeqLen"], 32);
  EXPECT_FALSE(describe(ModelSource::open(kGoldens / "llama")).inference["rope"].contains("longRopeFactors"));
}

TEST(Families, PoolingThatNoFileStatesMustBeSaid) {
  SKIP_WITHOUT_GOLDENS();
  const ModelSource bare = ModelSource::open(kGoldens / "bert");
  const auto ops = [](const ModelDescription& description) {
    std::string last;
    for (const StepDraft& step : description.steps) last += (last.empty() ? "" : " ") + step.op;
    return last;
  };
  EXPECT_THAT(describe(bare).undecided, HasSubstr("--pooling mean, first or last"));
  EXPECT_THAT(ops(describe(bare)), ::testing::EndsWith("post_ffn_norm"));
  const ModelDescription mean = describe(bare, {.context = 0, .pooling = "mean"});
  EXPECT_EQ(mean.undecided, "");
  EXPECT_THAT(ops(mean), ::testing::EndsWith("post_ffn_norm pool"));
  EXPECT_EQ(mean.steps.back().constants["kind"], "mean");
  EXPECT_THAT(ops(describe(bare, {.context = 0, .pooling = "first,normalize"})), ::testing::EndsWith("pool normalize"));
  const ModelSource decoder = ModelSource::open(kGoldens / "gpt2");
  EXPECT_THAT(ops(describe(decoder)), ::testing::EndsWith("lm_head sample"));
  EXPECT_THAT(ops(describe(decoder, {.context = 0, .pooling = "last"})), ::testing::EndsWith("final_norm pool"));
  for (const char* unknown : {"max", "mean,", "mean,normalise", ",normalize"})
    EXPECT_THROW((void)describe(bare, {.context = 0, .pooling = unknown}), Error) << unknown;
  ModelFolder stated(kGoldens / "bert");
  const auto path = stated.write();
  std::ofstream(path / "modules.json") << R"([{"path": "p", "type": "sentence_transformers.models.Pooling"}])";
  std::filesystem::create_directories(path / "p");
  std::ofstream(path / "p/config.json") << R"({"pooling_mode_cls_token": true})";
  const ModelSource source = ModelSource::open(path);
  EXPECT_THAT(ops(describe(source)), ::testing::EndsWith("post_ffn_norm pool"));
  try {
    (void)describe(source, {.context = 0, .pooling = "mean"});
    FAIL() << "modules.json was overruled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("say how it is pooled (first); leave out --pooling mean"));
  }
}

TEST(Families, ManifestsStateHowRopeIsScaled) {
  SKIP_WITHOUT_GOLDENS();
  const auto scaling = [](const char* model) {
    return describe(ModelSource::open(kGoldens / model)).inference["rope"]["ropeScalingType"];
  };
  EXPECT_EQ(scaling("llama"), Json());
  EXPECT_EQ(scaling("llama3-rope"), "llama3");
  EXPECT_EQ(scaling("phi3-longrope"), "longrope");
  const Json gemma = describe(ModelSource::open(kGoldens / "gemma3")).inference["rope"];
  EXPECT_EQ(gemma["ropeTheta"], 1e6);
  EXPECT_EQ(gemma["ropeLocalTheta"], 1e4);
}

}  // namespace
}  // namespace candor::models
