// Lint: what the compiler accepts but is likely a mistake, and what would mend what it refuses. The compiler's answers
// stay as the schema defines them; this says what a person should know about them. Not findings: encoders without
// decode steps, the last value of a phase (the sampled token, the logits), and profiles marked {"alternate": true}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace candor::kernels {
class KernelPathRegistry;
class KernelRegistry;
}  // namespace candor::kernels

namespace candor::plan {

struct Dataflow;
/// One finding. `code` is stable: stripped-dtype, raw-phase, raw-section, prefill-only-layers, lost-override,
/// null-wipes-session, unused-profile, unread-slot, unpinned-kernel, mismatched-pin, idle-setting.
struct Finding {
  std::string code;
  std::string subject;  ///< a step's id, a profile, a session path
  std::string message;  ///< what happens
  std::string remedy;   ///< what would mend it

  [[nodiscard]] Json to_json() const;
};

struct LintInput {
  const Json& inference;  ///< the manifest's
  const Json& overlay;    ///< {session, executionPatch}, or null
  std::int64_t layers = 0;
  const kernels::KernelRegistry& registry;
  const Dataflow* flow = nullptr;  ///< null where the plan or its data flow is refused
};

/// All findings, in the order of the manifest. Never throws for what a manifest holds.
[[nodiscard]] std::vector<Finding> lint(const LintInput& input);

/// A kernel path in step-list form (kernels/kernel_path.h), seen before any manifest is made of it.
struct KernelPathReport {
  std::string refusal;  ///< why no manifest or plan can be made of it: the generator's or compiler's message; or empty
  std::size_t steps = 0;                ///< of the manifest
  std::size_t prefill = 0, decode = 0;  ///< resolved steps of the plan
  std::vector<Finding> findings;

  [[nodiscard]] Json to_json() const;
};

/// Validates the path, generates a manifest's execution from it, compiles that for `layers` layers, and lints it.
/// Codes beside lint()'s: invalid-path. For steps whose kernel has no digest the remedy says what was tried and works.
[[nodiscard]] KernelPathReport lint_kernel_path(const Json& path, const kernels::KernelPathRegistry& paths,
                                                const kernels::KernelRegistry& registry, std::int64_t layers);

}  // namespace candor::plan
