#include "backends/webgpu/requirements.h"

#include <algorithm>
#include <optional>

#include "backends/webgpu/bound_kernel.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernels/registry.h"

namespace candor::webgpu {
namespace {

void add_binding(Requirements& out, std::uint64_t bytes) {
  out.binding_bytes = std::max(out.binding_bytes, bytes);
  out.buffer_bytes = std::max(out.buffer_bytes, bytes);
}

void add_weights(Requirements& out, const Instruction& instruction, const Program& program) {
  std::uint64_t all = 0;
  for (const std::uint32_t weight : instruction.weights) {
    add_binding(out, program.weights[weight].bytes);
    all = checked_add(all, program.weights[weight].bytes, instruction.step);
  }
  if (!instruction.weights.empty() && binds_weights_together(instruction)) add_binding(out, all);
}

}  // namespace

void Requirements::add(const Requirements& other) {
  features.insert(other.features.begin(), other.features.end());
  binding_bytes = std::max(binding_bytes, other.binding_bytes);
  buffer_bytes = std::max(buffer_bytes, other.buffer_bytes);
  workgroup_bytes = std::max(workgroup_bytes, other.workgroup_bytes);
  workgroup_size = std::max(workgroup_size, other.workgroup_size);
  storage_buffers = std::max(storage_buffers, other.storage_buffers);
}

bool Requirements::cover(const Requirements& other) const {
  return std::includes(features.begin(), features.end(), other.features.begin(), other.features.end()) &&
         binding_bytes >= other.binding_bytes && buffer_bytes >= other.buffer_bytes &&
         workgroup_bytes >= other.workgroup_bytes && workgroup_size >= other.workgroup_size &&
         storage_buffers >= other.storage_buffers;
}

Requirements requirements_of(const WgslEntry& entry) {
  Requirements out;
  for (const WgslPass& pass : entry.passes) {
    const auto buffers = std::count_if(pass.bindings.begin(), pass.bindings.end(),
                                       [](const WgslBinding& binding) { return !binding.uniform; });
    out.workgroup_bytes = std::max(out.workgroup_bytes, pass.workgroup_bytes);
    out.workgroup_size = std::max(out.workgroup_size, pass.workgroup_size);
    out.storage_buffers = std::max(out.storage_buffers, static_cast<std::uint32_t>(buffers));
  }
  return out;
}

Requirements requirements_of(const Instruction& instruction, const Program& program, Phase phase) {
  Requirements out = requirements_of(*kernel_entry(instruction).entry);
  if (const auto* variant = kernels::builtin_registry().find(instruction.kernel, instruction.entry))
    out.features.insert(variant->required_features.begin(), variant->required_features.end());
  add_weights(out, instruction, program);
  if (instruction.kv >= 0)
    add_binding(out, checked_mul(program.kv[static_cast<std::size_t>(instruction.kv)].page_bytes, program.limits.pages,
                                 "KV cache"));
  add_binding(out, program.slot_buffers.at(program.phase(phase).values.at(instruction.result).buffer));
  add_binding(out, scratch_of(instruction, program.limits));
  return out;
}

Requirements requirements_of(const Program& program) {
  Requirements out;
  for (const Phase phase : {Phase::prefill, Phase::decode})
    for (const Instruction& instruction : program.phase(phase).instructions)
      out.add(requirements_of(instruction, program, phase));
  return out;
}

std::vector<std::string> missing(const Requirements& wanted, const Adapter& adapter) {
  const api::Limits& limits = adapter.limits();
  std::vector<std::string> out;
  for (const std::string& feature : wanted.features)
    if (!adapter.features().contains(feature)) out.push_back("feature " + feature);
  const auto bytes = [&](const char* what, std::uint64_t needed, std::uint64_t has) {
    if (needed > has) out.push_back(fmt::format("{} {} (it has {})", format_bytes(needed), what, format_bytes(has)));
  };
  bytes("of workgroup memory", wanted.workgroup_bytes, limits.max_workgroup_bytes);
  bytes("in one binding", wanted.binding_bytes, limits.max_storage_binding_bytes);
  bytes("in one buffer", wanted.buffer_bytes, limits.max_buffer_bytes);
  if (wanted.workgroup_size > limits.max_workgroup_invocations)
    out.push_back(fmt::format("workgroups of {} (it has {})", wanted.workgroup_size, limits.max_workgroup_invocations));
  if (wanted.storage_buffers > limits.max_storage_buffers)
    out.push_back(fmt::format("{} storage buffers (it has {})", wanted.storage_buffers, limits.max_storage_buffers));
  return out;
}

std::vector<UnsupportedStep> unsupported_steps(const Program& program, const Adapter& adapter) {
  std::vector<UnsupportedStep> out;
  std::set<std::string> seen;
  for (const Phase phase : {Phase::prefill, Phase::decode})
    for (const Instruction& instruction : program.phase(phase).instructions) {
      UnsupportedStep step{instruction.step, instruction.kernel + "#" + instruction.entry,
                           missing(requirements_of(instruction, program, phase), adapter)};
      if (!step.missing.empty() && seen.insert(step.step + " " + step.kernel).second) out.push_back(std::move(step));
    }
  return out;
}

void check_adapter(const Program& program, const Adapter& adapter) {
  const std::vector<UnsupportedStep> steps = unsupported_steps(program, adapter);
  if (steps.empty()) return;
  const std::string more = steps.size() == 1 ? "" : fmt::format(", nor can {} more steps", steps.size() - 1);
  fail(
      ErrorCode::device,
      "adapter \"{}\" cannot run step \"{}\" ({}): it needs {}{}; use a smaller quantization, a shorter --context or a "
      "smaller --prefill-chunk, or name another --adapter; candor plan lint --adapter lists all",
      printable(adapter.name()), steps[0].step, steps[0].kernel, fmt::join(steps[0].missing, ", "), more);
}

}  // namespace candor::webgpu
