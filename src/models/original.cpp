#include "models/original.h"

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace candor::models {
namespace {

/// A preset of the original and the family that computes the same.
struct Preset {
  std::string_view id, model_type;
  bool gemma = false;  ///< norms stored less one, scaled embeddings, a query scale of its own
  bool qk_norm = false;
  bool windows = false;
};

constexpr std::array kPresets = std::to_array<Preset>({{"gemma2", "gemma2", true, false, true},
                                                       {"gemma3", "gemma3_text", true, true, true},
                                                       {"functiongemma", "gemma3_text", true, true, true},
                                                       {"llama3", "llama", false, false, false},
                                                       {"qwen3", "qwen3", false, true, false}});

class Description {
 public:
  explicit Description(const ModelSource& source)
      : label_((source.path() / "manifest.json").string()), manifest_(source.manifest()), preset_(find_preset()) {}

  Json configuration() {
    config_["model_type"] = preset_.model_type;
    put_sizes();
    put_norms_and_activation();
    put_attention();
    put_rope();
    put_output();
    config_["eos_token_id"] = field("eos_token_id");
    return std::move(config_);
  }

 private:
  [[nodiscard]] const Preset& find_preset() const {
    const Json& id = field("inference.presetId");
    std::vector<std::string_view> known;
    for (const Preset& preset : kPresets) {
      if (id == preset.id) return preset;
      known.push_back(preset.id);
    }
    fail(ErrorCode::unsupported, "{}: inference.presetId {} is no preset that a family here computes; known are {}",
         label_, printable(to_js_json(id)), fmt::join(known, ", "));
  }

  /// The value at a path of keys joined by dots; it must be there, null included.
  [[nodiscard]] const Json& field(std::string_view path) const {
    const Json* value = &manifest_;
    for (std::string_view rest = path; !rest.empty();) {
      const auto dot = rest.find('.');
      const std::string key(rest.substr(0, dot));
      if (!value->is_object() || !value->contains(key)) fail(ErrorCode::format, "{}: {} is missing", label_, path);
      value = &(*value)[key];
      rest = dot == std::string_view::npos ? "" : rest.substr(dot + 1);
    }
    return *value;
  }

  [[nodiscard]] double number(std::string_view path) const {
    const Json& value = field(path);
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      fail(ErrorCode::format, "{}: {} must be a number; got {}", label_, path, printable(to_js_json(value)));
    return value.get<double>();
  }

  /// Refuses a setting that the family does not have.
  void require(std::string_view path, const Json& wanted) const {
    if (const Json& value = field(path); value != wanted)
      fail(ErrorCode::unsupported, "{}: {} is {}; of preset {} only {} is computed here", label_, path,
           printable(to_js_json(value)), preset_.id, to_js_json(wanted));
  }

  void copy(const char* key, std::string_view path) { config_[key] = field(path); }

  void put_sizes() {
    constexpr std::array<std::pair<const char*, const char*>, 8> kSizes{{{"hidden_size", "hiddenSize"},
                                                                         {"intermediate_size", "intermediateSize"},
                                                                         {"num_hidden_layers", "numLayers"},
                                                                         {"num_attention_heads", "numAttentionHeads"},
                                                                         {"num_key_value_heads", "numKeyValueHeads"},
                                                                         {"head_dim", "headDim"},
                                                                         {"vocab_size", "vocabSize"},
                                                                         {"max_position_embeddings", "maxSeqLen"}}};
    for (const auto& [key, name] : kSizes) copy(key, std::string("architecture.") + name);
    if (!field("moeConfig").is_null())
      fail(ErrorCode::unsupported, "{}: moeConfig is set; original artifacts with experts are not read", label_);
  }

  void put_norms_and_activation() {
    copy("rms_norm_eps", "inference.normalization.rmsNormEps");
    require("inference.normalization.rmsNormWeightOffset", preset_.gemma);
    require("inference.ffn.gatedActivation", true);
    require("inference.ffn.swigluLimit", nullptr);
    const std::string activation = field("inference.ffn.activation") == "gelu" ? "gelu_pytorch_tanh" : "silu";
    if (preset_.gemma) {
      config_["hidden_activation"] = activation;
    } else {
      config_["hidden_act"] = activation;
    }
  }

  void put_attention() {
    require("inference.attention.queryKeyNorm", preset_.qk_norm);
    require("inference.attention.causal", true);
    if (field("inference.attention").contains("attentionOutputGate"))
      require("inference.attention.attentionOutputGate", false);
    copy("attention_bias", "inference.attention.attentionBias");
    if (preset_.gemma) {
      copy("query_pre_attn_scalar", "inference.attention.queryPreAttnScalar");
      copy("attn_logit_softcapping", "inference.attention.attnLogitSoftcapping");
    } else {
      require("inference.attention.queryPreAttnScalar", field("architecture.headDim"));
      require("inference.attention.attnLogitSoftcapping", nullptr);
    }
    if (!preset_.windows) {
      require("inference.attention.slidingWindow", nullptr);
      return;
    }
    copy("sliding_window", "inference.attention.slidingWindow");
    config_["layer_types"] = layer_types();
  }

  /// One of full_attention and sliding_attention a layer.
  [[nodiscard]] Json layer_types() const {
    const Json& type = field("inference.layerPattern.type");
    const auto layers = static_cast<std::int64_t>(number("architecture.numLayers"));
    const auto make = [&](auto is_full) {
      Json types = Json::array();
      for (std::int64_t layer = 0; layer < layers; ++layer)
        types.push_back(is_full(layer) ? "full_attention" : "sliding_attention");
      return types;
    };
    if (type == "custom") return field("inference.layerPattern.layerTypes");
    if (type == "uniform") {
      const bool full = field("inference.attention.slidingWindow").is_null();
      return make([full](std::int64_t) { return full; });
    }
    if (type == "alternating") {
      const bool even = field("inference.layerPattern.globalPattern") == "even";
      return make([even](std::int64_t layer) { return (layer % 2 == 0) == even; });
    }
    if (type != "every_n")
      fail(ErrorCode::unsupported, "{}: inference.layerPattern.type {} is unknown", label_,
           printable(to_js_json(type)));
    const auto period = static_cast<std::int64_t>(number("inference.layerPattern.period"));
    const Json& stated = field("inference.layerPattern.offset");
    const auto offset = stated.is_null() ? 0 : static_cast<std::int64_t>(number("inference.layerPattern.offset"));
    if (period < 1) fail(ErrorCode::format, "{}: inference.layerPattern.period is {}", label_, period);
    return make([=](std::int64_t layer) { return (layer - offset) % period == 0; });
  }

  void put_rope() {
    copy("rope_theta", "inference.rope.ropeTheta");
    if (preset_.model_type == "gemma3_text") {
      const Json& local = field("inference.rope.ropeLocalTheta");
      config_["rope_local_base_freq"] = local.is_null() ? field("inference.rope.ropeTheta") : local;
    } else {
      require("inference.rope.ropeLocalTheta", nullptr);
    }
    const Json& type = field("inference.rope.ropeScalingType");
    if (type.is_null() || type == "default") return;
    Json scaling{{"rope_type", type}, {"factor", field("inference.rope.ropeScalingFactor")}};
    if (type == "yarn") {
      scaling["beta_fast"] = field("inference.rope.yarnBetaFast");
      scaling["beta_slow"] = field("inference.rope.yarnBetaSlow");
      scaling["original_max_position_embeddings"] = field("inference.rope.yarnOriginalMaxPos");
    } else if (type != "linear") {
      fail(ErrorCode::unsupported, "{}: inference.rope.ropeScalingType {} needs parameters that the manifest lacks",
           label_, printable(to_js_json(type)));
    }
    config_["rope_scaling"] = std::move(scaling);
  }

  void put_output() {
    copy("tie_word_embeddings", "inference.output.tieWordEmbeddings");
    require("inference.output.scaleEmbeddings", preset_.gemma);
    require("inference.output.embeddingTranspose", false);
    if (preset_.gemma) {
      copy("final_logit_softcapping", "inference.output.finalLogitSoftcapping");
    } else {
      require("inference.output.finalLogitSoftcapping", nullptr);
    }
  }

  std::string label_;
  const Json& manifest_;
  const Preset& preset_;
  Json config_ = Json::object();
};

}  // namespace

bool is_original_artifact(const ModelSource& source) {
  return source.format() == SourceFormat::artifact && source.config().is_null() && !source.gguf();
}

Json original_configuration(const ModelSource& source) {
  return Description(source).configuration();
}

std::optional<std::string> original_tokenizer_config(const ModelSource& source) {
  const Json& inference = source.manifest().at("inference");
  const bool gemma = inference.contains("presetId") && inference["presetId"].is_string() &&
                     inference["presetId"].get<std::string>().find("gemma") != std::string::npos;
  if (!gemma) return std::nullopt;
  return Json{{"bos_token", "<bos>"}, {"add_bos_token", true}}.dump();
}

}  // namespace candor::models
