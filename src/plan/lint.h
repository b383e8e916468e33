// Lint: what the compiler accepts but is likely a mistake, and what would mend what it refuses. The compiler's answers
// stay as the schema defines them; this says what a person should know about them. Not findings: encoders without
// decode steps, the last value of a phase (the sampled token, the logits), and profiles marked {"alternate": true}.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace candor::kernels {
class KernelRegistry;
}

namespace candor::plan {

struct Dataflow;
struct ExecutionPlan;

/// One finding. `code` is stable: stripped-dtype, raw-phase, raw-section, prefill-only-layers, lost-override,
/// null-wipes-session, unused-profile, unread-slot, unpinned-kernel, mismatched-pin.
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
  const ExecutionPlan* plan = nullptr;  ///< null where it does not compile
  const Dataflow* flow = nullptr;       ///< null where the data flow is refused
};

/// All findings, in the order of the manifest. Never throws for what a manifest holds.
[[nodiscard]] std::vector<Finding> lint(const LintInput& input);

/// Findings about a kernel path in the original's step-list form: steps whose kernel cannot be pinned, with the entries
/// of the same file that can.
[[nodiscard]] std::vector<Finding> lint_kernel_path(const Json& path, const kernels::KernelRegistry& registry);

}  // namespace candor::plan
