#include "models/manifest.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/kernel_ref.h"

namespace candor::models {
namespace {

constexpr std::string_view kSchema = "doppler.execution/v0";
using Layers = std::set<std::uint32_t>;  // empty outside section layer

class StepWriter {
 public:
  explicit StepWriter(const ManifestInput& input) : input_(input) {
    for (const TensorInfo& tensor : input.tensors) encodings_.emplace(tensor.name, tensor.encoding);
  }

  Json write() {
    for (const StepDraft& draft : input_.description.steps) {
      for (const auto& [encoding, layers] : split_by_encoding(draft)) add_phases(draft, encoding, layers);
      forget_copies(draft.dst);
    }
    return std::move(steps_);
  }

  [[nodiscard]] const Json& profiles() const { return profiles_; }

 private:
  using Copies = std::map<std::pair<std::string, std::string>, Layers>;  // (phase, slot) → layers that have it

  /// The layers of a draft, grouped by the encoding of its first weight, in order of the first layer.
  std::vector<std::pair<std::string, Layers>> split_by_encoding(const StepDraft& draft) const {
    std::vector<std::pair<std::string, Layers>> groups;
    if (draft.section != "layer") {
      groups.emplace_back(weight_encoding(draft, 0), Layers{});
      return groups;
    }
    const auto add = [&](std::uint32_t layer) {
      std::string encoding = weight_encoding(draft, layer);
      for (auto& [known, layers] : groups) {
        if (known != encoding) continue;
        layers.insert(layer);
        return;
      }
      groups.emplace_back(std::move(encoding), Layers{layer});
    };
    if (draft.layers.empty()) {
      for (std::uint32_t layer = 0; layer < input_.description.layers; ++layer) add(layer);
    } else {
      for (const std::uint32_t layer : draft.layers) add(layer);
    }
    return groups;
  }

  std::string weight_encoding(const StepDraft& draft, std::uint32_t layer) const {
    std::string name;
    if (draft.weights.is_string()) name = draft.weights.get<std::string>();
    if (draft.weights.is_object() && !draft.weights.empty()) name = draft.weights.begin()->get<std::string>();
    if (name.empty()) return {};
    name = expand_pattern(std::move(name), layer);
    const auto found = encodings_.find(name);
    if (found == encodings_.end()) fail(ErrorCode::format, "{}: tensor {} is missing", input_.name, name);
    return std::string(to_string(found->second));
  }

  /// Throws `error` with the conversion to weights that every step has kernels for, where encoding is the trouble.
  void propose_conversion(const StepDraft& draft, const std::string& name, const Error& error) const {
    constexpr std::string_view kMix = "q8_0";
    const auto encoding = parse_encoding(name);
    if (input_.path.empty() || !encoding || error.code() != ErrorCode::plan || name == kMix) return;
    std::filesystem::path path = input_.path;
    if (!path.has_filename()) path = path.parent_path();  // "model/"
    const std::string output = (path.parent_path() / path.stem()).string() + "-" + std::string(kMix) +
                               (path.extension() == ".gguf" ? ".gguf" : "");
    fail(ErrorCode::unsupported,
         "{}: weights of step {} are {}, which no kernel of {} multiplies; convert them: candor convert {} {} --quant "
         "{}{}",
         input_.path, draft.op, name, input_.rules.id(), shell_word(input_.path), shell_word(output), kMix,
         info(*encoding).block_size > 1 ? " --requantize" : "");
  }

  /// A path as a shell takes it for one word.
  static std::string shell_word(const std::string& text) {
    constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-+@%:=";
    if (text.find_first_not_of(kPlain) == std::string::npos) return text;
    std::string word = "'";
    for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
    return word + "'";
  }

  /// One step for both phases where the rules give both the same kernel, else one each.
  void add_phases(const StepDraft& draft, const std::string& encoding, const Layers& layers) {
    const auto choose = [&](std::string_view phase) {
      try {
        return input_.rules.choose({draft.op, draft.operation, encoding, phase});
      } catch (const Error& error) {
        propose_conversion(draft, encoding, error);
        throw;
      }
    };
    const kernels::KernelChoice prefill = choose("prefill");
    const kernels::KernelChoice decode = choose("decode");
    if (prefill == decode) {
      add_step(draft, prefill, "both", layers);
    } else {
      add_step(draft, prefill, "prefill", layers);
      add_step(draft, decode, "decode", layers);
    }
  }

  void add_step(const StepDraft& draft, const kernels::KernelChoice& choice, const std::string& phase,
                const Layers& layers) {
    std::string src = draft.src;
    if (const std::string wanted = wanted_activation(choice); !wanted.empty())
      src = quantized_copy(draft, wanted, phase, layers);
    append(draft, src, choice, phase, layers);
  }

  /// The int8-block encoding that a kernel wants `src` in, or nothing if it reads f32.
  std::string wanted_activation(const kernels::KernelChoice& choice) const {
    const kernels::KernelVariant* variant = input_.registry.find(choice.kernel, choice.entry);
    if (!variant)
      fail(ErrorCode::plan, "kernel path {} names kernel \"{}#{}\", which is not in the registry", input_.rules.id(),
           choice.kernel, choice.entry);
    const Json none = Json::array();
    const Json& encodings = variant->raw.contains("encodings") && variant->raw["encodings"].contains("src")
                                ? variant->raw["encodings"]["src"]
                                : none;
    std::string wanted;
    for (const Json& encoding : encodings) {
      const std::string name = encoding.get<std::string>();
      if (name == "f32" || name == "f16") return {};
      if (name.starts_with("a8_")) wanted = name;
    }
    return wanted;
  }

  /// The slot holding `draft.src` in `encoding`, after a quantize step for the layers that do not have it yet.
  std::string quantized_copy(const StepDraft& draft, const std::string& encoding, const std::string& phase,
                             const Layers& layers) {
    const std::string slot = draft.src + "_" + encoding;
    std::vector<std::string> phases{phase};
    if (phase == "both") phases = {"prefill", "decode"};
    Layers needed;
    bool absent = false;
    for (const std::string& name : phases) {
      const auto found = copies_.find({name, slot});
      if (found == copies_.end()) {
        absent = true;
        needed = layers;
        continue;
      }
      std::set_difference(layers.begin(), layers.end(), found->second.begin(), found->second.end(),
                          std::inserter(needed, needed.end()));
    }
    if (absent || !needed.empty()) {
      StepDraft quantize;
      quantize.section = draft.section;
      quantize.op = "quantize";
      quantize.operation = "quantize";
      quantize.src = draft.src;
      quantize.dst = slot;
      const std::string_view first_phase = phases.front();
      append(quantize, draft.src, input_.rules.choose({"quantize", "quantize", encoding, first_phase}), phase, needed);
      for (const std::string& name : phases) copies_[{name, slot}].insert(needed.begin(), needed.end());
    }
    return slot;
  }

  /// A slot that is written anew has no quantized copies any more; nor has any slot at a layer's end.
  void forget_copies(const std::string& slot) {
    std::erase_if(copies_, [&](const auto& entry) { return entry.first.second.starts_with(slot + "_a8_"); });
  }

  void append(const StepDraft& draft, const std::string& src, const kernels::KernelChoice& choice,
              const std::string& phase, const Layers& layers) {
    const Json ref = kernels::build_kernel_ref(input_.registry, choice.kernel, choice.entry).to_json();
    Json step;
    step["id"] = fmt::format("{}_{}_{}_{}", draft.section, phase, steps_.size(), draft.op);
    step["phase"] = phase;
    step["section"] = draft.section;
    step["op"] = draft.op;
    step["src"] = src;
    step["dst"] = draft.dst;
    if (!draft.inputs.empty()) step["inputs"] = draft.inputs;
    step["kernel"] = choice.kernel;
    step["entry"] = choice.entry;
    step["kernelRef"] = ref;
    if (!draft.weights.is_null()) step["weights"] = draft.weights;
    if (!draft.constants.empty()) step["constants"] = draft.constants;
    const bool all = layers.empty() || layers.size() == input_.description.layers;
    step["layers"] = all ? Json("all") : Json(layers);
    steps_.push_back(std::move(step));
    const auto same = [&](const Json& profile) { return profile["kernelRef"] == ref; };
    if (std::none_of(profiles_.begin(), profiles_.end(), same)) profiles_.push_back({{"kernelRef", ref}});
  }

  const ManifestInput& input_;
  std::unordered_map<std::string_view, Encoding> encodings_;
  Json steps_ = Json::array();
  Json profiles_ = Json::array();
  Copies copies_;
};

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
  StepWriter writer(input);
  Json steps = writer.write();
  const std::string& dtype = input.rules.activation_dtype();
  Json inference{{"schema", kSchema}, {"presetId", input.description.family}};
  inference.update(input.description.inference);
  inference["sessionDefaults"] = {
      {"compute",
       {{"defaults", {{"activationDtype", dtype}, {"mathDtype", dtype}, {"accumDtype", "f32"}, {"outputDtype", dtype}}},
        {"kernelProfiles", writer.profiles()}}},
      {"kvcache", {{"kvDtype", input.rules.kv_dtype()}, {"layout", "contiguous"}}},
      {"decodeLoop", nullptr}};
  inference["execution"] = {{"steps", std::move(steps)},
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
