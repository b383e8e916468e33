#include "models/lowering.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/error.h"

namespace candor::models {
namespace {

class Lowering {
 public:
  explicit Lowering(const ManifestInput& input) : input_(input) {
    for (const TensorInfo& tensor : input.tensors) encodings_.emplace(tensor.name, tensor.encoding);
  }

  std::vector<LoweredStep> run() {
    for (const StepDraft& draft : input_.description.steps) {
      for (const auto& [encoding, layers] : split_by_encoding(draft)) add_phases(draft, encoding, layers);
      forget_copies(draft.dst);
    }
    return std::move(steps_);
  }

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
      add_step(draft, encoding, prefill, "both", layers);
    } else {
      add_step(draft, encoding, prefill, "prefill", layers);
      add_step(draft, encoding, decode, "decode", layers);
    }
  }

  void add_step(const StepDraft& draft, const std::string& encoding, const kernels::KernelChoice& choice,
                const std::string& phase, const Layers& layers) {
    std::string src = draft.src;
    if (const std::string wanted = wanted_activation(choice); !wanted.empty())
      src = quantized_copy(draft, wanted, phase, layers);
    append(draft, src, encoding, choice, phase, layers);
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
      append(quantize, draft.src, encoding, input_.rules.choose({"quantize", "quantize", encoding, first_phase}), phase,
             needed);
      for (const std::string& name : phases) copies_[{name, slot}].insert(needed.begin(), needed.end());
    }
    return slot;
  }

  /// A slot that is written anew has no quantized copies any more; nor has any slot at a layer's end.
  void forget_copies(const std::string& slot) {
    std::erase_if(copies_, [&](const auto& entry) { return entry.first.second.starts_with(slot + "_a8_"); });
  }

  void append(const StepDraft& draft, const std::string& src, const std::string& encoding,
              const kernels::KernelChoice& choice, const std::string& phase, const Layers& layers) {
    LoweredStep& step = steps_.emplace_back(LoweredStep{draft, encoding, choice, phase, layers});
    step.draft.src = src;
  }

  const ManifestInput& input_;
  std::unordered_map<std::string_view, Encoding> encodings_;
  std::vector<LoweredStep> steps_;
  Copies copies_;
};

}  // namespace

std::vector<LoweredStep> lower_steps(const ManifestInput& input) {
  return Lowering(input).run();
}

}  // namespace candor::models
