// Which step of a path has a role, and which variant of the registry that step names.
#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "base/error.h"
#include "kernels/kernel_path.h"

namespace candor::kernels {
namespace {

/// Where the step of a role is found: the first of these ops, in the layer or after the layers.
struct Role {
  std::string_view name;
  bool in_layer;
  std::array<std::string_view, 2> ops;
};

constexpr std::array<Role, 10> kRoles = {{
    {"q_proj", true, {"q_proj"}},
    {"k_proj", true, {"k_proj"}},
    {"v_proj", true, {"v_proj"}},
    {"qkv_proj", true, {"qkv_proj", "q_proj"}},
    {"o_proj", true, {"o_proj"}},
    {"ffn_gate", true, {"ffn_gate", "gate_proj"}},
    {"ffn_up", true, {"ffn_up", "up_proj"}},
    {"ffn_down", true, {"ffn_down", "down_proj"}},
    {"ffn_gate_up", true, {"ffn_gate_up"}},
    {"lm_head", false, {"lm_head"}},
}};

Role find_role(std::string_view name) {
  const auto found = std::find_if(kRoles.begin(), kRoles.end(), [&](const Role& role) { return role.name == name; });
  return found == kRoles.end() ? Role{name, true, {name}} : *found;
}

js::Value find_step(const Json& steps, std::string_view op) {
  for (const Json& step : steps) {
    if (step.is_null()) fail(ErrorCode::format, "[ExecutionV0] kernel path: a step must be an object; got null");
    if (js::strict_equal(js::get(&step, "op"), op)) return &step;
  }
  return nullptr;
}

const Json& steps_of(js::Value path, bool in_layer, Phase phase, js::Value layer) {
  static const Json kNone = Json::array();
  js::Value steps = in_layer ? layer_steps(path, layer, phase) : js::get(path, "postLayer");
  if (!in_layer && js::nullish(steps)) steps = &kNone;
  if (!js::is_array(steps))
    fail(ErrorCode::format, "[ExecutionV0] kernel path: {} must be an array of steps; got {}",
         in_layer ? "a layer's steps" : "postLayer", js::to_string(steps));
  return *steps;
}

std::string_view without_folders(std::string_view kernel) {
  const std::string_view trimmed = js::trim(kernel);
  const auto slash = trimmed.rfind('/');
  return slash == std::string_view::npos ? trimmed : trimmed.substr(slash + 1);
}

/// The constants among `keys` that are given, compared with what a variant fixes.
bool overrides_equal(const Json& overrides, js::Value constants, const std::set<std::string>& keys) {
  std::size_t given = 0;
  for (const std::string& key : keys) {
    const js::Value value = js::get(constants, key);
    if (value == nullptr) continue;
    ++given;
    if (!js::strict_equal(js::get(&overrides, key), value)) return false;
  }
  return given == overrides.size();
}

const KernelVariant* match_overrides(const std::vector<const KernelVariant*>& candidates, js::Value constants) {
  std::set<std::string> keys;
  for (const KernelVariant* candidate : candidates)
    for (const auto& key : js::keys(&candidate->wgsl_overrides)) keys.insert(key);
  if (keys.empty()) return nullptr;
  const KernelVariant* match = nullptr;
  for (const KernelVariant* candidate : candidates) {
    if (!overrides_equal(candidate->wgsl_overrides, constants, keys)) continue;
    if (match != nullptr) return nullptr;
    match = candidate;
  }
  return match;
}

const KernelVariant* match_phase(const std::vector<const KernelVariant*>& candidates, Phase phase) {
  if (phase.empty()) return nullptr;
  const std::string prefix = fmt::format("{}_", phase);
  for (const KernelVariant* candidate : candidates)
    if (candidate->name.starts_with(prefix)) return candidate;
  return nullptr;
}

std::optional<std::string> variant_of_step(const KernelRegistry& registry, std::string_view operation, js::Value step,
                                           Phase phase) {
  if (step == nullptr) return std::nullopt;
  return find_variant(registry, operation, js::get(step, "kernel"), js::get(step, "entry"), phase,
                      js::get(step, "constants"));
}

}  // namespace

js::Value find_matmul_step(js::Value path, std::string_view role_name, Phase phase, js::Value layer) {
  if (!js::truthy(path) || role_name.empty()) return nullptr;
  const Role role = find_role(role_name);
  const Json& steps = steps_of(path, role.in_layer, phase, layer);
  if (role.name == "lm_head" && phase == "prefill")
    if (const js::Value step = find_step(steps, "lm_head_prefill")) return step;
  for (const std::string_view op : role.ops) {
    if (op.empty()) break;
    if (const js::Value step = find_step(steps, op)) return step;
  }
  return nullptr;
}

std::optional<std::string> matmul_variant(const KernelRegistry& registry, js::Value path, std::string_view role,
                                          Phase phase, js::Value layer) {
  return variant_of_step(registry, "matmul", find_matmul_step(path, role, phase, layer), phase);
}

std::optional<std::string> attention_variant(const KernelRegistry& registry, js::Value path, Phase phase,
                                             js::Value layer) {
  if (!js::truthy(path)) return std::nullopt;
  return variant_of_step(registry, "attention", find_step(steps_of(path, true, phase, layer), "attention"), phase);
}

js::Value matmul_constants(js::Value path, std::string_view role, Phase phase, js::Value layer) {
  return js::get(find_matmul_step(path, role, phase, layer), "constants");
}

std::optional<std::string> find_variant(const KernelRegistry& registry, std::string_view operation, js::Value kernel,
                                        js::Value entry, Phase phase, js::Value constants) {
  const KernelOperation* found = registry.find_operation(operation);
  if (found == nullptr) return std::nullopt;
  if (!js::is_string(kernel))
    fail(ErrorCode::format, "[ExecutionV0] kernel path: a step's kernel must be a string; got {}",
         js::to_string(kernel));
  const std::string_view file = without_folders(kernel->get_ref<const std::string&>());

  std::vector<const KernelVariant*> of_file;
  std::vector<const KernelVariant*> of_entry;
  for (const KernelVariant& variant : found->variants) {
    if (variant.file != file) continue;
    of_file.push_back(&variant);
    if (js::nullish(entry) ? variant.entry == "main" : js::strict_equal(entry, variant.entry))
      of_entry.push_back(&variant);
  }
  const KernelVariant* match = nullptr;
  if (of_entry.size() == 1) match = of_entry.front();
  if (of_entry.size() > 1) match = match_overrides(of_entry, constants);
  if (of_entry.size() > 1 && match == nullptr) match = match_phase(of_entry, phase);
  if (match == nullptr && of_file.size() == 1) match = of_file.front();
  return match == nullptr ? std::nullopt : std::optional(match->name);
}

}  // namespace candor::kernels
