#include "runtime/session_settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/limits.h"

namespace candor::runtime {
namespace {

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

std::uint32_t positive(const Json& object, const char* where, const char* key, std::uint32_t otherwise) {
  if (!object.contains(key) || object[key].is_null()) return otherwise;
  const Json& value = object[key];
  const double number = value.is_number() ? value.get<double>() : 0;
  if (!(number >= 1 && number <= static_cast<double>(limits::context)) || number != std::floor(number))
    fail(ErrorCode::plan, "session.{}.{} must be an integer from 1 to {}; got {}", where, key, limits::context,
         printable(to_js_json(value)));
  return static_cast<std::uint32_t>(number);
}

}  // namespace

KvSettings kv_settings(const Json& session) {
  static constexpr std::array<std::string_view, 6> kKeys{"kvDtype",  "encoding",   "layout",
                                                         "pageSize", "windowSize", "maxSeqLen"};
  KvSettings settings;
  const Json* kv = section(session, "kvcache", kKeys);
  if (!kv) return settings;
  settings.page_positions = positive(*kv, "kvcache", "pageSize", kDefaultPagePositions);
  if (settings.page_positions % kPageGranularity != 0)
    fail(ErrorCode::plan, "session.kvcache.pageSize must be a multiple of {}; got {}", kPageGranularity,
         settings.page_positions);
  settings.max_positions = positive(*kv, "kvcache", "maxSeqLen", 0);
  if (kv->contains("layout") && !(*kv)["layout"].is_null()) {
    const Json& layout = (*kv)["layout"];
    if (layout == "paged") {
      settings.layout = KvLayout::paged;
    } else if (layout != "contiguous") {
      fail(ErrorCode::plan, "session.kvcache.layout must be contiguous or paged; got {}",
           printable(to_js_json(layout)));
    }
  }
  return settings;
}

DecodeLoopSettings decode_loop_settings(const Json& session) {
  static constexpr std::array<std::string_view, 7> kKeys{
      "batchSize", "stopCheckMode", "readbackInterval",      "ringTokens",
      "ringStop",  "ringStaging",   "disableCommandBatching"};
  DecodeLoopSettings settings;
  const Json* loop = section(session, "decodeLoop", kKeys);
  if (!loop) return settings;
  settings.batch_size = positive(*loop, "decodeLoop", "batchSize", 1);
  settings.readback_interval = positive(*loop, "decodeLoop", "readbackInterval", 1);
  if (loop->contains("stopCheckMode") && !(*loop)["stopCheckMode"].is_null()) {
    const Json& mode = (*loop)["stopCheckMode"];
    if (mode != "batch" && mode != "per-token")
      fail(ErrorCode::plan, "session.decodeLoop.stopCheckMode must be batch or per-token; got {}",
           printable(to_js_json(mode)));
    settings.stop_check_per_token = mode == "per-token";
  }
  return settings;
}

}  // namespace candor::runtime
