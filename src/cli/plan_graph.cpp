#include "cli/output.h"
#include "cli/plan_commands.h"
#include "plan/graph.h"

namespace candor::cli {

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
