// Manifest generation: a family's steps and a kernel path's rules become complete execution steps, each with its
// kernel, pinned by digest. Where layers store a weight in different encodings, a step becomes several with disjoint
// layers. Where a kernel reads quantized activations, a quantize step is inserted. Nothing is chosen after this.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "formats/model_source.h"
#include "kernels/kernel_rules.h"
#include "kernels/registry.h"
#include "models/description.h"

namespace candor::models {

struct ManifestInput {
  std::string name;                     ///< what modelId is made of
  std::span<const TensorInfo> tensors;  ///< names, shapes and encodings; a converter gives those it will write
  const ModelDescription& description;
  const kernels::KernelRules& rules;
  const kernels::KernelRegistry& registry;
  std::string path = {};  ///< of the model, for the conversion that a message proposes; empty: none
};

/// manifest.json's content: version, modelId, modelType, quantization, architecture, inference {schema, facts,
/// sessionDefaults, execution {steps, policies}}, tensors (shape, dtype, role; where their bytes lie is the artifact
/// writer's to add), eos_token_id. Throws Error(plan) if the rules have no kernel for a step, Error(unsupported)
/// if the description leaves something undecided.
[[nodiscard]] Json make_manifest(const ManifestInput& input);

/// What a model is called by its path: the file's stem or the folder's name.
[[nodiscard]] std::string source_name(const ModelSource& source);

/// A name as artifacts write it: lower case, characters outside [a-z0-9_-] as single dashes, at most 64.
[[nodiscard]] std::string model_id(std::string_view name);

}  // namespace candor::models
