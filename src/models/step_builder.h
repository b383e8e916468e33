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
};

enum class RopeStyle { half, interleaved };

/// Constants of an rmsnorm step.
struct NormShape {
  double eps = 0;
  std::uint64_t width = 0;   ///< columns normalised together
  double weight_offset = 0;  ///< added to the weight
};

class StepBuilder {
 public:
  explicit StepBuilder(ModelDescription& description) : description_(description) {}

  /// Steps added from here on belong to this section, and to these layers only (empty: all).
  StepBuilder& section(std::string name, std::vector<std::uint32_t> layers = {});

  void embed(const std::string& weight, std::uint64_t vocabulary, std::uint64_t hidden, double scale = 1);
  void rmsnorm(std::string op, std::string src, std::string dst, const std::string& weight, const NormShape& shape);
  /// dst = src · weightᵀ, weight [out, in].
  void linear(std::string op, std::string src, std::string dst, const std::string& weight, std::uint64_t out,
              std::uint64_t in);
  void bias(std::string op, const std::string& slot, const std::string& weight, std::uint64_t length);
  void rope(std::string op, const std::string& slot, const RopeTable& table, std::uint64_t head_dim, RopeStyle style);
  void attention(std::string q, std::string k, std::string v, std::string dst, const AttentionShape& shape);
  void gated_activation(std::string gate, std::string up, std::string dst, const std::string& activation);
  /// dst = src + residual.
  void residual(std::string op, std::string src, std::string residual, std::string dst);
  /// The tail of every decoder: select the last row, project to the vocabulary, sample.
  void select_last_row();
  void sample(const std::string& logits);

 private:
  StepDraft& add(std::string op, std::string operation, std::string src, std::string dst);
  void expect(const std::string& pattern, std::vector<std::uint64_t> shape);

  ModelDescription& description_;
  std::string section_ = "preLayer";
  std::vector<std::uint32_t> layers_;
};

}  // namespace candor::models
