// Why a step has the dtypes it has: for each, the value, where it came from, and the values that lost, in order of
// precedence. Goals: an answer a person can check against the manifest and the overlay, from the same places that the
// compiler read. Not a goal: deciding anything; the plan holds what was decided, and an explanation that disagrees with
// it is a fault of this file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "plan/execution_plan.h"

namespace candor::plan {

struct ExplainInput {
  const ExecutionPlan& plan;
  const Json& inference;  ///< the manifest's
  const Json& overlay;    ///< {session, executionPatch}, as compiled
  const kernels::KernelRegistry& registry;
};

/// One place that gives a field a value.
struct Candidate {
  std::string value;
  std::string source;  ///< as the plan's sources name it: "runtime.patch", "manifest", "kernelProfile", …
  std::string place;   ///< "execution.steps[3].precision.mathDtype"
  std::string lost;    ///< why it is not the value; empty for the one that is
};

struct FieldExplanation {
  std::string field;  ///< "inputDtype", …, "kvIO.writeDtype"
  std::string value;
  std::string source;
  std::vector<Candidate> candidates;  ///< in order of precedence; exactly one has no `lost`
};

/// One step in one phase. A step of phase "both" has two.
struct StepExplanation {
  std::string phase;
  const ResolvedStep* step = nullptr;
  std::vector<FieldExplanation> fields;

  [[nodiscard]] Json to_json() const;
};

/// The names of the fields that an explanation may have.
[[nodiscard]] const std::vector<std::string_view>& explained_fields();

/// `id` is a step of the plan; see find_step().
[[nodiscard]] std::vector<StepExplanation> explain_step(const ExplainInput& input, std::string_view id);

/// The id of the one step that `name` means: an id, an op, or the end of an id. Throws Error(not_found) if there is
/// none, with ids that come close, and Error(usage), naming them, if there are several.
[[nodiscard]] std::string find_step(const ExecutionPlan& plan, std::string_view name);

}  // namespace candor::plan
