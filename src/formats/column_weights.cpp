#include "formats/column_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "formats/quant/codec.h"

namespace candor {
namespace {

/// The two norms of a layer in one naming scheme, what reads each, and names of norms whose presence means that the
/// layer is built otherwise.
struct NormNames {
  std::string_view layers;  ///< what a layer's prefix begins with
  std::string_view first, second;
  std::array<std::string_view, 4> first_readers;
  std::array<std::string_view, 3> second_readers;
  std::array<std::string_view, 3> others;
};

constexpr NormNames kSchemes[] = {
    {"model.layers.",
     "input_layernorm.weight",
     "post_attention_layernorm.weight",
     {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.qkv_proj.weight"},
     {"mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.gate_up_proj.weight"},
     {"pre_feedforward_layernorm.weight", "post_feedforward_layernorm.weight", "input_layernorm.bias"}},
    {"blk.",
     "attn_norm.weight",
     "ffn_norm.weight",
     {"attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_qkv.weight"},
     {"ffn_gate.weight", "ffn_up.weight", "ffn_up_exps.weight"},
     {"post_attention_norm.weight", "post_ffw_norm.weight", "attn_norm.bias"}}};

/// "model.layers.3." of a name in that layer; empty for another name.
std::string_view layer_prefix(std::string_view name, std::string_view layers) {
  if (!name.starts_with(layers)) return {};
  const std::size_t dot = name.find('.', layers.size());
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot + 1);
}

/// The norm that this matrix reads; nullptr if it is not known.
const TensorInfo* norm_before(const ModelSource& source, const TensorInfo& matrix) {
  for (const NormNames& scheme : kSchemes) {
    const std::string_view prefix = layer_prefix(matrix.name, scheme.layers);
    if (prefix.empty()) continue;
    const auto in_layer = [&](std::string_view name) { return source.find(std::string(prefix) + std::string(name)); };
    const TensorInfo* first = in_layer(scheme.first);
    const TensorInfo* second = in_layer(scheme.second);
    if (!first || !second || std::any_of(scheme.others.begin(), scheme.others.end(), in_layer)) return nullptr;
    const std::string_view part = std::string_view(matrix.name).substr(prefix.size());
    if (std::find(scheme.first_readers.begin(), scheme.first_readers.end(), part) != scheme.first_readers.end())
      return first;
    if (std::find(scheme.second_readers.begin(), scheme.second_readers.end(), part) != scheme.second_readers.end())
      return second;
  }
  return nullptr;
}

}  // namespace

std::vector<float> column_weights(const ModelSource& source, const TensorInfo& matrix) {
  const TensorInfo* norm = norm_before(source, matrix);
  if (!norm || norm->shape.size() != 1 || matrix.shape.empty() || norm->shape[0] != matrix.shape.back()) return {};
  std::vector<std::byte> stored(norm->bytes);
  source.copy_bytes(*norm, stored);
  std::vector<float> weights(norm->shape[0]);
  dequantize(norm->encoding, stored.data(), weights.data(), weights.size());
  double sum = 0;
  for (float& weight : weights) {
    weight *= weight;
    sum += static_cast<double>(weight);
  }
  if (!std::isfinite(sum) || !(sum > 0)) return {};
  const auto mean = static_cast<float>(sum / static_cast<double>(weights.size()));
  for (float& weight : weights) weight = std::max(weight / mean, 0.01f);
  return weights;
}

}  // namespace candor
