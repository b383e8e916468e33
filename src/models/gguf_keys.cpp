#include "models/gguf_keys.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace candor::models {
namespace {

/// The files of Mistral and Mixtral are of the architecture llama. Where a family has two, the second looks both ways.
std::string architecture_of(const ModelDescription& model, bool causal) {
  for (const Family& family : families())
    if (family.name == model.family && !family.gguf_architectures.empty())
      return std::string(causal ? family.gguf_architectures.front() : family.gguf_architectures.back());
  return "llama";
}

TensorInfo tensor_of(std::string name, std::vector<std::uint64_t> shape) {
  TensorInfo tensor;
  tensor.name = std::move(name);
  tensor.shape = std::move(shape);
  tensor.bytes = stored_bytes(tensor.encoding, tensor.shape, tensor.name);
  return tensor;
}

/// Factors that divide the plain frequencies so that a reader gets these, as rope_freqs.weight holds them.
std::vector<float> frequency_divisors(const Json& frequencies, double theta) {
  std::vector<float> divisors;
  const auto rotated = 2.0 * static_cast<double>(frequencies.size());
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const auto plain = static_cast<float>(std::pow(theta, -2.0 * static_cast<double>(i) / rotated));
    const auto wanted = frequencies[i].get<float>();
    const float nearest = plain / wanted;
    // Of the numbers near the quotient, one that gives the frequency to the bit, where there is one.
    float divisor = nearest;
    for (const float other : {std::nextafter(nearest, 0.0f), std::nextafter(nearest, 2 * nearest)})
      if (plain / divisor != wanted && plain / other == wanted) divisor = other;
    divisors.push_back(divisor);
  }
  return divisors;
}

class KeyWriter {
 public:
  KeyWriter(GgufPairs& pairs, const ModelSource& source, const ModelDescription& model)
      : pairs_(pairs), source_(source), model_(model) {
    const StepDraft* attention = find_operation("attention");
    causal_ = !attention || attention->constants["causal"].get<bool>();
    keys_.architecture = architecture_of(model, causal_);
  }

  GgufKeys write() {
    pairs_.set_string("general.architecture", keys_.architecture);
    put_sizes();
    put_norms();
    put_attention();
    if (find_operation("rope")) put_rope();
    if (!model_.experts.is_null()) put_experts();
    if (const StepDraft* step = find_operation("short_conv")) count("shortconv.l_cache", number_of(*step, "taps"));
    if (const StepDraft* step = find_operation("pool"); step && !find_op("score")) put_pooling(*step);
    if (const StepDraft* step = find_op("logit_softcap")) number("final_logit_softcapping", number_of(*step, "cap"));
    list_looked_for();
    return std::move(keys_);
  }

 private:
  [[nodiscard]] std::string key(std::string_view name) const { return fmt::format("{}.{}", keys_.architecture, name); }
  void count(std::string_view name, double value) { pairs_.set_u32(key(name), static_cast<std::uint32_t>(value)); }
  void number(std::string_view name, double value) { pairs_.set_f32(key(name), static_cast<float>(value)); }

  [[nodiscard]] const StepDraft* find_operation(std::string_view operation) const {
    const auto found = std::find_if(model_.steps.begin(), model_.steps.end(),
                                    [&](const StepDraft& step) { return step.operation == operation; });
    return found == model_.steps.end() ? nullptr : &*found;
  }
  [[nodiscard]] const StepDraft* find_op(std::string_view op) const {
    const auto found =
        std::find_if(model_.steps.begin(), model_.steps.end(), [&](const StepDraft& step) { return step.op == op; });
    return found == model_.steps.end() ? nullptr : &*found;
  }
  static double number_of(const StepDraft& step, const char* constant) {
    return step.constants[constant].get<double>();
  }
  [[nodiscard]] double size_of(const char* name) const { return model_.architecture[name].get<double>(); }

  /// The shape that a step's weight has in the source.
  [[nodiscard]] std::vector<std::uint64_t> shape_of(const StepDraft& step) const {
    const std::string name =
        expand_pattern(step.weights.get<std::string>(), step.layers.empty() ? 0 : step.layers.front());
    for (const ExpectedTensor& tensor : model_.tensors)
      if (tensor.name == name) return tensor.shape;
    fail(ErrorCode::internal, "step {} expects no tensor {}", step.op, name);
  }

  void put_sizes() {
    count("block_count", size_of("numLayers"));
    count("context_length", size_of("maxSeqLen"));
    count("embedding_length", size_of("hiddenSize"));
    count("feed_forward_length", size_of("intermediateSize"));
    count("vocab_size", size_of("vocabSize"));
  }

  void put_norms() {
    if (const StepDraft* step = find_operation("rmsnorm"))
      number("attention.layer_norm_rms_epsilon", number_of(*step, "eps"));
    if (const StepDraft* step = find_operation("layernorm"))
      number("attention.layer_norm_epsilon", number_of(*step, "eps"));
  }

  void put_attention() {
    std::vector<std::int32_t> kv_heads(model_.layers, 0);  // 0: a layer that does not attend
    double window = 0;
    const StepDraft* attention = nullptr;
    for (const StepDraft& step : model_.steps) {
      if (step.operation != "attention") continue;
      attention = &step;
      window = std::max(window, number_of(step, "window"));
      const auto heads = static_cast<std::int32_t>(number_of(step, "kvHeads"));
      if (step.layers.empty()) std::fill(kv_heads.begin(), kv_heads.end(), heads);
      for (const std::uint32_t layer : step.layers) kv_heads[layer] = heads;
    }
    if (!attention) return;
    count("attention.head_count", number_of(*attention, "heads"));
    if (std::count(kv_heads.begin(), kv_heads.end(), kv_heads.front()) == static_cast<long>(kv_heads.size())) {
      count("attention.head_count_kv", kv_heads.front());
    } else {
      pairs_.set_i32s(key("attention.head_count_kv"), kv_heads);
    }
    const double head_dim = number_of(*attention, "headDim");
    count("attention.key_length", head_dim);
    count("attention.value_length", head_dim);
    // Of a window that looks both ways a step has one side, with the token itself.
    if (window != 0) count("attention.sliding_window", causal_ ? window : 2 * (window - 1));
    if (!causal_) pairs_.set_boolean(key("attention.causal"), false);
    if (model_.family == "gemma3") put_window_pattern();
    if (number_of(*attention, "softcap") != 0) number("attn_logit_softcapping", number_of(*attention, "softcap"));
    const double scale = number_of(*attention, "scale");
    if (static_cast<float>(scale) != static_cast<float>(1 / std::sqrt(head_dim))) number("attention.scale", scale);
  }

  /// Which layers have a window, where it is not every layer but each sixth, as readers of Gemma 3 take it to be.
  void put_window_pattern() {
    constexpr std::size_t kUsualPeriod = 6;
    std::vector<bool> windowed(model_.layers, false);
    for (const StepDraft& step : model_.steps) {
      if (step.operation != "attention" || number_of(step, "window") == 0) continue;
      if (step.layers.empty()) windowed.assign(model_.layers, true);
      for (const std::uint32_t layer : step.layers) windowed[layer] = true;
    }
    const auto has_period = [&](std::size_t period) {
      for (std::size_t layer = 0; layer < windowed.size(); ++layer)
        if (windowed[layer] != ((layer + 1) % period != 0)) return false;
      return true;
    };
    if (has_period(kUsualPeriod)) return;
    for (std::size_t period = 1; period <= windowed.size() + 1; ++period)
      if (has_period(period)) return count("attention.sliding_window_pattern", static_cast<double>(period));
    pairs_.set_booleans(key("attention.sliding_window_pattern"), windowed);
  }

  /// The frequencies of the layers that see everything, or else of the first sort.
  [[nodiscard]] const StepDraft& global_rope() const {
    const StepDraft* rope = nullptr;
    for (const StepDraft& step : model_.steps) {
      if (step.operation == "rope") rope = &step;
      if (step.operation == "attention" && rope && number_of(step, "window") == 0) return *rope;
    }
    return *find_operation("rope");
  }

  void put_rope() {
    const Json& facts = model_.inference["rope"];
    const StepDraft& rope = global_rope();
    const Json& frequencies = rope.constants["inverseFrequencies"];
    const double theta = facts["ropeTheta"].get<double>();
    count("rope.dimension_count", 2.0 * static_cast<double>(frequencies.size()));
    number("rope.freq_base", theta);
    if (!facts["ropeLocalTheta"].is_null()) number("rope.freq_base_swa", facts["ropeLocalTheta"].get<double>());
    if (facts["ropeScalingType"].is_null()) return;
    const auto type = facts["ropeScalingType"].get<std::string>();
    if (type == "llama3") {
      keys_.added.push_back({"rope_freqs.weight", frequency_divisors(frequencies, theta)});
    } else if (type == "longrope") {
      put_long_rope(rope);
    } else if (type == "linear" || type == "yarn") {
      pairs_.set_string(key("rope.scaling.type"), type);
      number("rope.scaling.factor", facts["ropeScalingFactor"].get<double>());
      const auto put = [&](const char* fact, std::string_view name, bool whole) {
        if (facts[fact].is_null()) return;
        const auto value = facts[fact].get<double>();
        whole ? count(name, value) : number(name, value);
      };
      put("yarnOriginalMaxPos", "rope.scaling.original_context_length", true);
      put("yarnBetaFast", "rope.scaling.yarn_beta_fast", false);
      put("yarnBetaSlow", "rope.scaling.yarn_beta_slow", false);
      // Readers derive YaRN's magnitude from the factor and multiply it by this.
      const double factor = facts["ropeScalingFactor"].get<double>();
      const double usual = type == "yarn" && factor > 1 ? 0.1 * std::log(factor) + 1 : 1;
      const double magnitude = number_of(rope, "attentionScale") / usual;
      if (static_cast<float>(magnitude) != 1) number("rope.scaling.attn_factor", magnitude);
    } else {
      fail(ErrorCode::unsupported, "{}: RoPE scaling \"{}\" has no form in GGUF here; convert to an artifact",
           source_.path().string(), type);
    }
  }

  /// Factors for short and for long contexts, which the configuration has and the steps no longer do.
  void put_long_rope(const StepDraft& rope) {
    const Json& config = source_.config();
    const char* place = config.contains("rope_parameters") ? "rope_parameters" : "rope_scaling";
    const Json& scaling = config.at(place);
    for (const char* kind : {"long", "short"})
      keys_.added.push_back({fmt::format("rope_factors_{}.weight", kind),
                             scaling.at(fmt::format("{}_factor", kind)).get<std::vector<float>>()});
    constexpr const char* kOriginal = "original_max_position_embeddings";
    const Json& holder = scaling.contains(kOriginal) ? scaling : config;
    count("rope.scaling.original_context_length", holder.at(kOriginal).get<double>());
    number("rope.scaling.attn_factor", number_of(rope, "attentionScale"));
  }

  void put_experts() {
    count("expert_count", model_.experts["numExperts"].get<double>());
    count("expert_used_count", model_.experts["numExpertsPerToken"].get<double>());
    // Architectures whose experts may be of another width than their dense layers.
    if (keys_.architecture == "qwen3moe")
      count("expert_feed_forward_length", static_cast<double>(shape_of(*find_op("expert_gate_proj")).at(0)));
  }

  void put_pooling(const StepDraft& pool) {
    constexpr std::array<std::pair<std::string_view, std::uint32_t>, 3> kKinds{
        {{"mean", 1}, {"first", 2}, {"last", 3}}};
    for (const auto& [kind, value] : kKinds)
      if (pool.constants["kind"] == kind) count("pooling_type", value);
  }

  void list_looked_for() {
    const auto hidden = static_cast<std::uint64_t>(size_of("hiddenSize"));
    const StepDraft* embed = find_op("embed");
    const StepDraft* head = find_op("lm_head");
    keys_.looked_for.push_back(tensor_of("token_embd.weight", {model_.vocabulary, hidden}));
    if (head && head->weights != embed->weights)
      keys_.looked_for.push_back(tensor_of("output.weight", {model_.vocabulary, hidden}));
    if (const StepDraft* types = find_op("embed_types")) {
      keys_.looked_for.push_back(tensor_of("token_types.weight", shape_of(*types)));
      pairs_.set_u32("tokenizer.ggml.token_type_count", static_cast<std::uint32_t>(shape_of(*types).at(0)));
    }
    std::size_t dense = 2;  // what llama.cpp calls the first linear layer after pooling
    for (const StepDraft& step : model_.steps) {
      if (step.op != "dense") continue;
      const std::vector<std::uint64_t> shape = shape_of(step);
      const std::string name = fmt::format("dense_{}", dense++);
      keys_.looked_for.push_back(tensor_of(name + ".weight", shape));
      count(name + "_feat_in", static_cast<double>(shape.at(1)));
      count(name + "_feat_out", static_cast<double>(shape.at(0)));
    }
    if (const StepDraft* score = find_op("score"))
      keys_.looked_for.push_back(tensor_of("cls.output.weight", shape_of(*score)));
    // What llama.cpp calls the final norm of LFM2.
    if (keys_.architecture == "lfm2") keys_.looked_for.push_back(tensor_of("token_embd_norm.weight", {hidden}));
  }

  GgufPairs& pairs_;
  const ModelSource& source_;
  const ModelDescription& model_;
  GgufKeys keys_;
  bool causal_ = true;
};

}  // namespace

GgufKeys put_gguf_keys(GgufPairs& pairs, const ModelSource& source, const ModelDescription& model) {
  return KeyWriter(pairs, source, model).write();
}

}  // namespace candor::models
