// Resolving the steps of one phase: which dtype each slot holds before each step, and so each step's dtypes. A step's
// result is judged against what its kernel declares; nothing is converted that is not a cast step.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/js_value.h"
#include "kernels/registry.h"
#include "plan/execution_plan.h"
#include "plan/patch.h"
#include "plan/profiles.h"
#include "plan/provenance.h"

namespace candor::plan {

/// What steps are resolved against. All of it outlives the resolving.
struct ResolveContext {
  const Json& session;
  const Json& policies;
  const KernelProfiles& profiles;
  const kernels::KernelRegistry& registry;
  const SessionSources& session_sources;
  const PatchIndex& patch;
};

/// The dtype each slot holds, by its name.
using SlotDtypes = std::unordered_map<std::string, std::string>;

struct ResolvedPhase {
  std::vector<ResolvedStep> steps;
  SlotDtypes slots;  ///< after the last step
};

/// `state` in the session's activation dtype.
[[nodiscard]] SlotDtypes initial_slots(const Json& session);

/// The session's activation dtype; f16 if it has none.
[[nodiscard]] std::string session_activation_dtype(const Json& session);

/// Resolves the steps of `phase` ("prefill" or "decode") in their order, and traces where each dtype came from.
[[nodiscard]] ResolvedPhase resolve_phase(std::string_view phase, const std::vector<Json>& steps,
                                          const ResolveContext& context, StepTrace& trace);

/// Throws if a decode step that reads what prefill left in a slot asks for another dtype than it is in.
void check_phase_boundary(const std::vector<Json>& steps, const SlotDtypes& prefill_slots,
                          const ResolveContext& context);

}  // namespace candor::plan
