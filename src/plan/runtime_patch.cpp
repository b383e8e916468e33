#include "plan/runtime_patch.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace candor::plan {
namespace {

constexpr std::array<std::string_view, 9> kPipelineOps = {"save", "load",         "conv", "attention", "rmsnorm",
                                                          "ffn",  "residual_add", "cast", "noop"};

Json pipeline_step(const ResolvedStep& step) {
  Json out = Json::object();
  out["op"] = step.op;
  out["phase"] = step.phase;
  out["src"] = step.src;
  out["dst"] = step.dst;
  for (const char* key : {"residual", "a", "b", "variant", "skipInputNorm"})
    if (const js::Value value = js::get(&step.raw, key)) out[key] = *value;
  out["inputDtype"] = step.precision.input;
  out["outputDtype"] = step.precision.output;
  for (const char* key : {"fromDtype", "toDtype", "probeStage", "name", "weight"})
    if (const js::Value value = js::get(&step.raw, key); js::truthy(value)) out[key] = *value;
  return out;
}

/// The members of `object` that are truthy among `keys`.
Json truthy_members(js::Value object, std::initializer_list<const char*> keys) {
  Json out = Json::object();
  for (const char* key : keys)
    if (const js::Value value = js::get(object, key); js::truthy(value)) out[key] = *value;
  return out;
}

}  // namespace

std::optional<Json> build_layer_pipeline(const std::vector<const ResolvedStep*>& steps) {
  Json list = Json::array();
  for (const ResolvedStep* step : steps) {
    if (step->section != "layer") continue;
    if (std::find(kPipelineOps.begin(), kPipelineOps.end(), step->op) == kPipelineOps.end()) return std::nullopt;
    list.push_back(pipeline_step(*step));
  }
  if (list.empty()) return std::nullopt;
  Json pipeline = Json::object();
  pipeline["steps"] = std::move(list);
  pipeline["overrides"] = Json::array();
  return pipeline;
}

Json build_session_patch(const Json& session) {
  Json patch = Json::object();
  const js::Value defaults = js::at_path(&session, {"compute", "defaults"});
  Json compute = truthy_members(defaults, {"activationDtype"});
  if (Json dtypes = truthy_members(defaults, {"mathDtype", "accumDtype", "outputDtype"}); !dtypes.empty())
    compute["defaults"] = std::move(dtypes);
  if (!compute.empty()) patch["compute"] = std::move(compute);
  if (const js::Value kvcache = js::get(&session, "kvcache"); js::truthy(kvcache)) patch["kvcache"] = *kvcache;
  if (const js::Value loop = js::get(&session, "decodeLoop"); js::truthy(loop)) {
    Json batching = Json::object();
    for (const char* key : {"batchSize", "stopCheckMode", "readbackInterval", "ringTokens", "ringStop", "ringStaging"})
      if (const js::Value value = js::get(loop, key)) batching[key] = *value;
    patch["batching"] = std::move(batching);
  }
  return patch;
}

}  // namespace candor::plan
