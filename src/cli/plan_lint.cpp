#include <filesystem>
#include <optional>
#include <utility>

#include "backends/webgpu/requirements.h"
#include "base/error.h"
#include "base/limits.h"
#include "cli/output.h"
#include "cli/plan_commands.h"
#include "kernels/kernel_path_registry.h"
#include "kernels/registry.h"
#include "plan/lint.h"

namespace candor::cli {
namespace {

/// Layers that a kernel path is compiled for where no model says how many: enough for a layer to be handed to another.
constexpr std::int64_t kLayers = 2;

void print_findings(const std::vector<plan::Finding>& findings) {
  for (const plan::Finding& finding : findings)
    print(fmt::format("{}  {}: {}; {}\n", bold(finding.code), finding.subject, finding.message, finding.remedy));
}

/// What of a plan for WebGPU the adapter cannot run.
std::vector<plan::Finding> lint_adapter(const runtime::CompiledModel& model, const LoadArguments& load) {
  if (runtime::backend_of(model) != "webgpu")
    fail(ErrorCode::usage, "--adapter {}: the plan's kernels are of backend {}; add --backend webgpu", load.adapter,
         runtime::backend_of(model));
  const webgpu::Adapter adapter =
      webgpu::choose_adapter(std::make_shared<const webgpu::Library>(load.webgpu_library), load.adapter);
  const runtime::LoadOptions options = load_options(load, false);
  const auto backend = runtime::make_backend("webgpu", options);
  std::vector<plan::Finding> findings;
  for (const webgpu::UnsupportedStep& step :
       webgpu::unsupported_steps(runtime::bind_model(model, *backend, options), adapter))
    findings.push_back({"unsupported-step", step.step,
                        fmt::format("{} needs {}, and adapter \"{}\" has not", step.kernel,
                                    fmt::join(step.missing, ", "), printable(adapter.name())),
                        "choose other kernels (--kernel-path), a smaller quantization or a shorter --context"});
  return findings;
}

int lint_model(const PlanCommandArguments& arguments) {
  const runtime::PlanOptions options = plan_options(arguments.plan);
  const Json manifest =
      runtime::manifest_of(runtime::open_model(arguments.plan.model, *runtime::registry_of(options)), options);
  const Json overlay{{"session", options.session}, {"executionPatch", options.execution_patch}};
  std::optional<runtime::CompiledModel> model;
  std::string refusal;
  try {
    model.emplace(runtime::compile_model(arguments.plan.model, options));
  } catch (const Error& error) {
    refusal = error.what();
  }
  std::vector<plan::Finding> findings =
      plan::lint({manifest["inference"], model ? model->overlay : overlay, model ? model->layers : 0,
                  *runtime::registry_of(options), model ? &model->flow : nullptr});
  if (model && !arguments.load.adapter.empty())
    for (plan::Finding& finding : lint_adapter(*model, arguments.load)) findings.push_back(std::move(finding));
  if (arguments.json) {
    Json list = Json::array();
    for (const plan::Finding& finding : findings) list.push_back(finding.to_json());
    print_json({{"refused", refusal.empty() ? Json() : Json(refusal)}, {"findings", std::move(list)}});
  } else {
    if (!refusal.empty()) print(fmt::format("refused: {}\n", refusal));
    print_findings(findings);
    if (refusal.empty() && findings.empty()) print("Nothing to say about this plan.\n");
  }
  return refusal.empty() && findings.empty() ? 0 : exit_status(ErrorCode::plan);
}

/// The kernel paths to lint, by id or file name.
std::vector<std::pair<std::string, Json>> chosen_paths(const PlanArguments& arguments,
                                                       const kernels::KernelPathRegistry& paths) {
  const std::string& name = arguments.kernel_path;
  if (name.ends_with(".json")) return {{name, read_json_file(name)}};
  if (!name.empty()) return {{name, paths.get(name)}};
  std::vector<std::pair<std::string, Json>> out;
  for (const kernels::KernelPathEntry& entry : paths.entries()) out.emplace_back(entry.id, paths.get(entry.id));
  return out;
}

int lint_paths(const PlanCommandArguments& arguments) {
  const PlanArguments& plan = arguments.plan;
  if (plan.registry.empty() && !plan.kernel_path.ends_with(".json"))
    fail(ErrorCode::usage,
         "nothing to lint; give a MODEL, a --registry with kernel paths, or a --kernel-path FILE that lists steps");
  if (!arguments.load.adapter.empty())
    fail(ErrorCode::usage, "--adapter asks what of a model's plan a GPU cannot run; give the MODEL");
  if (!plan.session.empty() || !plan.patch.empty() || !plan.overlay.empty())
    fail(ErrorCode::usage, "--session, --patch and --overlay are laid over a model's plan; give the MODEL");
  const auto registry = runtime::registry_of(plan_options(plan));
  const std::filesystem::path folder = std::filesystem::path(plan.registry) / "kernel-paths";
  const kernels::KernelPathRegistry paths = plan.registry.empty() || !std::filesystem::exists(folder)
                                                ? kernels::KernelPathRegistry()
                                                : kernels::load_kernel_paths(folder);
  bool clean = true;
  Json reports = Json::object();
  for (const auto& [name, path] : chosen_paths(plan, paths)) {
    if (path.is_object() && path.contains("rules"))
      fail(ErrorCode::usage, "{}: it holds rules, which become steps with a model; give the MODEL too", name);
    const plan::KernelPathReport report = plan::lint_kernel_path(path, paths, *registry, kLayers);
    clean = clean && report.refusal.empty() && report.findings.empty();
    if (arguments.json) {
      reports[name] = report.to_json();
      continue;
    }
    if (report.refusal.empty()) {
      print(fmt::format("{}: {} steps, compiled to {} of prefill and {} of decode\n", bold(name), report.steps,
                        report.prefill, report.decode));
    } else {
      print(fmt::format("{}: refused: {}\n", bold(name), report.refusal));
    }
    print_findings(report.findings);
  }
  if (arguments.json) print_json(reports);
  return clean ? 0 : exit_status(ErrorCode::plan);
}

}  // namespace

int plan_lint(const PlanCommandArguments& arguments) {
  return arguments.plan.model.empty() ? lint_paths(arguments) : lint_model(arguments);
}

}  // namespace candor::cli
