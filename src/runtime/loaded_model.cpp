#include "runtime/loaded_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "backends/cpu/backend.h"
#include "base/error.h"
#include "base/limits.h"
#include "runtime/binder.h"
#include "runtime/session_settings.h"

namespace candor::runtime {
namespace {

ProgramLimits program_limits(const CompiledModel& compiled, const LoadOptions& options) {
  const KvSettings settings = kv_settings(compiled.plan.session);
  ProgramLimits limits;
  limits.context = options.context != 0 ? options.context : settings.max_positions;
  if (limits.context == 0)
    limits.context = static_cast<std::uint32_t>(std::min<std::uint64_t>(compiled.max_positions, kDefaultContext));
  if (limits.context > compiled.max_positions)
    fail(ErrorCode::resource, "a context of {} positions exceeds the model's {}", limits.context,
         compiled.max_positions);
  limits.rows = std::max(1u, std::min(options.prefill_rows, limits.context));
  limits.rows = std::max(limits.rows, options.sequences);
  limits.sequences = std::max(1u, options.sequences);
  // Contiguous layout is one page a sequence; kernels walk a page in blocks.
  limits.page_positions = settings.layout == KvLayout::paged
                              ? settings.page_positions
                              : (limits.context + kPageGranularity - 1) / kPageGranularity * kPageGranularity;
  limits.pages = limits.sequences * ((limits.context + limits.page_positions - 1) / limits.page_positions);
  return limits;
}

}  // namespace

std::unique_ptr<Backend> make_backend(const std::string& name, const LoadOptions& options) {
  if (name != "cpu") fail(ErrorCode::device, "backend \"{}\" is unknown; known is cpu", printable(name));
  return cpu::make_cpu_backend({options.threads, cpu::choose_isa(options.isa)});
}

Program bind_model(const CompiledModel& compiled, const Backend& backend, const LoadOptions& options) {
  return bind({compiled.flow, backend, compiled.plan_digest, program_limits(compiled, options),
               [&](std::string_view name) { return compiled.source.find(name); }});
}

LoadedModel::LoadedModel(CompiledModel compiled, const LoadOptions& options)
    : compiled_(std::move(compiled)), backend_(make_backend("cpu", options)) {
  program_ = bind_model(compiled_, *backend_, options);
  check_memory(program_);
  const std::uint64_t total = program_.packed_bytes();
  backend_->load(
      program_, [this](const ProgramWeight& weight) { return stored_bytes(weight); },
      [&](std::uint64_t done) {
        if (options.progress) options.progress(done, total);
      });
  packing_ = {};
}

/// A tensor cut across shards has no place in one map, so it is put together here.
std::span<const std::byte> LoadedModel::stored_bytes(const ProgramWeight& weight) {
  const TensorInfo& tensor = *compiled_.source.find(weight.tensor);
  const std::size_t part = tensor.bytes / weight.parts;
  if (tensor.extents.size() == 1) return compiled_.source.bytes(tensor).subspan(weight.part * part, part);
  std::vector<std::byte>& out = weight.layout.empty() ? joined_.emplace_back() : packing_;
  out.resize(tensor.bytes);
  compiled_.source.copy_bytes(tensor, out);
  return std::span(out).subspan(weight.part * part, part);
}

}  // namespace candor::runtime
