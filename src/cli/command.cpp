#include "cli/command.h"

#include <CLI/CLI.hpp>

namespace candor::cli {

void on_chosen(CLI::App& app, Invocation& invocation, std::function<int()> action) {
  app.callback([&invocation, action = std::move(action)] { invocation.action = action; });
}

CLI::Option* add_json(CLI::App& app, bool& json) {
  return app.add_flag("--json", json, "Print one JSON document");
}

CLI::Option* add_repeated(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                          const std::string& help) {
  // Without allow_extra_args(false) the option would also take the words after its value, and read "[a,b]" as a list.
  return app.add_option(name, values, help)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace candor::cli
