#include "runtime/loaded_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "backends/cpu/backend.h"
#include "backends/webgpu/backend.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/js_value.h"
#include "base/limits.h"
#include "runtime/binder.h"
#include "runtime/kv_pages.h"
#include "runtime/session_settings.h"

namespace candor::runtime {
namespace {

/// A plan with LongRoPE's short factors holds no more positions than those are for; another plan of the model can.
std::string remedy_for_longer(const Json& manifest, std::uint32_t context) {
  const js::Value factors = js::at_path(&manifest, {"inference", "rope", "longRopeFactors"});
  if (js::nullish(factors) || *factors != "short") return {};
  return fmt::format("; its plan has LongRoPE's short factors: convert the model again with --context {}", context);
}

std::uint32_t context_of(const CompiledModel& compiled, const LoadOptions& options, const KvSettings& settings) {
  const js::Value overlaid = js::at_path(&compiled.overlay, {"session", "kvcache", "maxSeqLen"});
  if (options.context != 0 && !js::nullish(overlaid) && options.context != settings.max_positions)
    fail(ErrorCode::usage, "a context of {} positions is asked for, and session.kvcache.maxSeqLen={}; give one of them",
         options.context, settings.max_positions);
  std::uint32_t context = options.context != 0 ? options.context : settings.max_positions;
  if (context == 0)
    context = static_cast<std::uint32_t>(std::min<std::uint64_t>(compiled.max_positions, kDefaultContext));
  if (context > compiled.max_positions)
    fail(ErrorCode::resource, "a context of {} positions exceeds the model's {}{}", context, compiled.max_positions,
         remedy_for_longer(compiled.manifest, context));
  return context;
}

ProgramLimits program_limits(const CompiledModel& compiled, const LoadOptions& options, const DecodeLoop& loop) {
  const KvSettings settings = kv_settings(compiled.plan.session);
  ProgramLimits limits;
  limits.context = context_of(compiled, options, settings);
  limits.rows = std::max(1u, std::min(options.prefill_rows, limits.context));
  limits.rows = std::max(limits.rows, options.sequences);
  limits.sequences = std::max(1u, options.sequences);
  limits.layout = settings.layout;
  // Contiguous layout is one page a sequence; kernels walk a page in blocks.
  limits.page_positions = settings.layout == CacheLayout::contiguous
                              ? (limits.context + kPageGranularity - 1) / kPageGranularity * kPageGranularity
                              : settings.page_positions;
  if (settings.layout == CacheLayout::sliding) {
    limits.window = sliding_window(settings, compiled.flow);
    limits.overrun = std::max(loop.tokens_between_reads(), loop.batch_size * loop.ring_staging);
  }
  if (options.prefix_positions != 0) {
    if (settings.layout != CacheLayout::paged)
      fail(ErrorCode::usage,
           "a prefix cache of {} positions shares pages of the KV cache, and layout {} {}; set session "
           "kvcache.layout=paged",
           options.prefix_positions, to_string(settings.layout),
           settings.layout == CacheLayout::sliding ? "gives the first ones back" : "is one page a sequence");
    limits.cached_pages = (options.prefix_positions - 1) / limits.page_positions + 1;
  }
  const std::uint64_t pages = std::uint64_t{limits.sequences} * KvPages::pages_a_sequence(limits) + limits.cached_pages;
  limits.pages = checked_cast<std::uint32_t>(pages, "pages of the KV cache");
  return limits;
}

}  // namespace

std::unique_ptr<Backend> make_backend(const std::string& name, const LoadOptions& options) {
  if (name == "webgpu")
    return webgpu::make_webgpu_backend({.library = options.webgpu_library, .adapter = options.adapter});
  if (name != "cpu") fail(ErrorCode::device, "backend \"{}\" is unknown; known are cpu, webgpu", printable(name));
  return cpu::make_cpu_backend({options.threads, cpu::choose_isa(options.isa)});
}

Program bind_model(const CompiledModel& compiled, const Backend& backend, const LoadOptions& options) {
  const DecodeLoop loop = decode_loop_settings(compiled.plan.session);
  if (loop.ring_staging != 1 && !backend.overlaps_reads())
    fail(ErrorCode::plan,
         "session.decodeLoop.ringStaging={} would do nothing: backend {} reads tokens where they were written, one "
         "read-back at a time; leave it out, or set 1",
         loop.ring_staging, backend.name());
  return bind({compiled.flow, backend, compiled.plan_digest, program_limits(compiled, options, loop),
               [&](std::string_view name) { return compiled.source.find(name); }, loop});
}

LoadedModel::LoadedModel(CompiledModel compiled, const LoadOptions& options)
    : compiled_(std::move(compiled)), backend_(make_backend(backend_of(compiled_), options)) {
  program_ = bind_model(compiled_, *backend_, options);
  if (backend_->in_main_memory()) check_memory(program_);
  const std::uint64_t total = program_.packed_bytes();
  backend_->load(
      program_, [this](const ProgramWeight& weight) { return stored_bytes(weight); },
      [&](std::uint64_t done) {
        if (options.progress) options.progress(done, total);
      });
  drop_packed();
  packing_ = {};
}

/// A tensor cut across shards has no place in one map, so it is put together here.
std::span<const std::byte> LoadedModel::stored_bytes(const ProgramWeight& weight) {
  drop_packed();
  const ModelSource& source = compiled_.source;
  const TensorInfo& tensor = *source.find(weight.tensor);
  const std::size_t size = tensor.bytes / weight.parts;
  const std::size_t first = weight.part * size;
  if (!weight.layout.empty()) packed_ = {&tensor, first, size};
  if (tensor.extents.size() == 1) return source.bytes(tensor).subspan(first, size);
  std::vector<std::byte>& out = weight.layout.empty() ? joined_.emplace_back() : packing_;
  out.resize(size);
  source.copy_bytes(tensor, first, out);
  return out;
}

/// What has been packed is read from there; its pages of the file would be a second copy.
void LoadedModel::drop_packed() {
  if (packed_.tensor) compiled_.source.drop_pages(*packed_.tensor, packed_.first, packed_.size);
  packed_ = {};
}

}  // namespace candor::runtime
