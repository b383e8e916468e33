#include "runtime/session_settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/js_value.h"
#include "base/limits.h"
#include "plan/dataflow.h"
#include "plan/execution_plan.h"

namespace candor::runtime {
namespace {

constexpr std::uint32_t kMostBatches = 65'536;

/// The object under `key`, or null; every one of its keys must be in `known`.
const Json* section(const Json& session, const char* key, std::span<const std::string_view> known) {
  if (!session.is_object() || !session.contains(key) || session[key].is_null()) return nullptr;
  const Json& value = session[key];
  if (!value.is_object()) fail(ErrorCode::plan, "session.{} must be an object or null", key);
  for (const auto& [name, entry] : value.items())
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail(ErrorCode::plan, "session.{}.{} is unknown; known are {}", key, printable(name), fmt::join(known, ", "));
  return &value;
}

std::uint32_t positive(const Json& object, const char* where, const char* key, std::uint32_t otherwise,
                       std::uint64_t most) {
  if (!object.contains(key) || object[key].is_null()) return otherwise;
  const Json& value = object[key];
  const double number = value.is_number() ? value.get<double>() : 0;
  if (!(number >= 1 && number <= static_cast<double>(most)) || number != std::floor(number))
    fail(ErrorCode::plan, "session.{}.{} must be an integer from 1 to {}; got {}", where, key, most,
         printable(to_js_json(value)));
  return static_cast<std::uint32_t>(number);
}

CacheLayout cache_layout(const Json& kv) {
  const js::Value layout = js::get(&kv, "layout");
  if (js::nullish(layout)) return CacheLayout::contiguous;
  for (const CacheLayout known : {CacheLayout::contiguous, CacheLayout::paged, CacheLayout::sliding})
    if (*layout == to_string(known)) return known;
  fail(ErrorCode::plan, "session.kvcache.layout must be contiguous, paged or sliding; got {}",
       printable(to_js_json(*layout)));
}

void check_ring(const char* key, std::uint32_t batches, std::uint32_t waiting) {
  if (batches < waiting)
    fail(ErrorCode::plan,
         "session.decodeLoop.{0}={1} is too small: {2} batches wait between two read-backs (readbackInterval); set {0} "
         "to {2} or more, or readbackInterval to {1} or less",
         key, batches, waiting);
}

/// Layout settings that the layout has no use for.
void check_layout_overlay(js::Value overlay, const Json& session) {
  const CacheLayout layout = kv_settings(session).layout;
  if (layout == CacheLayout::contiguous && !js::nullish(js::get(overlay, "pageSize")))
    fail(
        ErrorCode::plan,
        "session.kvcache.pageSize={} would do nothing: layout contiguous is one page a sequence; set kvcache.layout to "
        "paged or sliding too",
        printable(to_js_json(*js::get(overlay, "pageSize"))));
  if (layout != CacheLayout::sliding && !js::nullish(js::get(overlay, "windowSize")))
    fail(
        ErrorCode::plan,
        "session.kvcache.windowSize={} would do nothing: layout {} keeps every position; set kvcache.layout to sliding "
        "too",
        printable(to_js_json(*js::get(overlay, "windowSize"))), to_string(layout));
}

/// A KV dtype that leaves the cache as it is, because the manifest states its encoding. (A step's own kvIO must agree
/// with the session's, which the compiler checks.)
void check_dtype_overlay(js::Value overlay, const plan::ExecutionPlan& plan) {
  const js::Value wanted = js::get(overlay, "kvDtype");
  if (js::nullish(wanted)) return;
  const std::string dtype = js::to_lower(js::trimmed_text(wanted));
  const js::Value encoding = js::at_path(&plan.session, {"kvcache", "encoding"});
  if (!js::nullish(encoding) && js::nullish(js::get(overlay, "encoding")) && js::to_string(encoding) != dtype)
    fail(ErrorCode::plan,
         "session.kvcache.kvDtype={} would leave the cache in {}, which the manifest's kvcache.encoding says; set "
         "kvcache.encoding too",
         printable(dtype), printable(js::to_string(encoding)));
}

/// The step that keeps the cache `kv`.
const plan::StepInstance* attention_of(const plan::Dataflow& flow, std::size_t kv) {
  for (const auto* phase : {&flow.prefill, &flow.decode})
    for (const plan::StepInstance& step : phase->steps)
      if (step.kv == static_cast<std::int32_t>(kv)) return &step;
  return nullptr;
}

}  // namespace

KvSettings kv_settings(const Json& session) {
  static constexpr std::array<std::string_view, 6> kKeys{"kvDtype",  "encoding",   "layout",
                                                         "pageSize", "windowSize", "maxSeqLen"};
  KvSettings settings;
  const Json* kv = section(session, "kvcache", kKeys);
  if (!kv) return settings;
  settings.layout = cache_layout(*kv);
  settings.page_positions = positive(*kv, "kvcache", "pageSize", kDefaultPagePositions, limits::context);
  if (settings.page_positions % kPageGranularity != 0)
    fail(ErrorCode::plan, "session.kvcache.pageSize must be a multiple of {}; got {}", kPageGranularity,
         settings.page_positions);
  settings.window = positive(*kv, "kvcache", "windowSize", 0, limits::context);
  settings.max_positions = positive(*kv, "kvcache", "maxSeqLen", 0, limits::context);
  return settings;
}

DecodeLoop decode_loop_settings(const Json& session) {
  static constexpr std::array<std::string_view, 7> kKeys{
      "batchSize", "stopCheckMode", "readbackInterval",      "ringTokens",
      "ringStop",  "ringStaging",   "disableCommandBatching"};
  DecodeLoop settings;
  const Json* loop = section(session, "decodeLoop", kKeys);
  if (!loop) return settings;
  const auto number = [&](const char* key, std::uint32_t otherwise) {
    return positive(*loop, "decodeLoop", key, otherwise, kMostBatches);
  };
  settings.batch_size = number("batchSize", 1);
  settings.readback_interval = number("readbackInterval", 1);
  settings.ring_tokens = number("ringTokens", settings.readback_interval);
  settings.ring_stop = number("ringStop", settings.readback_interval);
  settings.ring_staging = number("ringStaging", 1);
  check_ring("ringTokens", settings.ring_tokens, settings.readback_interval);
  if (const std::uint64_t tokens = std::uint64_t{settings.batch_size} * settings.ring_tokens; tokens > limits::context)
    fail(ErrorCode::plan, "session.decodeLoop: the ring holds batchSize × ringTokens = {} tokens, more than {}", tokens,
         limits::context);
  const js::Value mode = js::get(loop, "stopCheckMode");
  if (!js::nullish(mode)) {
    if (*mode != "batch" && *mode != "per-token")
      fail(ErrorCode::plan, "session.decodeLoop.stopCheckMode must be batch or per-token; got {}",
           printable(to_js_json(*mode)));
    settings.stop_check_per_token = *mode == "per-token";
  }
  if (!settings.stop_check_per_token) check_ring("ringStop", settings.ring_stop, settings.readback_interval);
  if (settings.ring_staging != 1 && settings.stop_check_per_token)
    fail(ErrorCode::plan,
         "session.decodeLoop.ringStaging={} would do nothing: stopCheckMode per-token looks at each token before the "
         "next is begun; leave it out, or set stopCheckMode=batch",
         settings.ring_staging);
  if (const js::Value batching = js::get(loop, "disableCommandBatching"); !js::nullish(batching))
    fail(
        ErrorCode::plan,
        "session.decodeLoop.disableCommandBatching={} would do nothing: this backend issues one instruction at a time; "
        "leave it out",
        printable(to_js_json(*batching)));
  return settings;
}

void check_session_overlay(const Json& overlay, const plan::ExecutionPlan& plan) {
  const js::Value session = js::get(&overlay, "session");
  check_layout_overlay(js::get(session, "kvcache"), plan.session);
  check_dtype_overlay(js::get(session, "kvcache"), plan);
}

std::uint32_t sliding_window(const KvSettings& settings, const plan::Dataflow& flow) {
  std::uint64_t widest = 1;
  for (std::size_t i = 0; i < flow.kv.size(); ++i) {
    const plan::KvState& cache = flow.kv[i];
    const std::uint64_t seen = cache.window == 0 ? UINT64_MAX : cache.window;
    widest = std::max(widest, seen);
    if (seen <= (settings.window == 0 ? limits::context : settings.window)) continue;
    const plan::StepInstance* step = attention_of(flow, i);
    fail(ErrorCode::plan,
         "session.kvcache.layout=sliding keeps {}, but step \"{}\" (layer {}) sees {}; use layout paged, or patch the "
         "step's constant \"window\" (executionPatch.set with its constants)",
         settings.window == 0 ? std::string("what the attention steps' windows say")
                              : fmt::format("{} positions (windowSize)", settings.window),
         step ? step->step->id : std::string("?"), cache.layer,
         cache.window == 0 ? std::string("every position") : fmt::format("{} positions", cache.window));
  }
  return settings.window == 0 ? static_cast<std::uint32_t>(widest) : settings.window;
}

}  // namespace candor::runtime
