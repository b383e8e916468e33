#include <CLI/CLI.hpp>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/table.h"
#include "hub/model_folder.h"

namespace candor::cli {
namespace {

struct ListArguments {
  bool json = false;
};

int list(const ListArguments& arguments) {
  const std::filesystem::path folder = models_folder();
  const std::vector<ListedModel> models = list_models(folder);
  if (arguments.json) {
    Json rows = Json::array();
    for (const ListedModel& model : models)
      rows.push_back(
          {{"name", model.name}, {"path", model.path.string()}, {"kind", model.kind}, {"bytes", model.bytes}});
    print_json({{"folder", folder.string()}, {"models", std::move(rows)}});
    return 0;
  }
  if (models.empty()) {
    note("{}: no models; candor pull fetches one, and what is put here gets a name", folder.string());
    return 0;
  }
  Table table({"name", "kind", ">size"});
  for (const ListedModel& model : models) table.add({model.name, model.kind, format_bytes(model.bytes)});
  table.print();
  note("in {}", folder.string());
  return 0;
}

}  // namespace

void add_list(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("list", "Models that have a short name");
  auto arguments = std::make_shared<ListArguments>();
  add_json(app, arguments->json);
  app.footer("The folder is CANDOR_MODELS, or candor/models in XDG_DATA_HOME or ~/.local/share.");
  on_chosen(app, invocation, std::move(arguments), list);
}

}  // namespace candor::cli
