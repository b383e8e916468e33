#include "models/step_builder.h"

#include <algorithm>
#include <utility>

namespace candor::models {

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

void StepBuilder::expect(const std::string& pattern, std::vector<std::uint64_t> shape) {
  constexpr std::string_view kPlaceholder = "{L}";
  const auto at = pattern.find(kPlaceholder);
  if (at == std::string::npos) {  // a tied embedding is read twice
    const auto same = [&](const ExpectedTensor& tensor) { return tensor.name == pattern; };
    if (std::none_of(description_.tensors.begin(), description_.tensors.end(), same))
      description_.tensors.push_back({pattern, std::move(shape)});
    return;
  }
  const auto expand = [&](std::uint32_t layer) {
    std::string name = pattern;
    description_.tensors.push_back({name.replace(at, kPlaceholder.size(), std::to_string(layer)), shape});
  };
  if (layers_.empty()) {
    for (std::uint32_t layer = 0; layer < description_.layers; ++layer) expand(layer);
  } else {
    for (const std::uint32_t layer : layers_) expand(layer);
  }
}

void StepBuilder::embed(const std::string& weight, std::uint64_t vocabulary, std::uint64_t hidden, double scale) {
  StepDraft& step = add("embed", "gather", "state", "state");
  step.inputs["tokens"] = "$tokens";
  step.weights = weight;
  step.constants["scale"] = scale;
  expect(weight, {vocabulary, hidden});
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
  step.constants["causal"] = true;
}

void StepBuilder::gated_activation(std::string gate, std::string up, std::string dst, const std::string& activation) {
  StepDraft& step = add("activation", "gated_activation", std::move(gate), std::move(dst));
  step.inputs["up"] = std::move(up);
  step.constants["activation"] = activation;
}

void StepBuilder::residual(std::string op, std::string src, std::string residual, std::string dst) {
  add(std::move(op), "residual_add", std::move(src), std::move(dst)).inputs["residual"] = std::move(residual);
}

void StepBuilder::select_last_row() {
  add("select_rows", "row_slice", "state", "state").constants["rows"] = "last";
}

void StepBuilder::sample(const std::string& logits) {
  add("sample", "sample", logits, "token").inputs["sampler"] = "$sampler";
}

}  // namespace candor::models
