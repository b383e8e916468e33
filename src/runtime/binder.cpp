#include "runtime/binder.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernels/registry.h"

namespace candor::runtime {
namespace {

constexpr std::uint64_t kAlignment = 64;

/// Hands out ranges of an arena: the first free range that is large enough, else its end.
class Arena {
 public:
  std::uint64_t take(std::uint64_t bytes) {
    for (auto range = free_.begin(); range != free_.end(); ++range) {
      if (range->second < bytes) continue;
      const std::uint64_t offset = range->first;
      const std::uint64_t left = range->second - bytes;
      free_.erase(range);
      if (left > 0) free_.emplace(offset + bytes, left);
      return offset;
    }
    // A free range at the end is extended rather than skipped.
    std::uint64_t offset = end_;
    if (!free_.empty() && free_.rbegin()->first + free_.rbegin()->second == end_) {
      offset = free_.rbegin()->first;
      free_.erase(std::prev(free_.end()));
    }
    end_ = checked_add(offset, bytes, "slots");
    return offset;
  }

  void give_back(std::uint64_t offset, std::uint64_t bytes) {
    auto [range, added] = free_.emplace(offset, bytes);
    const auto next = std::next(range);
    if (next != free_.end() && range->first + range->second == next->first) {
      range->second += next->second;
      free_.erase(next);
    }
    if (range == free_.begin()) return;
    const auto previous = std::prev(range);
    if (previous->first + previous->second != range->first) return;
    previous->second += range->second;
    free_.erase(range);
  }

  [[nodiscard]] std::uint64_t end() const { return end_; }

 private:
  std::map<std::uint64_t, std::uint64_t> free_;  // offset → bytes
  std::uint64_t end_ = 0;
};

/// Hands out whole buffers: the smallest free one that is large enough, else the largest free one, which grows, else a
/// new one.
class BufferPool {
 public:
  explicit BufferPool(std::vector<std::uint64_t>& sizes) : sizes_(sizes), taken_(sizes.size()) {}

  std::uint32_t take(std::uint64_t bytes) {
    std::size_t best = sizes_.size();
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      if (taken_[i]) continue;
      const bool fits = sizes_[i] >= bytes;
      const bool better = best == sizes_.size() ||
                          (sizes_[best] >= bytes ? fits && sizes_[i] < sizes_[best] : sizes_[i] > sizes_[best]);
      if (better) best = i;
    }
    if (best == sizes_.size()) {
      sizes_.push_back(0);
      taken_.push_back(false);
    }
    sizes_[best] = std::max(sizes_[best], bytes);
    taken_[best] = true;
    return static_cast<std::uint32_t>(best);
  }

  void give_back(std::uint32_t buffer) { taken_[buffer] = false; }

 private:
  std::vector<std::uint64_t>& sizes_;
  std::vector<bool> taken_;
};

class Binder {
 public:
  explicit Binder(const BindInput& input) : input_(input) {}

  Program bind() {
    program_.backend = std::string(input_.backend.name());
    program_.plan_digest = input_.plan_digest;
    program_.limits = input_.limits;
    program_.decode_loop = input_.decode_loop;
    check_features();
    for (const plan::KvState& state : input_.flow.kv)
      program_.kv.push_back({state.layer, state.kv_heads, state.head_dim, state.window, state.encoding, 0});
    bind_phase(Phase::prefill, input_.flow.prefill);
    bind_phase(Phase::decode, input_.flow.decode);
    return std::move(program_);
  }

 private:
  /// Every step's kernel may require features of the device (registry, `requires`).
  void check_features() const {
    std::vector<std::string> offending;
    std::set<std::string> reported;
    for (const plan::PhaseFlow* flow : {&input_.flow.prefill, &input_.flow.decode})
      for (const plan::StepInstance& step : flow->steps)
        for (const std::string& feature : step.variant->required_features)
          if (!input_.backend.has_feature(feature) && reported.insert(step.step->id + " " + feature).second)
            offending.push_back(
                fmt::format("{} ({}#{} requires {})", step.step->id, step.step->kernel, step.step->entry, feature));
    if (!offending.empty())
      fail(ErrorCode::device,
           "[ExecutionV0] Inline kernelPath requires unsupported {} features. Offending steps: {}; choose kernels that "
           "need no such feature (candor rebind --kernel-path, or executionPatch)",
           input_.backend.name(), fmt::join(offending, ", "));
  }

  void bind_phase(Phase which, const plan::PhaseFlow& flow) {
    ProgramPhase& phase = program_.phases[static_cast<std::size_t>(which)];
    for (const plan::Value& value : flow.values) phase.values.push_back(program_value(value));
    for (const plan::StepInstance& step : flow.steps) phase.instructions.push_back(instruction(step, phase));
    place_values(flow, phase);
  }

  [[nodiscard]] ProgramValue program_value(const plan::Value& value) const {
    ProgramValue out;
    out.slot = value.slot;
    out.encoding = value.encoding;
    out.rows = value.shape.rows;
    out.cols = checked_cast<std::uint32_t>(value.shape.cols, value.slot);
    out.row_bytes = checked_align(encoded_bytes(value.encoding, value.shape.cols, value.slot), kAlignment, value.slot);
    return out;
  }

  Instruction instruction(const plan::StepInstance& step, const ProgramPhase& phase) {
    Instruction out;
    out.step = step.step->id;
    out.op = step.step->op;
    out.layer = step.layer;
    out.kernel = step.step->kernel;
    out.entry = step.step->entry;
    out.operation = step.variant->operation;
    out.constants = step.constants;
    out.result = step.value;
    out.kv = step.kv;
    for (const plan::Operand& operand : step.operands)
      out.operands.push_back({operand.is_external, static_cast<ExternalInput>(operand.external), operand.value});
    for (const std::uint32_t index : step.weights) out.weights.push_back(weight(input_.flow.weights[index], out));
    const std::uint32_t src_cols =
        out.operands.empty() || out.operands[0].is_external ? 0 : phase.values[out.operands[0].value].cols;
    const std::uint64_t scratch =
        input_.backend.scratch_bytes(out, src_cols, phase.values[out.result].cols, input_.limits);
    program_.scratch_bytes = std::max(program_.scratch_bytes, scratch);
    if (out.kv >= 0) size_cache(out);
    return out;
  }

  void size_cache(const Instruction& attention) {
    ProgramKv& cache = program_.kv[static_cast<std::size_t>(attention.kv)];
    const std::uint64_t bytes = input_.backend.kv_page_bytes(attention, input_.limits.page_positions, cache.encoding);
    if (cache.page_bytes != 0 && cache.page_bytes != bytes)
      fail(ErrorCode::plan, "step \"{}\": kernel \"{}#{}\" lays its KV pages out differently from the other phase's",
           attention.step, attention.kernel, attention.entry);
    cache.page_bytes = bytes;
  }

  std::uint32_t weight(const plan::WeightUse& use, const Instruction& user) {
    const TensorInfo& tensor = *input_.find_tensor(use.tensor);
    const kernels::WeightShape shape = plan::weight_shape(tensor, use, user.step);
    ProgramWeight entry;
    entry.tensor = use.tensor;
    entry.part = use.part;
    entry.parts = use.parts;
    entry.encoding = tensor.encoding;
    entry.rows = shape.rows;
    entry.cols = shape.cols;
    const WeightLayout layout = input_.backend.weight_layout(user, tensor.encoding, entry.rows, entry.cols);
    entry.layout = layout.name;
    entry.bytes = layout.bytes;
    entry.kernel = user.kernel;
    entry.entry = user.entry;
    const auto [found, added] =
        weights_.try_emplace({use.tensor, use.part, layout.name}, static_cast<std::uint32_t>(program_.weights.size()));
    if (added) program_.weights.push_back(std::move(entry));
    return found->second;
  }

  /// Walks the instructions once: a result takes memory when it is written, and gives it back after its last reader.
  void place_values(const plan::PhaseFlow& flow, ProgramPhase& phase) {
    Arena arena;
    std::vector<std::uint64_t> sizes(phase.values.size());
    std::vector<std::vector<std::uint32_t>> dying(flow.steps.size());
    for (std::uint32_t v = 0; v < phase.values.size(); ++v) {
      const ProgramValue& value = phase.values[v];
      const std::uint32_t rows = value.rows == kernels::RowKind::tokens ? input_.limits.rows : input_.limits.sequences;
      sizes[v] = checked_mul(value.row_bytes, rows, value.slot);
      dying[flow.values[v].last_read].push_back(v);
    }
    if (input_.backend.separate_slots()) {
      pool_values(flow, phase, sizes, dying);
      return;
    }
    std::vector<bool> moved(phase.values.size());
    for (std::uint32_t i = 0; i < flow.steps.size(); ++i) {
      const plan::StepInstance& step = flow.steps[i];
      const std::uint32_t reused = in_place_value(flow, step, i, sizes);
      if (reused != kNone) {
        phase.values[step.value].offset = phase.values[reused].offset;
        moved[reused] = true;
      } else {
        phase.values[step.value].offset = arena.take(sizes[step.value]);
      }
      for (const std::uint32_t v : dying[i])
        if (!moved[v]) arena.give_back(phase.values[v].offset, sizes[v]);
    }
    program_.arena_bytes = std::max(program_.arena_bytes, arena.end());
  }

  /// The same with buffers in place of ranges. A result never takes over an operand's: a kernel may not write what it
  /// reads.
  void pool_values(const plan::PhaseFlow& flow, ProgramPhase& phase, const std::vector<std::uint64_t>& sizes,
                   const std::vector<std::vector<std::uint32_t>>& dying) {
    BufferPool pool(program_.slot_buffers);
    for (std::uint32_t i = 0; i < flow.steps.size(); ++i) {
      const std::uint32_t result = flow.steps[i].value;
      phase.values[result].buffer = pool.take(sizes[result]);
      for (const std::uint32_t v : dying[i]) pool.give_back(phase.values[v].buffer);
    }
    program_.arena_bytes = 0;
    for (const std::uint64_t bytes : program_.slot_buffers)
      program_.arena_bytes = checked_add(program_.arena_bytes, bytes, "slots");
  }

  static constexpr std::uint32_t kNone = 0xffffffff;

  /// The operand whose memory the result takes over: the kernel allows it and nobody reads the operand afterwards.
  static std::uint32_t in_place_value(const plan::PhaseFlow& flow, const plan::StepInstance& step, std::uint32_t index,
                                      const std::vector<std::uint64_t>& sizes) {
    if (step.in_place_operand < 0) return kNone;
    const plan::Operand& operand = step.operands[static_cast<std::size_t>(step.in_place_operand)];
    if (operand.is_external || flow.values[operand.value].last_read != index) return kNone;
    const bool read_twice = std::count_if(step.operands.begin(), step.operands.end(), [&](const plan::Operand& other) {
                              return !other.is_external && other.value == operand.value;
                            }) > 1;
    if (read_twice || sizes[operand.value] != sizes[step.value]) return kNone;
    return operand.value;
  }

  const BindInput& input_;
  Program program_;
  std::map<std::tuple<std::string, std::uint32_t, std::string>, std::uint32_t> weights_;  // (tensor, part, layout)
};

}  // namespace

Program bind(const BindInput& input) {
  return Binder(input).bind();
}

void check_memory(const Program& program) {
  const auto available = available_memory();
  const std::uint64_t needed = checked_add(checked_add(program.packed_bytes(), program.kv_bytes(), "memory"),
                                           checked_add(program.arena_bytes, program.scratch_bytes, "memory"), "memory");
  if (!available || needed <= *available) return;
  fail(ErrorCode::resource,
       "the model does not fit the memory: weights {} + KV cache {} + buffers {} = {} are needed, {} are free; use a "
       "smaller quantization, a shorter --context, or f16 or q8_0 for the KV cache (--session kvcache.kvDtype=f16, "
       "--session kvcache.encoding=q8_0)",
       format_bytes(program.packed_bytes()), format_bytes(program.kv_bytes()),
       format_bytes(program.arena_bytes + program.scratch_bytes), format_bytes(needed), format_bytes(*available));
}

}  // namespace candor::runtime
