#include "backends/program.h"

#include <numeric>

#include "backends/backend.h"
#include "base/error.h"

namespace candor {
namespace {

Json value_json(const ProgramValue& value) {
  return {{"slot", value.slot},     {"encoding", to_string(value.encoding)},
          {"cols", value.cols},     {"rows", value.rows == kernels::RowKind::tokens ? "tokens" : "sequences"},
          {"offset", value.offset}, {"rowBytes", value.row_bytes}};
}

Json instruction_json(const Program& program, const ProgramPhase& phase, const Instruction& instruction) {
  Json operands = Json::array();
  for (const ProgramOperand& operand : instruction.operands)
    operands.push_back(operand.is_external ? Json(to_string(operand.external))
                                           : value_json(phase.values[operand.value]));
  Json weights = Json::array();
  for (const std::uint32_t weight : instruction.weights) weights.push_back(program.weights[weight].tensor);
  Json out{{"step", instruction.step},
           {"op", instruction.op},
           {"layer", instruction.layer < 0 ? Json() : Json(instruction.layer)},
           {"kernel", instruction.kernel},
           {"entry", instruction.entry},
           {"operation", instruction.operation},
           {"operands", std::move(operands)},
           {"weights", std::move(weights)},
           {"result", value_json(phase.values[instruction.result])}};
  if (instruction.kv >= 0) out["kv"] = instruction.kv;
  return out;
}

}  // namespace

std::string_view to_string(ExternalInput external) {
  switch (external) {
    case ExternalInput::tokens:
      return "$tokens";
    case ExternalInput::positions:
      return "$positions";
    case ExternalInput::types:
      return "$types";
    case ExternalInput::sampler:
      return "$sampler";
  }
  return "$tokens";
}

std::optional<std::vector<double>> Backend::step_seconds(Phase, const Batch&) {
  return std::nullopt;
}

void Backend::submit_chained(std::span<const Batch>, std::uint32_t, bool) {
  fail(ErrorCode::internal, "backend {} runs one decode at a time", name());
}

std::vector<std::uint32_t> Backend::collect_chained() {
  fail(ErrorCode::internal, "backend {} runs one decode at a time", name());
}

std::vector<std::uint32_t> Backend::run_chained(std::span<const Batch> batches, std::uint32_t sampled) {
  submit_chained(batches, sampled, false);
  return collect_chained();
}

void Backend::copy_kv_page(std::uint32_t, std::uint32_t) {
  fail(ErrorCode::unsupported,
       "backend {} does not copy pages of the KV cache, so sequences can part only where a page ends; fork at a "
       "multiple "
       "of kvcache.pageSize",
       name());
}

std::string_view to_string(Phase phase) {
  return phase == Phase::prefill ? "prefill" : "decode";
}

std::string_view to_string(CacheLayout layout) {
  switch (layout) {
    case CacheLayout::contiguous:
      return "contiguous";
    case CacheLayout::paged:
      return "paged";
    case CacheLayout::sliding:
      return "sliding";
  }
  return "contiguous";
}

std::uint64_t Program::kv_bytes() const {
  return std::accumulate(kv.begin(), kv.end(), std::uint64_t{0}, [&](std::uint64_t sum, const ProgramKv& cache) {
    return sum + cache.page_bytes * limits.pages;
  });
}

std::uint64_t Program::packed_bytes() const {
  std::uint64_t sum = 0;
  for (const ProgramWeight& weight : weights) sum += weight.layout.empty() ? 0 : weight.bytes;
  return sum;
}

std::uint64_t Program::mapped_bytes() const {
  std::uint64_t sum = 0;
  for (const ProgramWeight& weight : weights) sum += weight.layout.empty() ? weight.bytes : 0;
  return sum;
}

Json Program::summary() const {
  Json out{{"backend", backend},
           {"planDigest", plan_digest},
           {"limits",
            {{"rows", limits.rows},
             {"sequences", limits.sequences},
             {"context", limits.context},
             {"pagePositions", limits.page_positions},
             {"pages", limits.pages},
             {"cachedPages", limits.cached_pages},
             {"layout", candor::to_string(limits.layout)},
             {"window", limits.window == 0 ? Json() : Json(limits.window)}}},
           {"decodeLoop",
            {{"batchSize", decode_loop.batch_size},
             {"stopCheckMode", decode_loop.stop_check_per_token ? "per-token" : "batch"},
             {"readbackInterval", decode_loop.readback_interval},
             {"ringTokens", decode_loop.ring_tokens},
             {"ringStop", decode_loop.ring_stop},
             {"ringStaging", decode_loop.ring_staging}}},
           {"memory",
            {{"packedWeights", packed_bytes()},
             {"mappedWeights", mapped_bytes()},
             {"kvCache", kv_bytes()},
             {"buffers", arena_bytes},
             {"scratch", scratch_bytes}}}};
  Json caches = Json::array();
  for (const ProgramKv& cache : kv)
    caches.push_back({{"layer", cache.layer},
                      {"kvHeads", cache.kv_heads},
                      {"headDim", cache.head_dim},
                      {"window", cache.window},
                      {"encoding", to_string(cache.encoding)},
                      {"pageBytes", cache.page_bytes}});
  out["kv"] = std::move(caches);
  return out;
}

Json Program::to_json() const {
  Json out = summary();
  Json weight_list = Json::array();
  for (const ProgramWeight& weight : weights)
    weight_list.push_back({{"tensor", weight.tensor},
                           {"encoding", to_string(weight.encoding)},
                           {"rows", weight.rows},
                           {"cols", weight.cols},
                           {"layout", weight.layout.empty() ? "stored" : weight.layout},
                           {"bytes", weight.bytes}});
  out["weights"] = std::move(weight_list);
  for (const Phase which : {Phase::prefill, Phase::decode}) {
    Json list = Json::array();
    for (const Instruction& instruction : phase(which).instructions)
      list.push_back(instruction_json(*this, phase(which), instruction));
    out[std::string(candor::to_string(which))] = std::move(list);
  }
  return out;
}

}  // namespace candor
