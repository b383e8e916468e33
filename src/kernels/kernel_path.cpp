#include "kernels/kernel_path.h"

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_set>

#include "base/error.h"

namespace candor::kernels {
namespace {

[[noreturn]] void malformed(std::string_view where, std::string_view what, js::Value got) {
  fail(ErrorCode::format, "[ExecutionV0] kernel path: {} must be {}; got {}", where, what, js::to_string(got));
}

/// `owner.key`, where owner must exist.
js::Value member(js::Value owner, std::string_view key, std::string_view where) {
  if (js::nullish(owner)) malformed(where, "an object", owner);
  return js::get(owner, key);
}

/// A list of steps as an array.
const Json& step_list(js::Value steps, std::string_view where) {
  if (!js::is_array(steps)) malformed(where, "an array of steps", steps);
  return *steps;
}

/// A list of steps that may be missing.
const Json& optional_list(js::Value steps, std::string_view where) {
  static const Json kNone = Json::array();
  return js::nullish(steps) ? kNone : step_list(steps, where);
}

js::Value field_or_null(js::Value path, std::string_view key) {
  static const Json kNull;
  const js::Value value = js::get(path, key);
  return js::truthy(value) ? value : &kNull;
}

/// Array.prototype.includes or String.prototype.includes of `layers`.
bool lists_layer(js::Value layers, js::Value layer) {
  if (js::is_string(layers))
    return layers->get_ref<const std::string&>().find(js::to_string(layer)) != std::string::npos;
  if (!js::is_array(layers)) malformed("layerOverrides[].layers", "an array of layers", layers);
  return std::any_of(layers->begin(), layers->end(), [&](const Json& l) { return js::strict_equal(&l, layer); });
}

void validate_steps(const Json& steps, std::string_view context, std::vector<std::string>& errors) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!js::truthy(member(&steps[i], "op", fmt::format("{}[{}]", context, i))))
      errors.push_back(fmt::format("{}[{}]: missing op", context, i));
    if (!js::truthy(js::get(&steps[i], "kernel"))) errors.push_back(fmt::format("{}[{}]: missing kernel", context, i));
  }
}

bool has_steps(js::Value steps) {
  if (js::is_string(steps)) return js::truthy(steps);
  return js::is_array(steps) && !steps->empty();
}

/// The kernels of decode, prefill, preLayer, postLayer and the layer overrides.
bool any_kernel(js::Value path, const std::function<bool(std::string_view)>& test) {
  if (!js::truthy(path)) return false;
  std::vector<const Json*> steps;
  const auto collect = [&](js::Value list, std::string_view where) {
    for (const Json& step : optional_list(list, where)) steps.push_back(&step);
  };
  collect(js::at_path(path, {"decode", "steps"}), "decode.steps");
  collect(js::at_path(path, {"prefill", "steps"}), "prefill.steps");
  collect(js::get(path, "preLayer"), "preLayer");
  collect(js::get(path, "postLayer"), "postLayer");
  for (const Json& layer_override : optional_list(js::get(path, "layerOverrides"), "layerOverrides"))
    collect(member(&layer_override, "steps", "layerOverrides[]"), "layerOverrides[].steps");
  return std::any_of(steps.begin(), steps.end(), [&](const Json* step) {
    const js::Value kernel = member(step, "kernel", "a step");
    if (!js::is_string(kernel)) malformed("a step's kernel", "a string", kernel);
    return test(kernel->get_ref<const std::string&>());
  });
}

}  // namespace

js::Value activation_dtype(js::Value path) {
  return field_or_null(path, "activationDtype");
}
js::Value output_dtype(js::Value path) {
  return field_or_null(path, "outputDtype");
}

js::Value kv_dtype(js::Value path) {
  const js::Value dtype = js::get(path, "kvDtype");
  return js::truthy(dtype) ? dtype : activation_dtype(path);
}

std::string resolve_weight_ref(std::string_view name, std::string_view layer) {
  constexpr std::string_view kPlaceholder = "{L}";
  std::string out;
  for (auto at = name.find(kPlaceholder); at != std::string_view::npos; at = name.find(kPlaceholder)) {
    out.append(name.substr(0, at)).append(layer);
    name.remove_prefix(at + kPlaceholder.size());
  }
  return out.append(name);
}

js::Value layer_steps(js::Value path, js::Value layer, Phase phase) {
  const js::Value overrides = member(path, "layerOverrides", "the path");
  if (js::truthy(overrides)) {
    for (const Json& layer_override : step_list(overrides, "layerOverrides"))
      if (lists_layer(member(&layer_override, "layers", "layerOverrides[]"), layer))
        return js::get(&layer_override, "steps");
  }
  const js::Value prefill = js::get(path, "prefill");
  if (phase == "prefill" && js::truthy(prefill)) return js::get(prefill, "steps");
  return member(js::get(path, "decode"), "steps", "decode");
}

std::vector<std::string> validate_kernel_path(js::Value path) {
  std::vector<std::string> errors;
  if (!js::truthy(member(path, "id", "the path"))) errors.emplace_back("Missing path id");
  if (!js::truthy(js::get(path, "name"))) errors.emplace_back("Missing path name");
  if (!js::truthy(js::get(path, "activationDtype"))) errors.emplace_back("Missing activationDtype");
  if (!has_steps(js::at_path(path, {"decode", "steps"}))) errors.emplace_back("Missing decode steps");
  for (const std::string_view phase : {"decode", "prefill"})
    if (const js::Value steps = js::at_path(path, {phase, "steps"}); js::truthy(steps))
      validate_steps(step_list(steps, fmt::format("{}.steps", phase)), phase, errors);
  for (const std::string_view section : {"preLayer", "postLayer", "sampling"})
    if (const js::Value steps = js::get(path, section); js::truthy(steps))
      validate_steps(step_list(steps, section), section, errors);
  return errors;
}

bool is_fused_q4k(js::Value path) {
  return any_kernel(path, [](auto kernel) { return kernel.find("fused_matmul_q4") != std::string_view::npos; });
}

bool is_dequant(js::Value path) {
  return any_kernel(path, [](auto kernel) { return kernel.starts_with("matmul_"); });
}

std::string format_kernel_path(js::Value path) {
  std::string ops;
  bool first = true;
  for (const Json& step : step_list(member(member(path, "decode", "the path"), "steps", "decode"), "decode.steps")) {
    if (!first) ops += " -> ";
    first = false;
    const js::Value op = member(&step, "op", "decode.steps[]");
    if (!js::nullish(op)) ops += js::to_string(op);
  }
  return fmt::format("{}: {}", js::to_string(js::get(path, "id")), ops);
}

KernelPathStats kernel_path_stats(js::Value path) {
  std::unordered_set<std::string> kernels;
  const auto collect = [&](const Json& steps) {
    for (const Json& step : steps) {
      const js::Value kernel = member(&step, "kernel", "a step");
      // A value of another type is not the string of the same text.
      kernels.insert(fmt::format("{} {}", js::is_string(kernel), js::to_string(kernel)));
    }
    return steps.size();
  };
  KernelPathStats stats;
  stats.decode_steps =
      collect(step_list(member(member(path, "decode", "the path"), "steps", "decode"), "decode.steps"));
  const js::Value prefill = js::get(path, "prefill");
  stats.prefill_steps =
      js::truthy(prefill) ? collect(step_list(js::get(prefill, "steps"), "prefill.steps")) : stats.decode_steps;
  for (const std::string_view section : {"preLayer", "postLayer", "sampling"})
    if (const js::Value steps = js::get(path, section); js::truthy(steps)) collect(step_list(steps, section));
  stats.unique_kernels = kernels.size();
  const js::Value overrides = js::get(path, "layerOverrides");
  stats.has_layer_overrides = has_steps(overrides);
  return stats;
}

}  // namespace candor::kernels
