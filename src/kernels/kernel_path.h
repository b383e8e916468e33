// Kernel paths: which kernel each operation of a model runs, by phase and layer, as JSON {id, name, activationDtype,
// kvDtype?, outputDtype?, decode {steps}, prefill? {steps}, preLayer?, postLayer?, sampling?, layerOverrides?}, where a
// step is {op, kernel, entry?, weights?, constants?}. Here: reading one. Paths come from files and from users, so every
// reader checks what it reads; a value of the wrong type is an Error(format) that names the field.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/js_value.h"
#include "kernels/registry.h"

namespace candor::kernels {

/// A phase's name where it matters: "prefill" or "decode".
using Phase = std::string_view;

/// A field of the path; null where it is absent or empty. The KV dtype is the activation dtype where none is given.
[[nodiscard]] js::Value activation_dtype(js::Value path);
[[nodiscard]] js::Value output_dtype(js::Value path);
[[nodiscard]] js::Value kv_dtype(js::Value path);

/// A weight name with every "{L}" replaced by the layer.
[[nodiscard]] std::string resolve_weight_ref(std::string_view name, std::string_view layer);

/// The steps of a layer: those of the first override that lists it; else prefill's in phase "prefill" if the path has
/// them; else decode's. Undefined if the place exists but has no `steps`. `layer` is a number; another value is in no
/// override that lists numbers.
[[nodiscard]] js::Value layer_steps(js::Value path, js::Value layer, Phase phase);

/// What is missing in a path: "Missing path id", "decode[2]: missing kernel", … Empty if nothing is.
[[nodiscard]] std::vector<std::string> validate_kernel_path(js::Value path);

/// The step of a matrix product's role: "q_proj", "ffn_gate", "lm_head", … In phase "prefill", role "lm_head" is op
/// "lm_head_prefill" if there is one. Undefined if there is none.
[[nodiscard]] js::Value find_matmul_step(js::Value path, std::string_view role, Phase phase, js::Value layer);

/// The registry's variant of operation "matmul" that a role's step names; nothing if no variant fits.
[[nodiscard]] std::optional<std::string> matmul_variant(const KernelRegistry& registry, js::Value path,
                                                        std::string_view role, Phase phase, js::Value layer);

/// The same of operation "attention" for the layer's step of op "attention".
[[nodiscard]] std::optional<std::string> attention_variant(const KernelRegistry& registry, js::Value path, Phase phase,
                                                           js::Value layer);

/// The constants of a role's step; undefined where there are none.
[[nodiscard]] js::Value matmul_constants(js::Value path, std::string_view role, Phase phase, js::Value layer);

/// The variant of `operation` whose file is `kernel` without folders: the only one with that entry; among several, the
/// one whose overridable constants are those of `constants`, or else the first named "<phase>_…"; and where no entry
/// fits, the file's only variant. Nothing otherwise.
[[nodiscard]] std::optional<std::string> find_variant(const KernelRegistry& registry, std::string_view operation,
                                                      js::Value kernel, js::Value entry, Phase phase,
                                                      js::Value constants);

/// True if some kernel of the path (sampling aside) is a fused Q4_K product, or a product of dequantized weights.
[[nodiscard]] bool is_fused_q4k(js::Value path);
[[nodiscard]] bool is_dequant(js::Value path);

/// "<id>: op -> op -> …", decode's ops.
[[nodiscard]] std::string format_kernel_path(js::Value path);

struct KernelPathStats {
  std::size_t decode_steps = 0;
  std::size_t prefill_steps = 0;   ///< decode's where the path has no prefill
  std::size_t unique_kernels = 0;  ///< over all sections but the overrides
  bool has_layer_overrides = false;
};

[[nodiscard]] KernelPathStats kernel_path_stats(js::Value path);

}  // namespace candor::kernels
