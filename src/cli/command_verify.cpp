#include <CLI/CLI.hpp>
#include <optional>

#include "base/error.h"
#include "base/memory.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/table.h"
#include "formats/artifact_verify.h"

namespace candor::cli {
namespace {

struct VerifyArguments {
  std::string model;
  bool json = false;
};

void print_damage(const std::vector<Damage>& damage) {
  Table table({"file", ">offset", ">bytes", "tensor", "expected", "found"});
  for (const Damage& range : damage)
    table.add({range.file, std::to_string(range.offset), std::to_string(range.size), printable(range.tensor),
               short_digest(range.expected), short_digest(range.found)});
  table.print();
}

int verify(const VerifyArguments& arguments) {
  const ModelSource source = ModelSource::open(arguments.model);
  if (source.format() != SourceFormat::artifact)
    fail(ErrorCode::usage, "{}: a {} model has no digests to verify; candor convert makes an artifact, which has",
         arguments.model, to_string(source.format()));
  ThreadPool pool;
  const std::uint64_t bytes = verification_bytes(source);
  std::optional<Progress> progress(std::in_place, "verifying", bytes, true);
  const std::vector<Damage> damage = verify_artifact(source, pool, &*progress);
  progress.reset();
  if (arguments.json) {
    Json ranges = Json::array();
    for (const Damage& range : damage)
      ranges.push_back({{"file", range.file},
                        {"offset", range.offset},
                        {"bytes", range.size},
                        {"tensor", range.tensor},
                        {"expected", range.expected},
                        {"found", range.found}});
    print_json({{"bytes", bytes}, {"damage", std::move(ranges)}});
  } else if (damage.empty()) {
    print(fmt::format("{}: every byte is as it was written ({} hashed).\n", arguments.model, format_bytes(bytes)));
  } else {
    print_damage(damage);
  }
  return damage.empty() ? 0 : exit_status(ErrorCode::integrity);
}

}  // namespace

void add_verify(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("verify", "Check an artifact's bytes; status 7 if any differ");
  auto arguments = std::make_shared<VerifyArguments>();
  app.add_option("MODEL", arguments->model, "An artifact folder")->required();
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), verify);
}

}  // namespace candor::cli
