#include "runtime/compiled_model.h"

#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/js_value.h"
#include "base/limits.h"
#include "formats/manifest.h"
#include "kernels/kernel_path_registry.h"
#include "kernels/kernel_rules.h"
#include "kernels/registry.h"
#include "models/description.h"
#include "models/manifest.h"
#include "models/original.h"
#include "plan/generate.h"
#include "plan/overlay.h"
#include "plan/pins.h"
#include "plan/schema.h"
#include "runtime/session_settings.h"

namespace candor::runtime {
namespace {

/// A kernel path: rules, or a list of steps in the older format.
struct KernelPath {
  std::optional<kernels::KernelRules> rules;
  Json steps;
};

KernelPath parse_kernel_path(Json path) {
  if (path.is_object() && path.contains("rules")) return {kernels::KernelRules(std::move(path)), {}};
  return {std::nullopt, std::move(path)};
}

/// The path of a manifest made here where none is named. Dispatches cost a GPU more than steps cost a processor, so
/// only there are steps fused without being asked.
std::string default_kernel_path(const PlanOptions& options) {
  if (options.backend.empty()) return "cpu";
  return options.backend == "webgpu" ? "webgpu-fused" : options.backend;
}

KernelPath find_kernel_path(const PlanOptions& options) {
  const std::string& name = options.kernel_path;
  if (name.empty()) return {kernels::builtin_kernel_rules(default_kernel_path(options)), {}};
  if (name.ends_with(".json")) return parse_kernel_path(parse_json(read_file(name, limits::json_bytes), name));
  const std::filesystem::path folder = std::filesystem::path(options.registry) / "kernel-paths";
  if (options.registry.empty() || !std::filesystem::exists(folder)) return {kernels::builtin_kernel_rules(name), {}};
  return parse_kernel_path(kernels::load_kernel_paths(folder).get(name));
}

/// Steps of one operation, by id.
std::vector<const Json*> steps_of(const Json& inference, std::string_view operation,
                                  const kernels::KernelRegistry& registry) {
  std::vector<const Json*> found;
  if (!inference.contains("execution") || !inference["execution"].is_object() ||
      !inference["execution"].contains("steps") || !inference["execution"]["steps"].is_array())
    return found;
  for (const Json& step : inference["execution"]["steps"]) {
    if (!step.is_object() || !step.contains("kernel") || !step["kernel"].is_string() || !step.contains("id")) continue;
    const std::string entry =
        step.contains("entry") && step["entry"].is_string() ? step["entry"].get<std::string>() : "main";
    const auto* variant = registry.find(step["kernel"].get<std::string>(), entry);
    if (variant && variant->operation == operation) found.push_back(&step);
  }
  return found;
}

/// The user's patch, followed by what the row selection asks for.
Json execution_patch(const Json& inference, const PlanOptions& options, const kernels::KernelRegistry& registry) {
  if (options.rows == RowSelection::last) return options.execution_patch;
  Json patch = options.execution_patch.is_object() ? options.execution_patch : Json::object();
  for (const char* list : {"set", "remove"})
    if (!patch.contains(list) || !patch[list].is_array()) patch[list] = Json::array();
  for (const Json* step : steps_of(inference, "row_slice", registry))
    patch["set"].push_back({{"id", (*step)["id"]}, {"constants", {{"rows", "all"}}}});
  for (const Json* step : steps_of(inference, "sample", registry)) patch["remove"].push_back({{"id", (*step)["id"]}});
  return patch;
}

std::uint64_t architecture_number(const Json& manifest, const char* key, std::uint64_t limit) {
  const auto refuse = [&] {
    fail(ErrorCode::format, "manifest: architecture.{} must be an integer from 1 to {}", key, limit);
  };
  if (!manifest.contains("architecture") || !manifest["architecture"].is_object() ||
      !manifest["architecture"].contains(key) || !manifest["architecture"][key].is_number())
    refuse();
  const double value = manifest["architecture"][key].get<double>();
  if (!(value >= 1 && value <= static_cast<double>(limit)) || value != std::floor(value)) refuse();
  return static_cast<std::uint64_t>(value);
}

std::vector<std::uint32_t> manifest_stop_tokens(const Json& manifest, std::uint64_t vocabulary) {
  std::vector<std::uint32_t> tokens;
  if (!manifest.contains("eos_token_id") || manifest["eos_token_id"].is_null()) return tokens;
  const Json list =
      manifest["eos_token_id"].is_array() ? manifest["eos_token_id"] : Json::array({manifest["eos_token_id"]});
  for (const Json& id : list) {
    if (!id.is_number() || id.get<double>() < 0 || id.get<double>() >= static_cast<double>(vocabulary))
      fail(ErrorCode::format, "manifest: eos_token_id {} is outside the vocabulary of {}", printable(to_js_json(id)),
           vocabulary);
    tokens.push_back(id.get<std::uint32_t>());
  }
  return tokens;
}

/// The positions that a plan is to hold: from either way of asking for them, or as many as the artifact's own does.
std::uint32_t wanted_context(const ModelSource& source, const PlanOptions& options) {
  if (options.context != 0) return options.context;
  const auto length = [](js::Value stated) -> std::uint32_t {
    if (js::nullish(stated) || !stated->is_number()) return 0;
    const double positions = stated->get<double>();  // what is no length is refused where it is used
    return positions >= 1 && positions <= double{limits::context} ? static_cast<std::uint32_t>(positions) : 0;
  };
  if (const auto asked = length(js::at_path(&options.session, {"kvcache", "maxSeqLen"})); asked != 0) return asked;
  if (source.format() == SourceFormat::artifact)
    if (const auto held = length(js::at_path(&source.manifest(), {"architecture", "maxSeqLen"})); held != 0)
      return held;
  return kDefaultContext;
}

/// How an artifact's manifest pools, as models::parse_pooling() reads it; nothing if it does not.
std::string pooling_of(const Json& manifest) {
  std::string pooling;
  const js::Value steps = js::at_path(&manifest, {"inference", "execution", "steps"});
  for (std::size_t i = 0; js::is_array(steps) && i < steps->size(); ++i) {
    const std::string op = js::to_string(js::get(&(*steps)[i], "op"));
    if (op == "pool") pooling = js::to_string(js::at_path(&(*steps)[i], {"constants", "kind"}));
    if (op == "normalize" && !pooling.empty()) pooling += ",normalize";
  }
  return pooling;
}

/// What the manifest of an artifact has decided, a new one for it does not ask again.
models::ModelDescription describe_for_plan(const ModelSource& source, const PlanOptions& options) {
  models::DescribeOptions open{.context = wanted_context(source, options), .pooling = options.pooling};
  models::ModelDescription description = models::describe(source, open);
  if (description.undecided.empty() || source.format() != SourceFormat::artifact) return description;
  open.pooling = pooling_of(source.manifest());
  return models::describe(source, open);
}

}  // namespace

ModelSource open_model(const std::filesystem::path& path, const kernels::KernelRegistry& registry) {
  try {
    return ModelSource::open(path);
  } catch (const BrokenSeal& broken) {
    const js::Value inference = js::get(&broken.document(), "inference");
    const auto differences =
        inference == nullptr ? std::vector<plan::PinDifference>() : plan::pin_differences(*inference, registry);
    if (differences.empty()) throw;
    fail(ErrorCode::integrity, "{}; {}{}", broken.what(), differences.front().text(),
         differences.size() > 1 ? fmt::format(" ({} more differ)", differences.size() - 1) : std::string());
  }
}

Json manifest_of(const ModelSource& source, const PlanOptions& options) {
  if (!options.manifest.is_null()) return options.manifest;
  if (source.format() == SourceFormat::artifact) {
    if (!options.pooling.empty())
      fail(ErrorCode::usage, "{}: the artifact's manifest states how it is pooled; leave out --pooling {}",
           source.path().string(), printable(options.pooling));
    if (!options.kernel_path.empty())
      fail(ErrorCode::usage,
           "{}: the artifact's manifest states its kernels; re-pin it with candor rebind --kernel-path",
           source.path().string());
    return source.manifest();
  }
  return generate_manifest(source, options);
}

std::shared_ptr<const kernels::KernelRegistry> registry_of(const PlanOptions& options) {
  if (options.registry.empty()) return {std::shared_ptr<void>(), &kernels::builtin_registry()};
  return std::make_shared<kernels::KernelRegistry>(kernels::load_registry(options.registry));
}

Json generate_manifest(const ModelSource& source, const PlanOptions& options) {
  const models::ModelDescription description = describe_for_plan(source, options);
  const KernelPath path = find_kernel_path(options);
  const auto registry = registry_of(options);
  const std::string name = models::source_name(source);
  if (path.rules)
    return models::make_manifest({name, source.tensors(), description, *path.rules, *registry, source.path().string()});
  // The facts of the model are the family's; the execution is what the path lists.
  Json manifest =
      models::make_manifest({name, source.tensors(), description,
                             kernels::builtin_kernel_rules(default_kernel_path(options)), kernels::builtin_registry()});
  auto execution = plan::build_execution_from_kernel_path(&path.steps, {}, *registry);
  if (!execution) fail(ErrorCode::plan, "kernel path {}: it lists no steps", options.kernel_path);
  for (const auto& [key, value] : execution->items()) manifest["inference"][key] = value;
  if (const js::Value id = js::get(&path.steps, "id"); js::is_string(id)) manifest["kernelPath"] = *id;
  return manifest;
}

std::string backend_of(const CompiledModel& compiled) {
  std::string found;
  std::string first;
  for (const auto* phase : {&compiled.flow.prefill, &compiled.flow.decode})
    for (const plan::StepInstance& step : phase->steps) {
      const js::Value stated = js::get(&step.variant->raw, "backend");
      const std::string backend = js::is_string(stated) ? stated->get<std::string>() : "cpu";
      if (found.empty()) {
        found = backend;
        first = step.step->id;
      }
      if (backend != found)
        fail(ErrorCode::plan, "step \"{}\" has a kernel of {} and step \"{}\" one of {}; a plan runs on one backend",
             first, found, step.step->id, backend);
    }
  return found.empty() ? "cpu" : found;
}

/// A manifest whose numLayers was lowered would leave out the last layers. Throws Error(format) if a step's weight has
/// a tensor in the layer after the last.
void check_no_further_layer(const CompiledModel& model) {
  const js::Value steps = js::at_path(&model.manifest, {"inference", "execution", "steps"});
  if (model.source.format() != SourceFormat::artifact || !js::is_array(steps)) return;
  const auto check = [&](const Json& pattern) {
    if (!pattern.is_string()) return;
    const auto& text = pattern.get_ref<const std::string&>();
    if (text.find(models::kLayerPlaceholder) == std::string::npos) return;
    const std::string name = models::expand_pattern(text, model.layers);
    if (model.source.find(name))
      fail(ErrorCode::format,
           "{}: architecture.numLayers is {}, but the manifest lists tensor \"{}\" of a further layer, which no step "
           "would read; restore the manifest, or convert the model again",
           model.source.path().string(), model.layers, printable(name));
  };
  for (const Json& step : *steps) {
    const js::Value weights = js::get(&step, "weights");
    if (js::is_string(weights)) check(*weights);
    if (js::is_plain_object(weights))
      for (const Json& pattern : *weights) check(pattern);
  }
}

/// The compiler takes over what it does not know; nothing here would obey it.
void check_policies(const Json& policies, const std::filesystem::path& path) {
  for (const auto& [name, value] : policies.items()) {
    if (plan::default_policies().contains(name)) continue;
    std::string known;
    for (const auto& entry : plan::default_policies().items()) known += (known.empty() ? "" : ", ") + entry.key();
    fail(ErrorCode::plan, "{}: execution.policies.{} is unknown; known are {}", path.string(), printable(name), known);
  }
}

CompiledModel compile_model(const std::filesystem::path& path, const PlanOptions& options) {
  CompiledModel model;
  model.registry = registry_of(options);
  model.source = open_model(path, *model.registry);
  model.manifest = manifest_of(model.source, options);
  const Json& inference = model.manifest["inference"];
  model.layers = static_cast<std::uint32_t>(architecture_number(model.manifest, "numLayers", limits::layers));
  model.vocabulary = architecture_number(model.manifest, "vocabSize", limits::vocabulary);
  model.max_positions = architecture_number(model.manifest, "maxSeqLen", limits::context);
  model.stop_tokens = manifest_stop_tokens(model.manifest, model.vocabulary);
  model.manifest_digest = canonical_digest(model.manifest);
  if (options.manifest.is_null() && options.registry.empty() && models::is_original_artifact(model.source))
    fail(ErrorCode::unsupported,
         "{}: the steps of this artifact are for the original's kernels and leave out part of what its manifest "
         "describes; make complete ones with candor convert {} OUTPUT",
         path.string(), path.string());
  plan::check_pins(inference, *model.registry);

  model.overlay = Json::object();
  if (!options.session.is_null()) model.overlay["session"] = options.session;
  if (Json patch = execution_patch(inference, options, *model.registry); !patch.is_null())
    model.overlay["executionPatch"] = std::move(patch);

  model.overlay = plan::adopt_profiles(inference, plan::effective_overlay(inference, model.overlay));
  auto compiled = plan::compile({.manifest_inference = inference,
                                 .runtime_inference = &model.overlay,
                                 .model_id = model.manifest.value("modelId", "model"),
                                 .layers = model.layers,
                                 .registry = model.registry.get()});
  if (!compiled)
    fail(ErrorCode::plan,
         "{}: the manifest has no execution steps; candor convert writes an artifact with complete ones",
         path.string());
  model.plan = *std::move(compiled);
  check_policies(model.plan.policies, path);
  check_no_further_layer(model);
  (void)kv_settings(model.plan.session);  // unknown keys are refused before anything is loaded
  (void)decode_loop_settings(model.plan.session);
  check_session_overlay(model.overlay, model.plan);
  model.plan_digest = canonical_digest(model.plan.to_json());
  model.flow = plan::check_dataflow(
      {model.plan, model.layers, *model.registry, [&](std::string_view name) { return model.source.find(name); }});
  if (const std::string backend = backend_of(model); !options.backend.empty() && backend != options.backend)
    fail(
        ErrorCode::usage,
        "{}: --backend {} is asked for, but the plan's kernels are of {}; candor rebind MODEL --kernel-path {} pins an "
        "artifact's steps to that backend's",
        path.string(), options.backend, backend, options.backend);
  return model;
}

}  // namespace candor::runtime
