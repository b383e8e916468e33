// Between a family's drafts and a manifest's steps: each draft with the kernels that the rules give it, cut where
// layers store a weight in different encodings or the phases have different kernels, and with the quantize steps that
// kernels ask for. Fusion (fusion.h) works on these; manifest.cpp writes them down. Not a goal: any choice the rules
// leave open.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "kernels/kernel_rules.h"
#include "models/description.h"
#include "models/manifest.h"

namespace candor::models {

using Layers = std::set<std::uint32_t>;

struct LoweredStep {
  StepDraft draft;       ///< `src` is the slot that the kernel reads, quantized where it wants it so
  std::string encoding;  ///< what the rules were asked with: of the first weight, or of what quantize writes
  kernels::KernelChoice choice;
  std::string phase;  ///< prefill, decode or both
  Layers layers;      ///< empty outside section layer
};

/// Throws Error(plan) if the rules have no kernel for a step, Error(unsupported) with the conversion that helps where
/// the encoding is the trouble.
[[nodiscard]] std::vector<LoweredStep> lower_steps(const ManifestInput& input);

}  // namespace candor::models
