// What differs between two models that are compiled and bound: facts of the architecture, tensors with the steps that
// read them, the plan, and what the Program needs. Not a goal: values of weights; a tensor's digest says whether they
// differ where the files state one.
#pragma once

#include <vector>

#include "backends/program.h"
#include "plan/diff.h"
#include "runtime/compiled_model.h"

namespace candor::runtime {

struct BoundModel {
  const CompiledModel& model;
  const Program& program;
};

/// In this order: "architecture", "tensors", then as plan::diff() has it, then "program": limits, decode loop, caches
/// and memory in bytes.
[[nodiscard]] std::vector<plan::Change> diff_models(const BoundModel& a, const BoundModel& b);

}  // namespace candor::runtime
