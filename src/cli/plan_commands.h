// The subcommands of `candor plan`; command_plan.cpp declares their arguments.
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/model_options.h"

namespace candor::cli {

struct PlanCommandArguments {
  PlanArguments plan;
  LoadArguments load;  ///< of `program`
  std::string phase;   ///< empty: both
  std::optional<std::int32_t> layer;
  std::string step;  ///< of `why`
  bool json = false;
};

struct PlanDiffArguments {
  PairArguments pair;
  std::string on;  ///< the model that two overlays are laid over; empty: none
  bool json = false;
};

int plan_show(const PlanCommandArguments& arguments);
int plan_why(const PlanCommandArguments& arguments);
int plan_program(const PlanCommandArguments& arguments);
int plan_lint(const PlanCommandArguments& arguments);
int plan_graph(const PlanCommandArguments& arguments);
int plan_export(const PlanCommandArguments& arguments);
int plan_diff(const PlanDiffArguments& arguments);

}  // namespace candor::cli
