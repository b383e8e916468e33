// The binder: makes a Program of a checked plan for one backend. It assigns slots to memory by their lifetimes, gives
// each weight the layout its kernel reads, sizes KV caches and scratch, and knows all memory before any is taken.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "backends/backend.h"
#include "formats/tensor.h"
#include "plan/dataflow.h"

namespace candor::runtime {

struct BindInput {
  const plan::Dataflow& flow;
  const Backend& backend;
  std::string plan_digest;
  ProgramLimits limits;
  std::function<const TensorInfo*(std::string_view)> find_tensor;
  DecodeLoop decode_loop = {};
};

/// Throws Error(plan) for a kernel the backend lacks, Error(device) for kernels that require features which the device
/// lacks, naming every such step.
[[nodiscard]] Program bind(const BindInput& input);

/// Throws Error(resource), with every part of the sum, if the Program needs more memory than the machine has left.
void check_memory(const Program& program);

}  // namespace candor::runtime
