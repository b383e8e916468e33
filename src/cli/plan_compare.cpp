#include <optional>

#include "base/error.h"
#include "cli/output.h"
#include "cli/plan_commands.h"
#include "cli/table.h"
#include "kernels/registry.h"
#include "plan/diff.h"
#include "plan/graph.h"
#include "plan/lint.h"

namespace candor::cli {
namespace {

/// A JSON text short enough for a table.
std::string shorten(const std::string& json) {
  constexpr std::size_t kWidth = 48;
  return printable(json, kWidth);
}

}  // namespace

int plan_diff(const PlanCommandArguments& arguments) {
  const auto before = runtime::compile_model(arguments.plan.model, {});
  const std::string& other = arguments.other.empty() ? arguments.plan.model : arguments.other;
  const auto after = runtime::compile_model(other, plan_options(arguments.plan));
  const std::vector<plan::Change> changes = plan::diff(before.plan, after.plan);
  if (arguments.json) {
    Json list = Json::array();
    for (const plan::Change& change : changes) list.push_back(change.to_json());
    print_json({{"before", before.plan_digest}, {"after", after.plan_digest}, {"changes", std::move(list)}});
    return 0;
  }
  print(fmt::format("before {}\nafter  {}\n", before.plan_digest, after.plan_digest));
  if (changes.empty()) return 0;
  print("\n");
  Table table({"where", "what", "field", "before", "after"});
  for (const plan::Change& change : changes)
    table.add({change.where, change.subject, change.field, shorten(change.before), shorten(change.after)});
  table.print();
  return 0;
}

int plan_lint(const PlanCommandArguments& arguments) {
  const runtime::PlanOptions options = plan_options(arguments.plan);
  const Json manifest = runtime::manifest_of(ModelSource::open(arguments.plan.model), options);
  const Json overlay{{"session", options.session}, {"executionPatch", options.execution_patch}};
  std::optional<runtime::CompiledModel> model;
  std::string refusal;
  try {
    model.emplace(runtime::compile_model(arguments.plan.model, options));
  } catch (const Error& error) {
    refusal = error.what();
  }
  const std::vector<plan::Finding> findings =
      plan::lint({manifest["inference"], overlay, model ? model->layers : 0, kernels::builtin_registry(),
                  model ? &model->plan : nullptr, model ? &model->flow : nullptr});
  if (arguments.json) {
    Json list = Json::array();
    for (const plan::Finding& finding : findings) list.push_back(finding.to_json());
    print_json({{"refused", refusal.empty() ? Json() : Json(refusal)}, {"findings", std::move(list)}});
  } else {
    if (!refusal.empty()) print(fmt::format("refused: {}\n", refusal));
    for (const plan::Finding& finding : findings)
      print(fmt::format("{}  {}: {} {}\n", bold(finding.code), finding.subject, finding.message, finding.remedy));
    if (refusal.empty() && findings.empty()) print("Nothing to say about this plan.\n");
  }
  return refusal.empty() && findings.empty() ? 0 : exit_status(ErrorCode::plan);
}

int plan_graph(const PlanCommandArguments& arguments) {
  const auto model = runtime::compile_model(arguments.plan.model, plan_options(arguments.plan));
  const std::string phase = arguments.phase.empty() ? "decode" : arguments.phase;
  const std::string title =
      fmt::format("{}, {}, plan {}", model.manifest.value("modelId", "model"), phase, short_digest(model.plan_digest));
  const std::string svg = plan::to_svg(model.flow, phase, title);
  if (arguments.json) {
    print_json({{"planDigest", model.plan_digest}, {"phase", phase}, {"svg", svg}});
  } else {
    print(svg);
  }
  return 0;
}

}  // namespace candor::cli
