#include "models/manifest.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/kernel_ref.h"
#include "models/fusion.h"
#include "models/lowering.h"

namespace candor::models {
namespace {

constexpr std::string_view kSchema = "doppler.execution/v0";

/// Steps as execution-v0 has them, and a kernel profile for each kernel among them.
struct WrittenSteps {
  Json steps = Json::array();
  Json profiles = Json::array();
};

Json step_json(const LoweredStep& step, const Json& ref, std::size_t index, std::uint32_t layers) {
  const StepDraft& draft = step.draft;
  Json out;
  out["id"] = fmt::format("{}_{}_{}_{}", draft.section, step.phase, index, draft.op);
  out["phase"] = step.phase;
  out["section"] = draft.section;
  out["op"] = draft.op;
  out["src"] = draft.src;
  out["dst"] = draft.dst;
  if (!draft.inputs.empty()) out["inputs"] = draft.inputs;
  out["kernel"] = step.choice.kernel;
  out["entry"] = step.choice.entry;
  out["kernelRef"] = ref;
  if (!draft.weights.is_null()) out["weights"] = draft.weights;
  if (!draft.constants.empty()) out["constants"] = draft.constants;
  const bool all = step.layers.empty() || step.layers.size() == layers;
  out["layers"] = all ? Json("all") : Json(step.layers);
  return out;
}

WrittenSteps write_steps(const ManifestInput& input) {
  WrittenSteps out;
  for (const LoweredStep& step : fuse_steps(lower_steps(input), input.rules, input.description.layers)) {
    const Json ref = kernels::build_kernel_ref(input.registry, step.choice.kernel, step.choice.entry).to_json();
    out.steps.push_back(step_json(step, ref, out.steps.size(), input.description.layers));
    const auto same = [&](const Json& profile) { return profile["kernelRef"] == ref; };
    if (std::none_of(out.profiles.begin(), out.profiles.end(), same)) out.profiles.push_back({{"kernelRef", ref}});
  }
  return out;
}

/// The roles that artifacts give tensors, from what the steps do with them.
std::map<std::string, std::string> tensor_roles(const ModelDescription& description) {
  std::map<std::string, std::string> roles;
  const auto set = [&](const std::string& pattern, const std::string& role, std::uint64_t experts) {
    const bool by_layer = pattern.find(kLayerPlaceholder) != std::string::npos;
    const bool by_expert = pattern.find(kExpertPlaceholder) != std::string::npos;
    for (std::uint32_t layer = 0; layer < (by_layer ? description.layers : 1); ++layer)
      for (std::uint64_t expert = 0; expert < (by_expert ? experts : 1); ++expert)
        roles.try_emplace(expand_pattern(pattern, layer, expert), role);
  };
  for (const StepDraft& draft : description.steps) {
    std::string role = "other";
    if (draft.operation == "gather") role = "embedding";
    if (draft.operation == "rmsnorm" || draft.operation == "layernorm") role = "norm";
    if (draft.operation == "matmul") role = draft.op == "lm_head" ? "lm_head" : "matmul";
    if (draft.operation == "matmul_transposed") role = "matmul";
    if (draft.operation == "expert_matmul") role = "expert";
    if (draft.op == "router") role = "router";
    const std::uint64_t experts = draft.constants.value("experts", std::uint64_t{1});
    if (draft.weights.is_string()) set(draft.weights.get<std::string>(), role, experts);
    if (draft.weights.is_object())
      for (const auto& [operand, weight] : draft.weights.items()) set(weight.get<std::string>(), role, experts);
  }
  return roles;
}

Json tensor_entries(const ManifestInput& input) {
  const auto roles = tensor_roles(input.description);
  Json tensors = Json::object();
  for (const TensorInfo& tensor : input.tensors) {
    const auto role = roles.find(tensor.name);
    if (role == roles.end()) continue;  // ignored tensors are no part of the model
    std::string dtype(to_string(tensor.encoding));
    std::transform(dtype.begin(), dtype.end(), dtype.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    // Members are appended without the linear search of operator[]: a model may have tens of thousands.
    static_cast<std::vector<Json::object_t::value_type>&>(tensors.get_ref<Json::object_t&>())
        .emplace_back(tensor.name, Json{{"shape", tensor.shape}, {"dtype", dtype}, {"role", role->second}});
  }
  return tensors;
}

/// The encoding most matrix bytes have, as the manifest's label.
std::string quantization_label(const ManifestInput& input) {
  const auto roles = tensor_roles(input.description);
  std::map<std::string, std::uint64_t> bytes;
  for (const TensorInfo& tensor : input.tensors) {
    const auto role = roles.find(tensor.name);
    if (role != roles.end() && (role->second == "matmul" || role->second == "expert"))
      bytes[std::string(to_string(tensor.encoding))] += tensor.bytes;
  }
  std::string label = "f32";
  std::uint64_t most = 0;
  for (const auto& [name, count] : bytes)
    if (count > most) {
      most = count;
      label = name;
    }
  if (label == "q4_k") label = "q4_k_m";
  std::transform(label.begin(), label.end(), label.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return label;
}

}  // namespace

std::string source_name(const ModelSource& source) {
  const auto path = std::filesystem::absolute(source.path()).lexically_normal();
  std::string name = source.format() == SourceFormat::gguf ? path.stem().string() : path.filename().string();
  if (name.empty()) name = path.parent_path().filename().string();
  return name;
}

std::string model_id(std::string_view name) {
  constexpr std::size_t kLongest = 64;
  std::string id;
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool kept = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    const char out = upper ? static_cast<char>(c + 32) : kept ? c : '-';
    if (out != '-' || id.empty() || id.back() != '-') id += out;
  }
  if (id.starts_with('-')) id.erase(0, 1);
  if (id.ends_with('-')) id.pop_back();
  id.resize(std::min(id.size(), kLongest));
  return id.empty() ? "model" : id;
}

Json make_manifest(const ManifestInput& input) {
  if (!input.description.undecided.empty())
    fail(ErrorCode::unsupported, "{}: {}", input.name, input.description.undecided);
  WrittenSteps written = write_steps(input);
  const std::string& dtype = input.rules.activation_dtype();
  Json inference{{"schema", kSchema}, {"presetId", input.description.family}};
  inference.update(input.description.inference);
  inference["sessionDefaults"] = {
      {"compute",
       {{"defaults", {{"activationDtype", dtype}, {"mathDtype", dtype}, {"accumDtype", "f32"}, {"outputDtype", dtype}}},
        {"kernelProfiles", written.profiles}}},
      {"kvcache", {{"kvDtype", input.rules.kv_dtype()}, {"layout", "contiguous"}}},
      {"decodeLoop", nullptr}};
  inference["execution"] = {{"steps", std::move(written.steps)},
                            {"policies",
                             {{"precisionPrecedence", "step_then_kernel_profile_then_session_default"},
                              {"unsupportedPrecision", "error"},
                              {"dtypeTransition", "require_cast_step"},
                              {"unresolvedKernel", "error"}}}};
  inference["defaultKernelPath"] = nullptr;
  const auto& stops = input.description.stop_tokens;
  return {{"version", 1},
          {"modelId", model_id(input.name)},
          {"modelType", input.description.model_type},
          {"quantization", quantization_label(input)},
          {"architecture", input.description.architecture},
          {"moeConfig", input.description.experts},
          {"inference", std::move(inference)},
          {"tensors", tensor_entries(input)},
          {"eos_token_id", stops.empty()       ? Json()
                           : stops.size() == 1 ? Json(stops[0])
                                               : Json(stops)},
          {"kernelPath", input.rules.id()}};
}

}  // namespace candor::models
