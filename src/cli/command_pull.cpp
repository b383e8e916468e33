#include <CLI/CLI.hpp>
#include <optional>
#include <vector>

#include "base/memory.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/output.h"
#include "hub/model_folder.h"
#include "hub/pull.h"

namespace candor::cli {
namespace {

struct PullArguments {
  std::string reference;
  std::string folder;
  std::string revision;
  std::vector<std::string> files;
  bool json = false;
};

PullOptions pull_options(const PullArguments& arguments) {
  PullOptions options;
  options.reference = HubReference::parse(arguments.revision.empty() ? arguments.reference
                                                                     : arguments.reference + "@" + arguments.revision);
  options.server = HubServer::from_environment();
  options.folder = arguments.folder;
  if (arguments.folder.empty()) options.folder = models_folder() / options.reference.name;
  options.files = arguments.files;
  return options;
}

Json to_json(const PullOptions& options, const PullResult& result) {
  Json files = Json::array();
  for (const HubFile& file : result.files) files.push_back({{"path", file.path}, {"size", file.size}});
  return {{"repository", options.reference.repository()},
          {"commit", result.commit},
          {"folder", options.folder.string()},
          {"bytes", result.bytes},
          {"downloaded", result.downloaded},
          {"files", std::move(files)}};
}

int pull_model(const PullArguments& arguments) {
  const PullOptions options = pull_options(arguments);
  std::optional<Progress> progress;
  const PullResult result = pull(
      options, [&](std::uint64_t total) { progress.emplace("pulling", total, true); },
      [&](std::uint64_t done) { progress->update(done); });
  progress.reset();
  if (arguments.json) {
    print_json(to_json(options, result));
  } else {
    report(fmt::format("{}: {} at {}, {}, {}{}", options.folder.string(), options.reference.repository(),
                       short_digest(result.commit), counted(result.files.size(), "file"), format_bytes(result.bytes),
                       result.was_there ? ", there already and unchanged" : ""));
  }
  return 0;
}

}  // namespace

void add_pull(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("pull", "Fetch a model from Hugging Face, each file checked by its digest");
  auto arguments = std::make_shared<PullArguments>();
  app.add_option("REF", arguments->reference, "OWNER/NAME or OWNER/NAME@REVISION")->required();
  app.add_option("DIR", arguments->folder, "Where it will lie (default: NAME in the folder that candor list shows)");
  app.add_option("--revision", arguments->revision, "A branch, tag or commit (default: main); pinned to its commit")
      ->type_name("REVISION");
  add_repeated(app, "--file", arguments->files,
               "A file of the repository, such as one of its GGUF files; repeatable (default: what makes a model)")
      ->type_name("PATH");
  add_json(app, arguments->json);
  app.footer("HF_TOKEN is sent for private and gated repositories; HF_ENDPOINT names another server.");
  on_chosen(app, invocation, std::move(arguments), pull_model);
}

}  // namespace candor::cli
