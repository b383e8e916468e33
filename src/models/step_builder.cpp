#include "models/step_builder.h"

#include <algorithm>
#include <utility>

namespace candor::models {

std::string bias_name(const std::string& weight_name) {
  constexpr std::string_view kSuffix = ".weight";
  return weight_name.substr(0, weight_name.size() - kSuffix.size()) + ".bias";
}

StepBuilder& StepBuilder::section(std::string name, std::vector<std::uint32_t> layers) {
  section_ = std::move(name);
  layers_ = std::move(layers);
  return *this;
}

StepDraft& StepBuilder::add(std::string op, std::string operation, std::string src, std::string dst) {
  StepDraft draft;
  draft.section = section_;
  draft.op = std::move(op);
  draft.operation = std::move(operation);
  draft.src = std::move(src);
  draft.dst = std::move(dst);
  draft.layers = layers_;
  return description_.steps.emplace_back(std::move(draft));
}

void StepBuilder::expect(const std::string& pattern, std::vector<std::uint64_t> shape, std::uint64_t experts) {
  const bool by_layer = pattern.find(kLayerPlaceholder) != std::string::npos;
  const bool by_expert = pattern.find(kExpertPlaceholder) != std::string::npos;
  std::vector<std::uint32_t> layers = by_layer ? layers_ : std::vector<std::uint32_t>{0};
  if (layers.empty())
    for (std::uint32_t layer = 0; layer < description_.layers; ++layer) layers.push_back(layer);
  for (const std::uint32_t layer : layers) {
    for (std::uint64_t expert = 0; expert < (by_expert ? experts : 1); ++expert) {
      std::string name = expand_pattern(pattern, layer, expert);
      const auto same = [&](const ExpectedTensor& tensor) { return tensor.name == name; };
      const auto& known = description_.tensors;
      // A tied embedding is read twice; nothing in a layer is.
      if (!by_layer && std::any_of(known.begin(), known.end(), same)) continue;
      description_.tensors.push_back({std::move(name), shape});
    }
  }
}

void StepBuilder::embed(const std::string& weight, std::uint64_t vocabulary, std::uint64_t hidden, double scale) {
  StepDraft& step = add("embed", "gather", "state", "state");
  step.inputs["tokens"] = "$tokens";
  step.weights = weight;
  step.constants["scale"] = scale;
  expect(weight, {vocabulary, hidden});
}

void StepBuilder::positions(std::string dst, const std::string& weight, std::uint64_t positions, std::uint64_t hidden) {
  StepDraft& step = add("embed_positions", "gather", "state", std::move(dst));
  step.inputs["tokens"] = "$positions";
  step.weights = weight;
  step.constants["scale"] = 1;
  expect(weight, {positions, hidden});
}

void StepBuilder::token_types(std::string dst, const std::string& weight, std::uint64_t types, std::uint64_t hidden) {
  StepDraft& step = add("embed_types", "gather", "state", std::move(dst));
  step.inputs["tokens"] = "$types";
  step.weights = weight;
  step.constants["scale"] = 1;
  expect(weight, {types, hidden});
}

void StepBuilder::layernorm(std::string op, std::string src, std::string dst, const std::string& weight,
                            std::uint64_t width, double eps) {
  StepDraft& step = add(std::move(op), "layernorm", std::move(src), std::move(dst));
  step.weights = {{"weight", weight}, {"bias", bias_name(weight)}};
  step.constants["eps"] = eps;
  expect(weight, {width});
  expect(bias_name(weight), {width});
}

void StepBuilder::rmsnorm(std::string op, std::string src, std::string dst, const std::string& weight,
                          const NormShape& shape) {
  StepDraft& step = add(std::move(op), "rmsnorm", std::move(src), std::move(dst));
  step.weights = weight;
  step.constants["eps"] = shape.eps;
  step.constants["width"] = shape.width;
  step.constants["weightOffset"] = shape.weight_offset;
  expect(weight, {shape.width});
}

void StepBuilder::linear(std::string op, std::string src, std::string dst, const std::string& weight, std::uint64_t out,
                         std::uint64_t in) {
  add(std::move(op), "matmul", std::move(src), std::move(dst)).weights = weight;
  expect(weight, {out, in});
}

void StepBuilder::linear_transposed(std::string op, std::string src, std::string dst, const std::string& weight,
                                    std::uint64_t out, std::uint64_t in) {
  add(std::move(op), "matmul_transposed", std::move(src), std::move(dst)).weights = weight;
  expect(weight, {in, out});
}

void StepBuilder::bias(std::string op, const std::string& slot, const std::string& weight, std::uint64_t length) {
  add(std::move(op), "bias_add", slot, slot).weights = weight;
  expect(weight, {length});
}

void StepBuilder::rope(std::string op, const std::string& slot, const RopeTable& table, std::uint64_t head_dim,
                       RopeStyle style) {
  StepDraft& step = add(std::move(op), "rope", slot, slot);
  step.inputs["positions"] = "$positions";
  step.constants["headDim"] = head_dim;
  step.constants["style"] = style == RopeStyle::half ? "half" : "interleaved";
  step.constants["inverseFrequencies"] = table.inverse_frequencies;
  step.constants["attentionScale"] = table.attention_scale;
}

void StepBuilder::attention(std::string q, std::string k, std::string v, std::string dst, const AttentionShape& shape) {
  StepDraft& step = add("attention", "attention", std::move(q), std::move(dst));
  step.inputs["k"] = std::move(k);
  step.inputs["v"] = std::move(v);
  step.constants["heads"] = shape.heads;
  step.constants["kvHeads"] = shape.kv_heads;
  step.constants["headDim"] = shape.head_dim;
  step.constants["scale"] = shape.scale;
  step.constants["window"] = shape.window;
  step.constants["softcap"] = shape.softcap;
  step.constants["causal"] = shape.causal;
}

void StepBuilder::gated_activation(std::string gate, std::string up, std::string dst, const std::string& activation) {
  StepDraft& step = add("activation", "gated_activation", std::move(gate), std::move(dst));
  step.inputs["up"] = std::move(up);
  step.constants["activation"] = activation;
}

void StepBuilder::activation(std::string src, std::string dst, const std::string& function) {
  add("activation", "activation", std::move(src), std::move(dst)).constants["activation"] = function;
}

void StepBuilder::slice(std::string op, std::string src, std::string dst, std::uint64_t offset, std::uint64_t width) {
  StepDraft& step = add(std::move(op), "slice_columns", std::move(src), std::move(dst));
  step.constants["offset"] = offset;
  step.constants["width"] = width;
}

void StepBuilder::softcap(std::string op, const std::string& slot, double cap) {
  add(std::move(op), "softcap", slot, slot).constants["cap"] = cap;
}

void StepBuilder::scale(std::string op, const std::string& slot, double factor) {
  add(std::move(op), "scale", slot, slot).constants["scale"] = factor;
}

void StepBuilder::multiply(std::string op, std::string src, std::string other, std::string dst) {
  add(std::move(op), "multiply", std::move(src), std::move(dst)).inputs["other"] = std::move(other);
}

void StepBuilder::softmax(std::string op, std::string src, std::string dst) {
  add(std::move(op), "softmax", std::move(src), std::move(dst));
}

void StepBuilder::top_k(std::string op, std::string src, std::string dst, std::uint64_t count) {
  add(std::move(op), "top_k", std::move(src), std::move(dst)).constants["count"] = count;
}

void StepBuilder::routing_weights(std::string op, std::string src, std::string experts, std::string dst,
                                  bool normalize) {
  StepDraft& step = add(std::move(op), "routing_weights", std::move(src), std::move(dst));
  step.inputs["experts"] = std::move(experts);
  step.constants["normalize"] = normalize;
  step.constants["scale"] = 1;
}

void StepBuilder::expert_linear(std::string op, std::string src, std::string experts, std::string dst,
                                const std::string& weight, const ExpertShape& shape, std::uint64_t out,
                                std::uint64_t in) {
  StepDraft& step = add(std::move(op), "expert_matmul", std::move(src), std::move(dst));
  step.inputs["experts"] = std::move(experts);
  step.weights = weight;
  step.constants["experts"] = shape.experts;
  step.constants["perToken"] = shape.per_token;
  step.constants["inputGroups"] = shape.groups;
  if (weight.find(kExpertPlaceholder) == std::string::npos) {
    expect(weight, {shape.experts, out, in});
  } else {
    expect(weight, {out, in}, shape.experts);
  }
}

void StepBuilder::combine_experts(std::string op, std::string src, std::string weights, std::string dst) {
  add(std::move(op), "combine_experts", std::move(src), std::move(dst)).inputs["weights"] = std::move(weights);
}

void StepBuilder::short_conv(std::string op, std::string src, std::string dst, const std::string& weight,
                             std::vector<std::uint64_t> stored, std::uint64_t channels, std::uint64_t taps) {
  StepDraft& step = add(std::move(op), "short_conv", std::move(src), std::move(dst));
  step.weights = weight;
  step.constants["channels"] = channels;
  step.constants["taps"] = taps;
  expect(weight, std::move(stored));
}

void StepBuilder::residual(std::string op, std::string src, std::string residual, std::string dst) {
  add(std::move(op), "residual_add", std::move(src), std::move(dst)).inputs["residual"] = std::move(residual);
}

void StepBuilder::pool(std::string op, std::string src, std::string dst, const std::string& kind) {
  add(std::move(op), "pool", std::move(src), std::move(dst)).constants["kind"] = kind;
}

void StepBuilder::l2_normalize(std::string op, const std::string& slot, double eps) {
  add(std::move(op), "l2_normalize", slot, slot).constants["eps"] = eps;
}

void StepBuilder::select_last_row() {
  add("select_rows", "row_slice", "state", "state").constants["rows"] = "last";
}

void StepBuilder::sample(const std::string& logits) {
  add("sample", "sample", logits, "token").inputs["sampler"] = "$sampler";
}

}  // namespace candor::models
