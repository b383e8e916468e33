// What differs between two plans, and which steps each difference touches. Goals: a change of one setting reads as that
// change and its consequences, not as two long documents. Not a goal: comparing results; candor compare does.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "plan/execution_plan.h"

namespace candor::plan {

struct Change {
  std::string where;    ///< "session", "policies", "prefill", "decode", "source", "patch"; others for others' documents
  std::string subject;  ///< a session path, a policy, or a step's id
  std::string field;    ///< of a step: "precision.mathDtype", "constants.eps"; empty for a step added or removed
  std::string before;   ///< JSON text; of a step or its place, a description; empty where there was nothing
  std::string after;
  std::vector<std::string> touches = {};  ///< ids of the steps that read what changed, where that is not said by them

  [[nodiscard]] Json to_json() const;
};

/// Changes from `a` to `b`: session and policies first, then the steps of prefill and decode in order. Steps are
/// matched by id. Then "source", where a value is the same and comes from elsewhere, and where nothing of that differs,
/// "patch", what the plan writes into a runtime's configuration. Plans whose digests differ have a change.
[[nodiscard]] std::vector<Change> diff(const ExecutionPlan& a, const ExecutionPlan& b);

/// Changes of two manifests as they are written, also of such as do not compile: steps are matched by id, kernel
/// profiles by the id of their kernelRef.
[[nodiscard]] std::vector<Change> diff_manifests(const Json& a, const Json& b);

/// Leaf by leaf differences of two JSON values, as changes of `where`. Arrays are compared whole.
[[nodiscard]] std::vector<Change> diff_json(const std::string& where, const Json& a, const Json& b);

}  // namespace candor::plan
