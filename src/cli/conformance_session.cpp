#include "cli/conformance_session.h"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "kernels/builtin.h"
#include "kernels/kernel_path.h"
#include "kernels/kernel_path_policy.h"
#include "kernels/kernel_ref.h"
#include "plan/apply.h"
#include "plan/execution_plan.h"
#include "plan/generate.h"
#include "plan/merge.h"
#include "plan/schema.h"

namespace candor::cli {
namespace {

using js::Value;

std::optional<Json> copy(Value value) {
  return value == nullptr ? std::nullopt : std::optional(*value);
}

Json text_or_null(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json();
}

/// A phase argument; other types than text are no phase.
std::string phase_of(Value phase) {
  return js::is_string(phase) ? phase->get<std::string>() : std::string();
}

/// A role argument; what is falsy is no role.
std::string role_of(Value role) {
  return js::truthy(role) ? js::to_string(role) : std::string();
}

Value layer_or_first(Value layer) {
  static const Json kFirst = 0;
  return js::coalesce(layer, &kFirst);
}

Json defaults() {
  Json out = Json::object();
  out["schemaId"] = plan::kSchemaId;
  out["sessionDefaults"] = plan::default_session();
  out["policies"] = plan::default_policies();
  out["patch"] = plan::default_patch();
  out["config"] = plan::default_config();
  return out;
}

Json stats_json(const kernels::KernelPathStats& stats) {
  Json out = Json::object();
  out["decodeSteps"] = stats.decode_steps;
  out["prefillSteps"] = stats.prefill_steps;
  out["uniqueKernels"] = stats.unique_kernels;
  out["hasLayerOverrides"] = stats.has_layer_overrides;
  return out;
}

std::string weight_ref(Value name, Value layer) {
  if (!js::is_string(name)) fail(ErrorCode::format, "a weight name must be a string; got {}", js::to_string(name));
  return kernels::resolve_weight_ref(name->get_ref<const std::string&>(), js::to_string(layer));
}

Json error_answer(const Json& id, const char* message, const char* name) {
  Json out = Json::object();
  out["id"] = id;
  out["ok"] = false;
  out["error"] = message;
  out["errorName"] = name;
  return out;
}

}  // namespace

struct ConformanceSession::Function {
  std::string_view name;
  Result (*call)(ConformanceSession& session, const Arguments& arguments);
};

const ConformanceSession::Function* ConformanceSession::find_function(std::string_view name) {
  using S = ConformanceSession;
  using A = Arguments;
  using kernels::entry_name;
  using kernels::kernel_name;
  // Missing arguments have been filled up with undefined.
  static constexpr std::array kFunctions = {
      // The compiler and what surrounds it.
      Function{"compileExecutionV0", [](S& s, const A& a) -> Result { return s.compile(a[0]); }},
      Function{"applyExecutionV0RuntimeConfig", [](S& s, const A& a) -> Result { return s.apply(a[0]); }},
      Function{"buildExecutionV0FromKernelPath",
               [](S& s, const A& a) -> Result {
                 return plan::build_execution_from_kernel_path(a[0], s.paths_, s.registry_).value_or(Json());
               }},
      Function{"mergeRuntimeValues",
               [](S&, const A& a) -> Result {
                 if (a[0] == nullptr && a[1] == nullptr) return std::nullopt;
                 return plan::merge_runtime_values(a[0], a[1]);
               }},
      Function{"hasExecutionV0", [](S&, const A& a) -> Result { return plan::has_execution(a[0]); }},
      Function{"isExecutionV0Digest", [](S&, const A& a) -> Result { return plan::is_digest(a[0]); }},
      Function{"isExecutionV0Semver", [](S&, const A& a) -> Result { return plan::is_semver(a[0]); }},
      Function{"executionV0Defaults", [](S&, const A&) -> Result { return defaults(); }},
      // Kernel refs.
      Function{"sha256Hex", [](S&, const A& a) -> Result { return sha256_hex(js::to_string(a[0])); }},
      Function{"getKernelRefContentDigest",
               [](S& s, const A& a) -> Result {
                 return kernels::content_digest(s.registry_, kernel_name(a[0]), entry_name(a[1]));
               }},
      Function{"buildKernelRefFromKernelEntry",
               [](S& s, const A& a) -> Result {
                 return kernels::build_kernel_ref(s.registry_, kernel_name(a[0]), entry_name(a[1])).to_json();
               }},
      Function{"buildLegacyKernelRefFromKernelEntry",
               [](S&, const A& a) -> Result {
                 return kernels::legacy_kernel_ref(kernel_name(a[0]), entry_name(a[1])).to_json();
               }},
      Function{"isKernelRefBoundToKernel",
               [](S& s, const A& a) -> Result { return kernels::is_bound(s.registry_, a[0], a[1], a[2]); }},
      // Kernel paths.
      Function{"getKernelPath",
               [](S& s, const A& a) -> Result {
                 const Value path = s.paths_.find(js::to_string(a[0]));
                 return path == nullptr ? Json() : *path;
               }},
      Function{"listKernelPaths", [](S& s, const A&) -> Result { return s.paths_.ids(); }},
      Function{"resolveKernelPath",
               [](S& s, const A& a) -> Result {
                 return copy(js::is_string(a[0]) ? &s.paths_.get(a[0]->get<std::string>()) : a[0]);
               }},
      Function{"getKernelPathActivationDtype",
               [](S&, const A& a) -> Result { return copy(kernels::activation_dtype(a[0])); }},
      Function{"getKernelPathOutputDtype", [](S&, const A& a) -> Result { return copy(kernels::output_dtype(a[0])); }},
      Function{"getKernelPathKVDtype", [](S&, const A& a) -> Result { return copy(kernels::kv_dtype(a[0])); }},
      Function{"resolveWeightRef", [](S&, const A& a) -> Result { return weight_ref(a[0], a[1]); }},
      Function{"getLayerSteps",
               [](S&, const A& a) -> Result { return copy(kernels::layer_steps(a[0], a[1], phase_of(a[2]))); }},
      Function{"validateKernelPath", [](S&, const A& a) -> Result { return kernels::validate_kernel_path(a[0]); }},
      Function{"getKernelPathMatmulVariant",
               [](S& s, const A& a) -> Result {
                 return text_or_null(kernels::matmul_variant(s.registry_, s.path_or_active(a[3]), role_of(a[0]),
                                                             phase_of(a[1]), layer_or_first(a[2])));
               }},
      Function{"getKernelPathMatmulConstants",
               [](S& s, const A& a) -> Result {
                 const Value constants = kernels::matmul_constants(s.path_or_active(a[3]), role_of(a[0]),
                                                                   phase_of(a[1]), layer_or_first(a[2]));
                 return constants == nullptr ? Json() : *constants;
               }},
      Function{"getKernelPathAttentionVariant",
               [](S& s, const A& a) -> Result {
                 return text_or_null(kernels::attention_variant(s.registry_, s.path_or_active(a[2]), phase_of(a[0]),
                                                                layer_or_first(a[1])));
               }},
      Function{"isKernelPathFusedQ4K",
               [](S& s, const A& a) -> Result { return kernels::is_fused_q4k(s.path_or_active(a[0])); }},
      Function{"isKernelPathDequant",
               [](S& s, const A& a) -> Result { return kernels::is_dequant(s.path_or_active(a[0])); }},
      Function{"formatKernelPath", [](S&, const A& a) -> Result { return kernels::format_kernel_path(a[0]); }},
      Function{"getKernelPathStats",
               [](S&, const A& a) -> Result { return stats_json(kernels::kernel_path_stats(a[0])); }},
      // The active path and its policy.
      Function{"setActiveKernelPath",
               [](S& s, const A& a) -> Result {
                 s.active_.set(a[0], a[1] == nullptr ? "none" : js::to_string(a[1]), a[2]);
                 return std::nullopt;
               }},
      Function{"getActiveKernelPath", [](S& s, const A&) -> Result { return copy(s.active_.path()); }},
      Function{"getActiveKernelPathSource", [](S& s, const A&) -> Result { return s.active_.source(); }},
      Function{"getActiveKernelPathPolicy", [](S& s, const A&) -> Result { return s.active_.policy().to_json(); }},
      Function{"getKernelPathStrict", [](S&, const A&) -> Result { return true; }},
      Function{"isActiveKernelPathFusedQ4K",
               [](S& s, const A&) -> Result { return kernels::is_fused_q4k(s.active_.path()); }},
      Function{"isActiveKernelPathDequant",
               [](S& s, const A&) -> Result { return kernels::is_dequant(s.active_.path()); }},
      Function{"resolveKernelPathPolicy",
               [](S&, const A& a) -> Result { return kernels::resolve_kernel_path_policy(a[0]).to_json(); }},
      Function{"resolveCapabilityKernelPathRef",
               [](S& s, const A& a) -> Result {
                 if (!js::is_string(a[0])) return copy(a[0]);
                 const Value subgroups = js::get(a[2], "hasSubgroups");
                 return kernels::resolve_capability_path(s.rules_, a[0]->get<std::string>(), a[1],
                                                         subgroups != nullptr && *subgroups == true,
                                                         kernels::resolve_kernel_path_policy(a[3]));
               }},
  };
  const auto found =
      std::find_if(kFunctions.begin(), kFunctions.end(), [&](const Function& f) { return f.name == name; });
  return found == kFunctions.end() ? nullptr : &*found;
}

ConformanceSession::ConformanceSession() : registry_(kernels::builtin_registry()) {
  rules_.add("inference", "kernelPath", kernels::builtin_kernel_path_rules());
}

ConformanceSession::ConformanceSession(const std::filesystem::path& registry_directory)
    : loaded_(kernels::load_registry(registry_directory)),
      registry_(*loaded_),
      paths_(kernels::load_kernel_paths(registry_directory / "kernel-paths")) {
  const auto rules = registry_directory / "kernel-path.rules.json";
  rules_.add("inference", "kernelPath", parse_json(read_file(rules, limits::json_bytes), rules.string()));
}

std::string ConformanceSession::answer(std::string_view line) {
  Json id;
  try {
    const Json request = parse_json(line, "line");
    if (const Value given = js::get(&request, "id")) id = *given;
    Json out = Json::object();
    out["id"] = id;
    out["ok"] = true;
    if (Result result = call(request)) out["result"] = *std::move(result);
    return to_js_json(out);
  } catch (const Error& error) {
    return to_js_json(error_answer(id, error.what(), error.code() == ErrorCode::format ? "TypeError" : "Error"));
  } catch (const std::exception& error) {
    return to_js_json(error_answer(id, error.what(), "Error"));
  }
}

js::Value ConformanceSession::argument(const Json& json) const {
  if (js::truthy(js::get(&json, "$undefined"))) return nullptr;
  const Value path = js::get(&json, "$path");
  return js::is_string(path) ? &paths_.get(path->get_ref<const std::string&>()) : &json;
}

ConformanceSession::Result ConformanceSession::call(const Json& request) {
  const Value name = js::get(&request, "fn");
  if (name == nullptr) return compile(js::get(&request, "options"));
  const Function* function = js::is_string(name) ? find_function(name->get_ref<const std::string&>()) : nullptr;
  if (function == nullptr) fail(ErrorCode::usage, "unknown function {}", js::to_string(name));
  constexpr std::size_t kMostArguments = 4;
  Arguments arguments;
  if (const Value given = js::get(&request, "args"); js::is_array(given))
    for (const Json& json : *given) arguments.push_back(argument(json));
  arguments.resize(std::max(arguments.size(), kMostArguments), nullptr);
  return function->call(*this, arguments);
}

ConformanceSession::Result ConformanceSession::compile(js::Value options) const {
  const Value manifest = js::get(options, "manifestInference");
  if (manifest == nullptr) return Json();
  plan::CompileInput input{*manifest, js::get(options, "runtimeInference")};
  input.model_id = plan::model_id_text(js::get(options, "modelId"));
  input.layers = plan::layer_count(js::get(options, "numLayers"));
  input.registry = &registry_;
  auto plan = plan::compile(input);
  return plan ? std::move(plan->result) : Json();
}

ConformanceSession::Result ConformanceSession::apply(js::Value options) const {
  plan::ApplyInput input;
  input.runtime_config = js::get(options, "runtimeConfig");
  input.manifest = js::get(options, "manifest");
  input.model_id = js::get(options, "modelId");
  input.num_layers = js::get(options, "numLayers");
  input.registry = &registry_;
  plan::AppliedConfig applied = plan::apply_runtime_config(input);
  Json out = Json::object();
  out["runtimeConfig"] = std::move(applied.runtime_config);
  out["executionV0State"] = applied.plan ? std::move(applied.plan->result) : Json();
  return out;
}

js::Value ConformanceSession::path_or_active(js::Value path) const {
  return path == nullptr ? active_.path() : path;
}

}  // namespace candor::cli
