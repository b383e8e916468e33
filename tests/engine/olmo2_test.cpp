// The family of docs/adding-a-family.md against its definition, written out a second time in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "engine/engine_fixture.h"
#include "models/model_folder.h"

namespace candor {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

constexpr std::uint32_t kLayers = 2, kHidden = 48, kHeads = 4, kKvHeads = 2, kHeadDim = 12, kWidth = 80, kWords = 96;
constexpr double kEps = 1e-6, kTheta = 500000;

void fill_olmo2(ModelFolder& folder) {
  folder.config = {{"model_type", "olmo2"},         {"hidden_size", kHidden},          {"num_hidden_layers", kLayers},
                   {"num_attention_heads", kHeads}, {"num_key_value_heads", kKvHeads}, {"intermediate_size", kWidth},
                   {"vocab_size", kWords},          {"max_position_embeddings", 64},   {"rms_norm_eps", kEps},
                   {"rope_theta", kTheta},          {"rope_scaling", nullptr},         {"hidden_act", "silu"},
                   {"attention_bias", false},       {"tie_word_embeddings", false},    {"torch_dtype", "float32"}};
  std::mt19937_64 random(7);
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape, float mean, float deviation) {
    std::normal_distribution<float> normal(mean, deviation);
    std::uint64_t count = 1;
    for (const std::uint64_t n : shape) count *= n;
    auto& tensor = folder.tensors[name];
    tensor.shape = std::move(shape);
    for (std::uint64_t i = 0; i < count; ++i) tensor.values.push_back(normal(random));
  };
  const auto matrix = [&](const std::string& name, std::uint64_t out, std::uint64_t in) {
    add(name + ".weight", {out, in}, 0, 0.2F);
  };
  const auto norm = [&](const std::string& name, std::uint64_t width) { add(name + ".weight", {width}, 1, 0.3F); };
  matrix("model.embed_tokens", kWords, kHidden);
  matrix("lm_head", kWords, kHidden);
  norm("model.norm", kHidden);
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    matrix(prefix + "self_attn.q_proj", kHeads * kHeadDim, kHidden);
    matrix(prefix + "self_attn.k_proj", kKvHeads * kHeadDim, kHidden);
    matrix(prefix + "self_attn.v_proj", kKvHeads * kHeadDim, kHidden);
    matrix(prefix + "self_attn.o_proj", kHidden, kHeads * kHeadDim);
    norm(prefix + "self_attn.q_norm", kHeads * kHeadDim);
    norm(prefix + "self_attn.k_norm", kKvHeads * kHeadDim);
    norm(prefix + "post_attention_layernorm", kHidden);
    norm(prefix + "post_feedforward_layernorm", kHidden);
    matrix(prefix + "mlp.gate_proj", kWidth, kHidden);
    matrix(prefix + "mlp.up_proj", kWidth, kHidden);
    matrix(prefix + "mlp.down_proj", kHidden, kWidth);
  }
}

class Reference {
 public:
  explicit Reference(const ModelFolder& folder) : folder_(folder) {}

  [[nodiscard]] Rows logits(const std::vector<std::uint32_t>& tokens) const {
    Rows x;
    const auto& words = weight("model.embed_tokens");
    for (const std::uint32_t token : tokens)
      x.emplace_back(words.values.begin() + token * kHidden, words.values.begin() + (token + 1) * kHidden);
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + ".";
      add(x, normed(prefix + "post_attention_layernorm", attention(prefix + "self_attn.", x)));
      add(x, normed(prefix + "post_feedforward_layernorm", feed_forward(prefix + "mlp.", x)));
    }
    return times("lm_head", normed("model.norm", x));
  }

 private:
  [[nodiscard]] const ModelFolder::Tensor& weight(const std::string& name) const {
    return folder_.tensors.at(name + ".weight");
  }
  [[nodiscard]] Rows times(const std::string& name, const Rows& x) const {
    const auto& w = weight(name);
    Rows out(x.size(), Row(w.shape[0]));
    for (std::size_t r = 0; r < x.size(); ++r)
      for (std::size_t n = 0; n < w.shape[0]; ++n)
        for (std::size_t k = 0; k < w.shape[1]; ++k) out[r][n] += x[r][k] * double{w.values[n * w.shape[1] + k]};
    return out;
  }
  [[nodiscard]] Rows normed(const std::string& name, Rows x) const {
    const auto& w = weight(name);
    for (Row& row : x) {
      double squares = 0;
      for (const double value : row) squares += value * value;
      const double root = std::sqrt(squares / static_cast<double>(row.size()) + kEps);
      for (std::size_t i = 0; i < row.size(); ++i) row[i] *= double{w.values[i]} / root;
    }
    return x;
  }
  static void add(Rows& x, const Rows& y) {
    for (std::size_t r = 0; r < x.size(); ++r)
      for (std::size_t i = 0; i < x[r].size(); ++i) x[r][i] += y[r][i];
  }
  static void rotate(Rows& x) {
    for (std::size_t position = 0; position < x.size(); ++position)
      for (std::size_t head = 0; head < x[position].size(); head += kHeadDim)
        for (std::size_t i = 0; i < kHeadDim / 2; ++i) {
          const double angle =
              static_cast<double>(position) * std::pow(kTheta, -2.0 * static_cast<double>(i) / kHeadDim);
          double& a = x[position][head + i];
          double& b = x[position][head + i + kHeadDim / 2];
          const double turned = a * std::cos(angle) - b * std::sin(angle);
          b = b * std::cos(angle) + a * std::sin(angle);
          a = turned;
        }
  }
  [[nodiscard]] Rows attention(const std::string& prefix, const Rows& x) const {
    Rows q = normed(prefix + "q_norm", times(prefix + "q_proj", x));
    Rows k = normed(prefix + "k_norm", times(prefix + "k_proj", x));
    const Rows v = times(prefix + "v_proj", x);
    rotate(q);
    rotate(k);
    Rows out(x.size(), Row(kHeads * kHeadDim));
    for (std::size_t r = 0; r < x.size(); ++r)
      for (std::size_t head = 0; head < kHeads; ++head) {
        const std::size_t shared = head / (kHeads / kKvHeads) * kHeadDim;
        Row weights(r + 1);
        double sum = 0;
        for (std::size_t j = 0; j <= r; ++j) {
          double score = 0;
          for (std::size_t d = 0; d < kHeadDim; ++d) score += q[r][head * kHeadDim + d] * k[j][shared + d];
          weights[j] = std::exp(score / std::sqrt(double{kHeadDim}));
          sum += weights[j];
        }
        for (std::size_t j = 0; j <= r; ++j)
          for (std::size_t d = 0; d < kHeadDim; ++d) out[r][head * kHeadDim + d] += weights[j] / sum * v[j][shared + d];
      }
    return times(prefix + "o_proj", out);
  }
  [[nodiscard]] Rows feed_forward(const std::string& prefix, const Rows& x) const {
    Rows gate = times(prefix + "gate_proj", x);
    const Rows up = times(prefix + "up_proj", x);
    for (std::size_t r = 0; r < gate.size(); ++r)
      for (std::size_t i = 0; i < gate[r].size(); ++i) gate[r][i] *= up[r][i] / (1 + std::exp(-gate[r][i]));
    return times(prefix + "down_proj", gate);
  }

  const ModelFolder& folder_;
};

TEST(Olmo2, EqualsItsDefinition) {
  ModelFolder folder;
  fill_olmo2(folder);
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < 30; ++i) tokens.push_back((i * 41 + 3) % kWords);
  Engine engine(folder.write(), options(runtime::RowSelection::all));
  const std::vector<float> got = engine.logits(tokens);
  double error = 0, scale = 0;
  const Rows wanted = Reference(folder).logits(tokens);
  for (std::size_t r = 0; r < wanted.size(); ++r)
    for (std::size_t n = 0; n < kWords; ++n) {
      error = std::max(error, std::abs(double{got[r * kWords + n]} - wanted[r][n]));
      scale = std::max(scale, std::abs(wanted[r][n]));
    }
  RecordProperty("largest_error", std::to_string(error / scale * 1e6) + "e-6");
  EXPECT_LE(error / scale, 2e-5);
}

}  // namespace
}  // namespace candor
