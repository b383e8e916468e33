// What a family file makes of a configuration: the architecture's numbers, the tensors it expects, and the steps of its
// forward pass with slots, operands, weights and constants, but without kernels. Kernel rules add those (manifest.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "formats/model_source.h"

namespace candor::models {

/// In patterns of tensor names: the layer, and each expert of a layer.
inline constexpr std::string_view kLayerPlaceholder = "{L}";
inline constexpr std::string_view kExpertPlaceholder = "{E}";

/// A pattern with its placeholders filled in; without them, the pattern.
[[nodiscard]] std::string expand_pattern(std::string pattern, std::uint64_t layer, std::uint64_t expert = 0);

/// What a model's files leave open, to be said by whoever makes a plan of it.
struct DescribeOptions {
  /// Positions that the plan is to hold: where a model rotates positions differently in longer contexts (LongRoPE), it
  /// says which way. 0: as many as the model can.
  std::uint64_t context = 0;
  /// How rows become one vector, where no file says it: as parse_pooling() (pooling.h) reads it. Empty: as files say.
  std::string pooling;
};

/// A step without a kernel. `op` is the role of the step, `operation` what its kernel must do.
struct StepDraft {
  std::string section;  ///< preLayer, layer, postLayer, sampling
  std::string op;
  std::string operation;
  std::string src = "state";
  std::string dst = "state";
  Json inputs = Json::object();       ///< operand → slot
  Json weights;                       ///< a tensor's pattern, or an object of several
  Json constants = Json::object();    ///< all of the operation's
  std::vector<std::uint32_t> layers;  ///< empty: all
};

struct ExpectedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
};

struct ModelDescription {
  std::string family;
  std::string model_type;              ///< as artifacts write it: "transformer", or "embedding" where no text is made
  Json architecture = Json::object();  ///< numLayers, hiddenSize, intermediateSize, numAttentionHeads, …
  Json inference = Json::object();  ///< facts for people and other readers: attention, normalization, ffn, rope, output
  Json experts;                     ///< moeConfig of artifacts; null without experts
  std::uint32_t layers = 0;
  std::uint64_t vocabulary = 0;
  std::uint64_t max_positions = 0;
  std::vector<std::uint32_t> stop_tokens;
  std::vector<StepDraft> steps;
  std::vector<ExpectedTensor> tensors;
  std::vector<std::string> ignored_tensors;  ///< present in some files and not part of the computation
  /// What neither files nor options say and a plan must know, with the remedy; the steps end before it. Empty: nothing.
  std::string undecided;
};

/// A family: which configurations it reads, and how. One file each, listed in family.cpp.
struct Family {
  std::string_view name;
  std::vector<std::string_view> model_types;         ///< `model_type` of config.json
  std::vector<std::string_view> gguf_architectures;  ///< `general.architecture` of GGUF
  ModelDescription (*describe)(const ModelSource& source, const DescribeOptions& options) = nullptr;
};

[[nodiscard]] const std::vector<Family>& families();

/// Finds the family of a GGUF file or Hugging Face folder, describes the model and checks its tensors. Throws
/// Error(unsupported) for an unknown family, with those known; Error(format) listing missing, unexpected and mis-shaped
/// tensors; Error(usage) for options that the model has no use for.
[[nodiscard]] ModelDescription describe(const ModelSource& source, const DescribeOptions& options = {});

}  // namespace candor::models
