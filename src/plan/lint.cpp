#include "plan/lint.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/js_value.h"
#include "kernels/kernel_path.h"
#include "kernels/kernel_path_registry.h"
#include "kernels/kernel_ref.h"
#include "kernels/registry.h"
#include "plan/dataflow.h"
#include "plan/execution_plan.h"
#include "plan/generate.h"
#include "plan/schema.h"

namespace candor::plan {
namespace {

std::string text(js::Value object, std::string_view key) {
  return js::to_string(js::get(object, key));
}

/// The list under `key`; empty where it is no list.
std::vector<js::Value> list(js::Value object, std::string_view key) {
  std::vector<js::Value> out;
  const js::Value value = js::get(object, key);
  if (!js::is_array(value)) return out;
  for (const Json& entry : *value) out.push_back(&entry);
  return out;
}

constexpr std::array<std::string_view, 3> kPhaseWords{"prefill", "decode", "both"};

std::string ref_key(js::Value ref) {
  return text(ref, "id") + "@" + text(ref, "version") + " " + text(ref, "digest");
}

class Linter {
 public:
  explicit Linter(const LintInput& input)
      : input_(input), steps_(list(js::get(&input.inference, "execution"), "steps")) {}

  std::vector<Finding> run() {
    lint_session();
    lint_settings();
    lint_spelling();
    lint_pins();
    lint_layers();
    lint_profiles();
    if (input_.flow) {
      lint_values("prefill", input_.flow->prefill);
      lint_values("decode", input_.flow->decode);
    } else {
      lint_slots();
    }
    return std::move(findings_);
  }

 private:
  void add(std::string code, std::string subject, std::string message, std::string remedy) {
    findings_.push_back({std::move(code), std::move(subject), std::move(message), std::move(remedy)});
  }

  /// What the overlay's session asks for and does not get, or takes away without meaning to.
  void lint_session() {
    const js::Value manifest = js::get(&input_.inference, "sessionDefaults");
    const js::Value overlay = js::get(&input_.overlay, "session");
    const js::Value pinned = js::at_path(manifest, {"compute", "defaults"});
    const js::Value asked = js::at_path(overlay, {"compute", "defaults"});
    for (const std::string_view key : kDtypeKeys) {
      if (js::nullish(js::get(pinned, key)) || !js::get(asked, key)) continue;
      add("stripped-dtype", fmt::format("sessionDefaults.compute.defaults.{}", key),
          fmt::format(
              "the overlay asks for {}, the manifest pins {} and wins, yet the value is traced to runtime.session",
              text(asked, key), text(pinned, key)),
          "set the step's precision through executionPatch.set");
    }
    for (const std::string_view key : {"kvcache", "decodeLoop"}) {
      const js::Value value = js::get(overlay, key);
      if (!value || !value->is_null() || js::nullish(js::get(manifest, key))) continue;
      add("null-wipes-session", fmt::format("sessionDefaults.{}", key),
          fmt::format("null in the overlay erases the manifest's {}", key), "leave the key out of the overlay");
    }
  }

  /// The inline kernel path compares phase and section as they are written, the compiler without blanks and, for the
  /// phase, without regard to case.
  void lint_spelling() {
    for (const js::Value step : steps_) {
      lint_word(step, "phase", "raw-phase", kPhaseWords, js::to_lower(js::trimmed_text(js::get(step, "phase"))));
      lint_word(step, "section", "raw-section", kSections, js::trimmed_text(js::get(step, "section")));
    }
  }

  /// A word that the compiler reads as one of `words` but that is written otherwise.
  void lint_word(js::Value step, const char* key, const char* code, std::span<const std::string_view> words,
                 const std::string& meant) {
    if (std::find(words.begin(), words.end(), meant) == words.end() || text(step, key) == meant) return;
    add(code, text(step, "id"),
        fmt::format("{} is written \"{}\", so the step is missing from the inline kernel path", key,
                    printable(text(step, key))),
        fmt::format("write {}", meant));
  }

  /// Settings of the manifest's KV cache that its layout has no use for.
  void lint_settings() {
    const js::Value cache = js::at_path(&input_.inference, {"sessionDefaults", "kvcache"});
    const std::string layout = js::nullish(js::get(cache, "layout")) ? "contiguous" : text(cache, "layout");
    const auto idle = [&](std::string_view key, std::string_view remedy) {
      if (js::nullish(js::get(cache, key))) return;
      add("idle-setting", fmt::format("sessionDefaults.kvcache.{}", key),
          fmt::format("layout {} has no use for it", printable(layout)), std::string(remedy));
    };
    if (layout == "contiguous") idle("pageSize", "remove it, or set layout to paged or sliding");
    if (layout != "sliding") idle("windowSize", "remove it, or set layout to sliding");
  }

  void lint_pins() {
    for (const js::Value step : steps_) {
      if (!js::is_string(js::get(step, "kernel"))) continue;
      const std::string kernel = js::get(step, "kernel")->get<std::string>();
      const std::string entry = kernels::entry_name(js::get(step, "entry"));
      const auto digest = input_.registry.digest(kernel, entry);
      if (!digest) {
        add("unpinned-kernel", text(step, "id"),
            fmt::format("kernel \"{}#{}\" has no content digest, so the step cannot be pinned", printable(kernel),
                        printable(entry)),
            "name a kernel of the registry (candor kernels lists them)");
      } else if (text(js::get(step, "kernelRef"), "digest") != "sha256:" + *digest) {
        add("mismatched-pin", text(step, "id"),
            fmt::format("kernelRef pins {}, the kernel \"{}#{}\" is sha256:{}",
                        printable(text(js::get(step, "kernelRef"), "digest")), kernel, entry, *digest),
            "candor rebind pins it anew after showing what changed");
      }
    }
  }

  [[nodiscard]] std::vector<std::string> layer_steps(std::int64_t layer, std::string_view phase) const {
    std::vector<std::string> out;
    for (const js::Value step : steps_) {
      if (text(step, "section") != "layer" || text(step, "op") == "cast") continue;
      if (!is_phase_match(text(step, "phase"), phase)) continue;
      const js::Value layers = js::get(step, "layers");
      const bool all = !js::is_array(layers);
      const bool included = !all && std::any_of(layers->begin(), layers->end(), [&](const Json& n) {
        return n.is_number() && n.get<double>() == static_cast<double>(layer);
      });
      if (all || included) out.push_back(text(step, "id"));
    }
    return out;
  }

  /// The inline kernel path has one list a layer: what differs only in prefill is lost, and a model whose layers have
  /// only prefill steps gets an override for each.
  void lint_layers() {
    if (input_.layers <= 0) return;
    const auto decode = layer_steps(0, "decode");
    const auto prefill = layer_steps(0, "prefill");
    const bool has_decode = std::any_of(steps_.begin(), steps_.end(),
                                        [](js::Value step) { return is_phase_match(text(step, "phase"), "decode"); });
    // An encoder has no decode steps at all; that is its nature and no finding.
    if (decode.empty() && !prefill.empty() && has_decode)
      add("prefill-only-layers", "layer 0",
          "the layers have prefill steps only, though the model decodes; each layer gets a redundant override",
          "give the layer steps phase both");
    if (decode.empty()) return;
    for (std::int64_t layer = 1; layer < input_.layers; ++layer) {
      const auto own_decode = layer_steps(layer, "decode");
      if (layer_steps(layer, "prefill") != prefill && own_decode == decode)
        add("lost-override", fmt::format("layer {}", layer),
            "its prefill steps differ from layer 0's; the inline kernel path keeps one list a layer, the decode one",
            "nothing where the plan is executed; readers of the kernel path alone see layer 0's prefill steps");
    }
  }

  void lint_profiles() {
    std::set<std::string> used;
    for (const js::Value step : steps_) used.insert(ref_key(js::get(step, "kernelRef")));
    for (const js::Value add_entry : list(js::get(&input_.overlay, "executionPatch"), "add"))
      used.insert(ref_key(js::at_path(add_entry, {"step", "kernelRef"})));
    const js::Value compute = js::at_path(&input_.inference, {"sessionDefaults", "compute"});
    for (const js::Value profile : list(compute, "kernelProfiles")) {
      const js::Value ref = js::get(profile, "kernelRef");
      if (used.contains(ref_key(ref)) || js::truthy(js::get(profile, "alternate"))) continue;
      add("unused-profile", text(ref, "id"), "no step refers to this kernel profile",
          "remove it, or mark it {\"alternate\": true} if a patch may use it");
    }
  }

  /// Values that nothing reads, but for the last one, which is the answer.
  void lint_values(const std::string& phase, const PhaseFlow& flow) {
    std::set<std::string> reported;
    for (std::size_t i = 0; i + 1 < flow.values.size(); ++i) {
      const Value& value = flow.values[i];
      if (value.last_read != value.producer) continue;
      const StepInstance& producer = flow.steps[value.producer];
      if (producer.kv >= 0 || !reported.insert(producer.step->id).second) continue;
      add("unread-slot", producer.step->id,
          fmt::format("in {} it writes slot \"{}\", which nothing reads", phase, value.slot),
          "remove the step, or read the slot");
    }
  }

  /// The same from the list of steps alone, where there is no data flow to look at.
  void lint_slots() {
    std::set<std::string> read;
    for (const js::Value step : steps_) {
      read.insert(text(step, "src"));
      for (const std::string_view key : {"residual", "a", "b"}) read.insert(text(step, key));
      const js::Value inputs = js::get(step, "inputs");
      if (!js::is_plain_object(inputs)) continue;
      for (const auto& [operand, slot] : inputs->items()) read.insert(js::to_string(&slot));
    }
    for (std::size_t i = 0; i + 1 < steps_.size(); ++i) {
      const std::string slot = text(steps_[i], "dst");
      if (slot == "state" || read.contains(slot)) continue;
      add("unread-slot", text(steps_[i], "id"),
          fmt::format("it writes slot \"{}\", which nothing reads", printable(slot)),
          "remove the step, or read the slot");
    }
  }

  const LintInput& input_;
  std::vector<js::Value> steps_;
  std::vector<Finding> findings_;
};

/// Entries of the same file that the registry has.
std::vector<std::string> entries_of(const kernels::KernelRegistry& registry, const std::string& kernel) {
  std::vector<std::string> entries;
  for (const auto& operation : registry.operations())
    for (const auto& variant : operation.variants)
      if (variant.file == kernel && std::find(entries.begin(), entries.end(), variant.entry) == entries.end())
        entries.push_back(variant.entry);
  return entries;
}

bool is_pinnable(const Json& step, const kernels::KernelRegistry& registry) {
  return registry.digest(text(&step, "kernel"), kernels::entry_name(js::get(&step, "entry"))).has_value();
}

/// Calls `visit(where, list)` with each list of steps of a kernel path: "decode.steps", "postLayer", …
template <typename Visit>
void visit_lists(Json& path, const Visit& visit) {
  for (const char* name : {"preLayer", "postLayer", "sampling"})
    if (path.contains(name) && path[name].is_array()) visit(std::string(name), path[name]);
  for (const char* phase : {"decode", "prefill"})
    if (path.contains(phase) && path[phase].is_object() && path[phase].contains("steps") &&
        path[phase]["steps"].is_array())
      visit(fmt::format("{}.steps", phase), path[phase]["steps"]);
}

/// Generates and compiles; the report's counts or its refusal say what came of it.
std::optional<Json> try_path(const Json& path, const kernels::KernelPathRegistry& paths,
                             const kernels::KernelRegistry& registry, std::int64_t layers, KernelPathReport& report) {
  try {
    std::optional<Json> inference = build_execution_from_kernel_path(&path, paths, registry);
    if (!inference) {
      report.refusal = "the path lists no steps";
      return std::nullopt;
    }
    const auto plan = compile({.manifest_inference = *inference, .layers = layers, .registry = &registry});
    report.steps = (*inference)["execution"]["steps"].size();
    report.prefill = plan->prefill.size();
    report.decode = plan->decode.size();
    return inference;
  } catch (const Error& error) {
    report.refusal = error.what();
    return std::nullopt;
  }
}

/// A finding for each step that cannot be pinned. Leaving those steps out is tried, so that the remedy is known to
/// work.
void lint_unpinnable(const Json& path, const kernels::KernelPathRegistry& paths,
                     const kernels::KernelRegistry& registry, std::int64_t layers, KernelPathReport& report) {
  Json without = path;
  std::vector<Finding> findings;
  visit_lists(without, [&](const std::string& where, Json& steps) {
    Json kept = Json::array();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Json& step = steps[i];
      if (!step.is_object() || !js::is_string(js::get(&step, "op")) || is_pinnable(step, registry)) {
        kept.push_back(step);
        continue;
      }
      const std::string kernel = text(&step, "kernel");
      const auto entries = entries_of(registry, kernel);
      findings.push_back({"unpinned-kernel", fmt::format("{}[{}] {}", where, i, printable(text(&step, "op"))),
                          fmt::format("kernel \"{}#{}\" has no content digest, so no manifest can pin it",
                                      printable(kernel), printable(kernels::entry_name(js::get(&step, "entry")))),
                          entries.empty()
                              ? "name a kernel file of the registry"
                              : fmt::format("name an entry that the registry has in this file ({}), or add this one to "
                                            "the registry with its digest",
                                            fmt::join(entries, ", "))});
    }
    steps = std::move(kept);
  });
  if (findings.empty()) return;
  KernelPathReport mended;
  if (try_path(without, paths, registry, layers, mended))
    for (Finding& finding : findings)
      finding.remedy += fmt::format(
          "; or leave the step out, which an earlier kernel must then do: tried, and the path gives {} steps and "
          "compiles",
          mended.steps);
  for (Finding& finding : findings) report.findings.push_back(std::move(finding));
}

}  // namespace

Json Finding::to_json() const {
  return {{"code", code}, {"subject", subject}, {"message", message}, {"remedy", remedy}};
}

std::vector<Finding> lint(const LintInput& input) {
  return Linter(input).run();
}

Json KernelPathReport::to_json() const {
  Json list = Json::array();
  for (const Finding& finding : findings) list.push_back(finding.to_json());
  return {{"refused", refusal.empty() ? Json() : Json(refusal)},
          {"steps", steps},
          {"prefill", prefill},
          {"decode", decode},
          {"findings", std::move(list)}};
}

KernelPathReport lint_kernel_path(const Json& path, const kernels::KernelPathRegistry& paths,
                                  const kernels::KernelRegistry& registry, std::int64_t layers) {
  KernelPathReport report;
  for (const std::string& message : kernels::validate_kernel_path(&path))
    report.findings.push_back({"invalid-path", "kernel path", message, "add what is missing"});
  const std::optional<Json> inference = try_path(path, paths, registry, layers, report);
  lint_unpinnable(path, paths, registry, layers, report);
  if (!inference) return report;
  const Json no_overlay;
  for (Finding& finding : lint({*inference, no_overlay, layers, registry, nullptr}))
    report.findings.push_back(std::move(finding));
  return report;
}

}  // namespace candor::plan
