#include <CLI/CLI.hpp>

#include "base/limits.h"
#include "cli/plan_commands.h"

namespace candor::cli {
namespace {

const std::vector<std::string> kPhases{"prefill", "decode"};

void add_diff(CLI::App& plan, Invocation& invocation) {
  CLI::App& app = *plan.add_subcommand("diff", "What an overlay changes, or how two documents differ");
  auto arguments = std::make_shared<PlanDiffArguments>();
  add_pair_options(app, arguments->pair);
  app.get_option("MODEL")->description(
      "A model, or the JSON file of a manifest, an overlay, a receipt, or an answer (run --json)");
  app.get_option("OTHER")->description(
      "What to compare with, of the same kind, or of a model an overlay or a receipt (default: MODEL)");
  add_rows(app, arguments->pair.plan.rows);
  add_model(app, arguments->on, "The model that two overlays are laid over, to see what they touch", "--on")
      ->required(false)
      ->type_name("MODEL");
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), plan_diff);
}

}  // namespace

void add_plan(CLI::App& program, Invocation& invocation) {
  CLI::App& plan = *program.add_subcommand("plan", "Show what will execute, and why");
  plan.require_subcommand(1);
  const auto add = [&](const char* name, const char* help, int (*action)(const PlanCommandArguments&),
                       const std::function<void(CLI::App&, PlanCommandArguments&)>& options) {
    CLI::App& app = *plan.add_subcommand(name, help);
    auto arguments = std::make_shared<PlanCommandArguments>();
    add_plan_options(app, arguments->plan);
    add_rows(app, arguments->plan.rows);
    options(app, *arguments);
    add_json(app, arguments->json);
    on_chosen(app, invocation, std::move(arguments), action);
  };
  const auto add_phase = [](CLI::App& app, PlanCommandArguments& arguments) {
    app.add_option("--phase", arguments.phase, "prefill or decode")->check(CLI::IsMember(kPhases))->type_name("PHASE");
  };
  const auto add_filters = [&](CLI::App& app, PlanCommandArguments& arguments) {
    add_phase(app, arguments);
    in_range<std::int32_t>(app.add_option("--layer", arguments.layer, "Only this layer, with its weights and shapes"),
                           0, limits::layers)
        ->type_name("N");
  };
  add("show", "The steps: kernel, digest, dtypes, slots, layers", plan_show, add_filters);
  add("why", "Where a step's dtypes come from, and what lost", plan_why,
      [](CLI::App& app, PlanCommandArguments& arguments) {
        app.add_option("STEP", arguments.step, "An id, an op or the end of an id; STEP.mathDtype for one dtype")
            ->required();
      });
  add("program", "The instructions with buffers, shapes and memory", plan_program,
      [&](CLI::App& app, PlanCommandArguments& arguments) {
        add_filters(app, arguments);
        add_load_options(app, arguments.load);
      });
  add_diff(plan, invocation);
  add("lint", "What is likely a mistake, in a plan or in kernel paths; status 6 if anything is", plan_lint,
      [](CLI::App& app, PlanCommandArguments& arguments) {
        app.get_option("MODEL")->required(false)->description(
            "A model; without one, the kernel paths of --registry are linted, or the one of --kernel-path");
        add_load_options(app, arguments.load);
        app.get_option("--adapter")->description("Which steps this GPU cannot run, and why; a part of its name");
      });
  add("graph", "A picture of one phase (decode) as SVG", plan_graph, add_phase);
  add("export", "The plan as canonical JSON, whose SHA-256 is its digest", plan_export,
      [](CLI::App&, PlanCommandArguments&) {});
}

}  // namespace candor::cli
