#include <CLI/CLI.hpp>

#include "cli/plan_commands.h"

namespace candor::cli {
namespace {

const std::vector<std::string> kPhases{"prefill", "decode"};

}  // namespace

void add_plan(CLI::App& program, Invocation& invocation) {
  CLI::App& plan = *program.add_subcommand("plan", "Show what will execute, and why");
  plan.require_subcommand(1);
  const auto add = [&](const char* name, const char* help, int (*action)(const PlanCommandArguments&),
                       const std::function<void(CLI::App&, PlanCommandArguments&)>& options) {
    CLI::App& app = *plan.add_subcommand(name, help);
    auto arguments = std::make_shared<PlanCommandArguments>();
    add_plan_options(app, arguments->plan);
    options(app, *arguments);
    add_json(app, arguments->json);
    on_chosen(app, invocation, std::move(arguments), action);
  };
  const auto add_phase = [](CLI::App& app, PlanCommandArguments& arguments) {
    app.add_option("--phase", arguments.phase, "prefill or decode")->check(CLI::IsMember(kPhases))->type_name("PHASE");
  };
  const auto add_filters = [&](CLI::App& app, PlanCommandArguments& arguments) {
    add_phase(app, arguments);
    app.add_option("--layer", arguments.layer, "Only this layer, with its weights and shapes")->type_name("N");
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
  add("diff", "What the overlay changes, or how another model's plan differs", plan_diff,
      [](CLI::App& app, PlanCommandArguments& arguments) {
        app.add_option("OTHER", arguments.other,
                       "The model to compare with; its plan has the overlay, MODEL's has not");
      });
  add("lint", "What is likely a mistake; status 6 if anything is", plan_lint, [](CLI::App&, PlanCommandArguments&) {});
  add("graph", "A picture of one phase (decode) as SVG", plan_graph, add_phase);
  add("export", "The plan as canonical JSON, whose SHA-256 is its digest", plan_export,
      [](CLI::App&, PlanCommandArguments&) {});
}

}  // namespace candor::cli
