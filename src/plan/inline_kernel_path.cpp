#include "plan/inline_kernel_path.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/limits.h"
#include "plan/resolve.h"
#include "plan/schema.h"

namespace candor::plan {
namespace {

constexpr std::uint64_t kLayerSteps = 1ull << 24;     // layers × steps that are looked at
constexpr std::uint64_t kOverrideSteps = 1ull << 18;  // steps written in overrides

/// A step as a kernel path has it; nothing for a cast.
std::optional<Json> to_path_step(const Json& step) {
  const js::Value op = js::get(&step, "op");
  if (js::strict_equal(op, "cast")) return std::nullopt;
  static const Json kMain = "main";
  Json out = Json::object();
  out["op"] = *op;
  out["kernel"] = *js::get(&step, "kernel");
  out["entry"] = *js::coalesce(js::get(&step, "entry"), &kMain);
  for (const std::string_view key : {"weights", "constants"})
    if (const js::Value value = js::get(&step, key); js::truthy(value)) out[std::string(key)] = *value;
  return out;
}

/// Fields are compared as they are written: "BOTH" or " layer " passed validation but match nothing here.
bool is_in_section(const Json& step, std::string_view section) {
  return js::strict_equal(js::get(&step, "section"), section);
}

bool is_in_raw_phase(const Json& step, std::string_view phase) {
  const js::Value value = js::get(&step, "phase");
  return js::strict_equal(value, "both") || js::strict_equal(value, phase);
}

Json section_steps(const std::vector<Json>& steps, std::string_view section, bool decode_only) {
  Json out = Json::array();
  for (const Json& step : steps) {
    if (!is_in_section(step, section) || (decode_only && !is_in_raw_phase(step, "decode"))) continue;
    if (auto path_step = to_path_step(step)) out.push_back(*std::move(path_step));
  }
  return out;
}

/// A step of the layers, in the form the lists of single layers are made and compared in.
struct LayerStep {
  Json step;
  std::uint32_t text = 0;  ///< steps with the same JSON text have the same number
  bool in_decode = false;
  bool in_prefill = false;
  bool in_all = false;
  std::unordered_set<std::uint32_t> layers;  ///< where not in all

  [[nodiscard]] bool has(std::uint32_t layer) const { return in_all || layers.contains(layer); }
};

std::unordered_set<std::uint32_t> small_layers(js::Value layers) {
  std::unordered_set<std::uint32_t> out;
  if (!js::is_array(layers)) return out;
  for (const Json& layer : *layers)
    if (layer.get<double>() < limits::layers) out.insert(static_cast<std::uint32_t>(layer.get<double>()));
  return out;
}

std::vector<LayerStep> collect_layer_steps(const std::vector<Json>& steps) {
  std::vector<LayerStep> out;
  std::unordered_map<std::string, std::uint32_t> texts;
  for (const Json& step : steps) {
    if (!is_in_section(step, "layer")) continue;
    auto path_step = to_path_step(step);
    if (!path_step) continue;
    LayerStep layer_step;
    layer_step.text = texts.emplace(to_js_json(*path_step), static_cast<std::uint32_t>(texts.size())).first->second;
    layer_step.step = *std::move(path_step);
    layer_step.in_decode = is_in_raw_phase(step, "decode");
    layer_step.in_prefill = is_in_raw_phase(step, "prefill");
    const js::Value layers = js::get(&step, "layers");
    layer_step.in_all = js::strict_equal(layers, "all");
    layer_step.layers = small_layers(layers);
    out.push_back(std::move(layer_step));
  }
  return out;
}

/// The steps of one layer in one phase, as indices.
using LayerList = std::vector<std::uint32_t>;

struct LayerLists {
  LayerList decode;
  LayerList prefill;
};

LayerLists lists_of(const std::vector<LayerStep>& steps, std::uint32_t layer) {
  LayerLists lists;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].has(layer)) continue;
    if (steps[i].in_decode) lists.decode.push_back(i);
    if (steps[i].in_prefill) lists.prefill.push_back(i);
  }
  return lists;
}

bool same_text(const std::vector<LayerStep>& steps, const LayerList& a, const LayerList& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](std::uint32_t x, std::uint32_t y) { return steps[x].text == steps[y].text; });
}

Json to_json(const std::vector<LayerStep>& steps, const LayerList& list) {
  Json out = Json::array();
  for (const std::uint32_t i : list) out.push_back(steps[i].step);
  return out;
}

Json build_overrides(const std::vector<LayerStep>& steps, const LayerLists& path, std::int64_t layers) {
  if (layers <= 0) return Json::array();
  if (layers > limits::layers) refuse("numLayers is {}; at most {} layers are supported", layers, limits::layers);
  if (static_cast<std::uint64_t>(layers) * steps.size() > kLayerSteps)
    refuse("{} layers of {} layer steps each are more than the {} that an inline kernel path may have", layers,
           steps.size(), kLayerSteps);
  Json overrides = Json::array();
  std::uint64_t written = 0;
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    const LayerLists lists = lists_of(steps, layer);
    if (same_text(steps, lists.decode, path.decode) && same_text(steps, lists.prefill, path.prefill)) continue;
    const LayerList& list = lists.decode.empty() ? lists.prefill : lists.decode;
    if (list.empty()) continue;
    written += list.size();
    if (written > kOverrideSteps)
      refuse("the layers differ in more than the {} steps that an inline kernel path may have", kOverrideSteps);
    Json layer_override = Json::object();
    layer_override["layers"] = Json::array({layer});
    layer_override["steps"] = to_json(steps, list);
    overrides.push_back(std::move(layer_override));
  }
  return overrides;
}

}  // namespace

std::optional<Json> build_inline_kernel_path(const std::vector<Json>& steps, const Json& session,
                                             const std::string& model_id, std::int64_t layers) {
  const Json activation = session_activation_dtype(session);
  const js::Value session_kv = js::at_path(&session, {"kvcache", "kvDtype"});
  const std::string kv_dtype =
      normalize_dtype(js::coalesce(session_kv, &activation), "sessionDefaults.kvcache.kvDtype");
  const std::vector<LayerStep> layer_steps = collect_layer_steps(steps);
  LayerLists first = lists_of(layer_steps, 0);
  if (first.decode.empty() && first.prefill.empty()) return std::nullopt;
  if (first.decode.empty()) first.decode = first.prefill;
  if (first.prefill.empty()) first.prefill = first.decode;

  Json path = Json::object();
  path["id"] = fmt::format("{}-execution-v0", model_id.empty() ? "model" : model_id);
  path["name"] = "Execution v0 inline kernel path";
  path["description"] = "Generated from manifest.inference.execution.steps";
  path["activationDtype"] = activation;
  path["kvDtype"] = kv_dtype;
  path["decode"]["steps"] = to_json(layer_steps, first.decode);
  path["prefill"]["steps"] = to_json(layer_steps, first.prefill);
  if (Json overrides = build_overrides(layer_steps, first, layers); !overrides.empty())
    path["layerOverrides"] = std::move(overrides);
  for (const char* section : {"preLayer", "postLayer", "sampling"}) {
    Json list = section_steps(steps, section, std::string_view(section) == "sampling");
    if (!list.empty()) path[section] = std::move(list);
  }
  return path;
}

}  // namespace candor::plan
