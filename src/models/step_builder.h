// Writes the steps of a decoder and, beside each, the tensor it expects. Family files say which steps there are; this
// says how one is spelled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/description.h"
#include "models/rope.h"

namespace candor::models {

struct AttentionShape {
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t head_dim = 0;
  double scale = 0;          ///< multiplies the scores
  std::uint64_t window = 0;  ///< positions seen, the current one included; 0: all
  double softcap = 0;        ///< 0: none
  bool causal = true;
};

enum class RopeStyle { half, interleaved };

/// How many experts there are, how many a token has, and into how many parts a row of the input is divided: 1 or one
/// an expert.
struct ExpertShape {
  std::uint64_t experts = 0;
  std::uint64_t per_token = 0;
  std::uint64_t groups = 1;
};

/// Constants of an rmsnorm step.
struct NormShape {
  double eps = 0;
  std::uint64_t width = 0;   ///< columns normalised together
  double weight_offset = 0;  ///< added to the weight
};

/// The name of a weight's bias: ".bias" for ".weight".
[[nodiscard]] std::string bias_name(const std::string& weight_name);

class StepBuilder {
 public:
  explicit StepBuilder(ModelDescription& description) : description_(description) {}

  /// Steps added from here on belong to this section, and to these layers only (empty: all).
  StepBuilder& section(std::string name, std::vector<std::uint32_t> layers = {});

  /// The layers that steps are being added for; empty: all.
  [[nodiscard]] const std::vector<std::uint32_t>& layers() const { return layers_; }

  void embed(const std::string& weight, std::uint64_t vocabulary, std::uint64_t hidden, double scale = 1);
  void rmsnorm(std::string op, std::string src, std::string dst, const std::string& weight, const NormShape& shape);
  /// Rows of a table of learned positions, [positions, hidden], into `dst`.
  void positions(std::string dst, const std::string& weight, std::uint64_t positions, std::uint64_t hidden);
  /// Rows of a table of token types, [types, hidden], into `dst`.
  void token_types(std::string dst, const std::string& weight, std::uint64_t types, std::uint64_t hidden);
  /// Weight and bias are of the row's `width`; the bias is the weight's name with .bias.
  void layernorm(std::string op, std::string src, std::string dst, const std::string& weight, std::uint64_t width,
                 double eps);
  /// dst = src · weightᵀ, weight [out, in].
  void linear(std::string op, std::string src, std::string dst, const std::string& weight, std::uint64_t out,
              std::uint64_t in);
  /// dst = src · weight, weight [in, out].
  void linear_transposed(std::string op, std::string src, std::string dst, const std::string& weight, std::uint64_t out,
                         std::uint64_t in);
  void bias(std::string op, const std::string& slot, const std::string& weight, std::uint64_t length);
  void rope(std::string op, const std::string& slot, const RopeTable& table, std::uint64_t head_dim, RopeStyle style);
  void attention(std::string q, std::string k, std::string v, std::string dst, const AttentionShape& shape);
  void gated_activation(std::string gate, std::string up, std::string dst, const std::string& activation);
  void activation(std::string src, std::string dst, const std::string& function);
  /// Columns offset … offset + width - 1 of a packed slot.
  void slice(std::string op, std::string src, std::string dst, std::uint64_t offset, std::uint64_t width);
  /// slot = cap · tanh(slot / cap).
  void softcap(std::string op, const std::string& slot, double cap);
  /// slot = slot · factor.
  void scale(std::string op, const std::string& slot, double factor);
  /// dst = src · other.
  void multiply(std::string op, std::string src, std::string other, std::string dst);
  void softmax(std::string op, std::string src, std::string dst);
  void top_k(std::string op, std::string src, std::string dst, std::uint64_t count);
  void routing_weights(std::string op, std::string src, std::string experts, std::string dst, bool normalize);
  /// The product of `linear` for each of a row's experts. `weight` is a pattern with {E}, a tensor [out, in] an expert,
  /// or one tensor [experts, out, in].
  void expert_linear(std::string op, std::string src, std::string experts, std::string dst, const std::string& weight,
                     const ExpertShape& shape, std::uint64_t out, std::uint64_t in);
  void combine_experts(std::string op, std::string src, std::string weights, std::string dst);
  /// A causal convolution of `channels` columns over `taps` positions. `stored` is the weight's shape in the file.
  void short_conv(std::string op, std::string src, std::string dst, const std::string& weight,
                  std::vector<std::uint64_t> stored, std::uint64_t channels, std::uint64_t taps);
  /// dst = src + residual.
  void residual(std::string op, std::string src, std::string residual, std::string dst);
  /// One row a sequence; `kind` is mean, last or first.
  void pool(std::string op, std::string src, std::string dst, const std::string& kind);
  void l2_normalize(std::string op, const std::string& slot, double eps);
  /// The tail of every decoder: select the last row, project to the vocabulary, sample.
  void select_last_row();
  void sample(const std::string& logits);

 private:
  StepDraft& add(std::string op, std::string operation, std::string src, std::string dst);
  void expect(const std::string& pattern, std::vector<std::uint64_t> shape, std::uint64_t experts = 0);

  ModelDescription& description_;
  std::string section_ = "preLayer";
  std::vector<std::uint32_t> layers_;
};

}  // namespace candor::models
