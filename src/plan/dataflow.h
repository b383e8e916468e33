// The dataflow pass. The compiler tracks `src` and `dst` only, looks at a layer body once and ignores `layers`; this
// pass unrolls the resolved steps by layer and phase, gives every write its own value, and checks each operand's
// producer, order, dtype, encoding and shape, each constant, each weight, and what one layer hands to the next. What it
// returns is what a Program is bound from; the inline kernel path never is. Not a goal: choosing anything.
//
// Slots: `state` is the only slot that a layer hands to the next and that the steps after the layers read; slots
// written in section preLayer can be read everywhere after them; any other slot lives within its layer. External inputs
// are
// `$tokens`, `$positions`, `$types` and `$sampler`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensor.h"
#include "kernels/operations.h"
#include "plan/execution_plan.h"

namespace candor::kernels {
struct KernelVariant;
}

namespace candor::plan {

enum class External : std::uint8_t { tokens, positions, types, sampler };

[[nodiscard]] std::string_view to_string(External external);

/// What one step of one layer wrote.
struct Value {
  std::string slot;
  std::string dtype;  ///< logical: "f16" or "f32"
  Encoding encoding = Encoding::f32;
  kernels::SlotShape shape;
  std::uint32_t producer = 0;   ///< index of the step instance
  std::uint32_t last_read = 0;  ///< index of the last instance that reads it; the producer itself if none does
};

struct Operand {
  bool is_external = false;
  External external = External::tokens;
  std::uint32_t value = 0;  ///< index into PhaseFlow::values
};

/// One step in one layer (or outside the layers), its operands resolved.
struct StepInstance {
  const ResolvedStep* step = nullptr;
  const kernels::KernelVariant* variant = nullptr;
  std::int32_t layer = -1;             ///< -1 outside the layers
  std::vector<Operand> operands;       ///< src first if the operation reads it, then its inputs in declared order
  std::vector<std::uint32_t> weights;  ///< indices into Dataflow::weights, in declared order
  kernels::ConstantBlock constants;
  std::uint32_t value = 0;             ///< what it writes
  std::int32_t in_place_operand = -1;  ///< an operand whose buffer the result may take, if the kernel allows one
  std::int32_t kv = -1;                ///< index into Dataflow::kv, for steps that keep a state
};

struct PhaseFlow {
  std::vector<Value> values;
  std::vector<StepInstance> steps;
};

/// A weight of the plan: a tensor, or one of the equal parts of a tensor that stacks the weights of several experts.
struct WeightUse {
  std::string tensor;
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
  bool operator==(const WeightUse&) const = default;
};

/// A weight's tensor as a matrix [rows, cols]; dimensions of 1 are left out, and a vector has one row. Throws
/// Error(plan), starting with `label`, for a tensor of other dimensions.
[[nodiscard]] kernels::WeightShape weight_shape(const TensorInfo& tensor, const WeightUse& use, std::string_view label);

/// The state that one step keeps of a sequence's positions for one layer: keys and values of attention, or the rows a
/// convolution looks back on (one head of all columns).
struct KvState {
  std::int32_t layer = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t head_dim = 0;
  std::uint64_t window = 0;  ///< positions looked back on, the current one included; 0: all
  Encoding encoding = Encoding::f32;
};

struct Dataflow {
  PhaseFlow prefill;
  PhaseFlow decode;
  std::vector<WeightUse> weights;  ///< each once
  std::vector<KvState> kv;
  std::map<std::string, kernels::Operation, std::less<>> operations;  ///< those the plan uses
};

struct DataflowInput {
  const ExecutionPlan& plan;
  std::uint32_t layers = 0;
  const kernels::KernelRegistry& registry;
  /// The model's tensor of that name, or nullptr.
  std::function<const TensorInfo*(std::string_view)> find_tensor;
};

/// Throws Error(plan) that names the step, the layer and what is wrong. The result points into `plan` and `registry`.
[[nodiscard]] Dataflow check_dataflow(const DataflowInput& input);

}  // namespace candor::plan
