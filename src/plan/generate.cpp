#include "plan/generate.h"

#include <array>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "kernels/kernel_path.h"
#include "kernels/kernel_ref.h"
#include "plan/schema.h"

namespace candor::plan {
namespace {

/// A dtype by its usual names as f16 or f32; other names in lower case; empty for what is falsy or blank. bf16 values
/// are computed with as f16.
std::string dtype_name(js::Value value) {
  if (!js::truthy(value)) return {};
  std::string name = js::to_lower(js::trimmed_text(value));
  if (name == "bf16" || name == "fp16" || name == "float16") return "f16";
  if (name == "fp32" || name == "float32") return "f32";
  return name;
}

/// The part of a step's id that stands for its op: lower case, other characters than [a-z0-9_] one "_" a run.
std::string op_token(js::Value op) {
  std::string token;
  bool in_run = false;
  for (const char c : js::to_lower(js::trimmed_text(op))) {
    const bool keep = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    if (keep || !in_run) token += keep ? c : '_';
    in_run = !keep;
  }
  const auto first = token.find_first_not_of('_');
  if (first == std::string::npos) return "step";
  return token.substr(first, token.find_last_not_of('_') - first + 1);
}

/// A section of the path and where its steps go.
struct Section {
  js::Value steps;
  std::string_view phase;
  std::string_view section;
};

std::array<Section, 5> sections_of(js::Value path) {
  const js::Value decode = js::at_path(path, {"decode", "steps"});
  const js::Value prefill = js::at_path(path, {"prefill", "steps"});
  const bool has_prefill = js::is_string(prefill) ? js::truthy(prefill) : js::is_array(prefill) && !prefill->empty();
  return {{{js::get(path, "preLayer"), "both", "preLayer"},
           {decode, "decode", "layer"},
           {has_prefill ? prefill : decode, "prefill", "layer"},
           {js::get(path, "postLayer"), "both", "postLayer"},
           {js::get(path, "sampling"), "decode", "sampling"}}};
}

class Generator {
 public:
  explicit Generator(const kernels::KernelRegistry& registry) : registry_(registry) {}

  void add(const Section& section) {
    if (js::nullish(section.steps) || js::is_string(section.steps)) return;  // characters are no steps
    if (!js::is_array(section.steps))
      refuse_type(fmt::format("kernel path {} steps", section.section), "an array", section.steps);
    for (const Json& step : *section.steps)
      if (js::is_string(js::get(&step, "op"))) steps_.push_back(make_step(step, section));
  }

  [[nodiscard]] bool empty() const { return steps_.empty(); }
  [[nodiscard]] Json take_steps() { return std::move(steps_); }
  [[nodiscard]] Json take_profiles() { return std::move(profiles_); }

 private:
  Json make_step(const Json& step, const Section& section) {
    const js::Value op = js::get(&step, "op");
    Json out = Json::object();
    out["id"] = fmt::format("{}_{}_{}_{}", section.section, section.phase, steps_.size(), op_token(op));
    out["phase"] = section.phase;
    out["section"] = section.section;
    out["op"] = *op;
    out["src"] = "state";
    out["dst"] = "state";
    if (const std::string kernel = js::trimmed_text(js::get(&step, "kernel")); !kernel.empty())
      out["kernelRef"] = pin(kernel, kernels::entry_name(js::get(&step, "entry")));
    for (const char* key : {"kernel", "entry", "weights", "constants"})
      if (const js::Value value = js::get(&step, key); js::truthy(value)) out[key] = *value;
    out["layers"] = "all";
    return out;
  }

  /// The kernel's ref; the first time, a profile for it too.
  Json pin(const std::string& kernel, const std::string& entry) {
    const kernels::KernelRef ref = kernels::build_kernel_ref(registry_, kernel, entry);
    if (pinned_.insert(ref.id + "|" + ref.digest).second) {
      Json profile = Json::object();
      profile["kernelRef"] = ref.to_json();
      profiles_.push_back(std::move(profile));
    }
    return ref.to_json();
  }

  const kernels::KernelRegistry& registry_;
  Json steps_ = Json::array();
  Json profiles_ = Json::array();
  std::unordered_set<std::string> pinned_;
};

Json session_of(js::Value path, Json profiles) {
  const auto name_or = [](std::string name, const std::string& fallback) { return name.empty() ? fallback : name; };
  const std::string activation = name_or(dtype_name(kernels::activation_dtype(path)), "f16");
  Json session = Json::object();
  Json& compute = session["compute"];
  Json& defaults = compute["defaults"];
  defaults["activationDtype"] = activation;
  defaults["mathDtype"] = activation;
  defaults["accumDtype"] = "f32";
  defaults["outputDtype"] = name_or(dtype_name(kernels::output_dtype(path)), activation);
  compute["kernelProfiles"] = std::move(profiles);
  session["kvcache"]["kvDtype"] = name_or(dtype_name(kernels::kv_dtype(path)), activation);
  session["decodeLoop"] = nullptr;
  return session;
}

}  // namespace

std::optional<Json> build_execution_from_kernel_path(js::Value path, const kernels::KernelPathRegistry& paths,
                                                     const kernels::KernelRegistry& registry) {
  if (!js::truthy(path)) return std::nullopt;
  if (js::is_string(path)) path = &paths.get(path->get_ref<const std::string&>());
  Generator generator(registry);
  for (const Section& section : sections_of(path)) generator.add(section);
  if (generator.empty()) return std::nullopt;
  Json out = Json::object();
  out["schema"] = kSchemaId;
  out["sessionDefaults"] = session_of(path, generator.take_profiles());
  out["execution"]["steps"] = generator.take_steps();
  out["execution"]["policies"] = default_policies();
  return out;
}

}  // namespace candor::plan
