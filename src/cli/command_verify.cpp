#include <CLI/CLI.hpp>
#include <optional>

#include "base/error.h"
#include "base/js_value.h"
#include "base/memory.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/table.h"
#include "engine/golden.h"
#include "formats/artifact_verify.h"
#include "plan/pins.h"

namespace candor::cli {
namespace {

struct VerifyArguments {
  std::string model;
  bool no_golden = false;
  bool json = false;
};

void print_damage(const std::vector<Damage>& damage) {
  Table table({"file", ">offset", ">bytes", "tensor", "expected", "found"});
  for (const Damage& range : damage)
    table.add({range.file, std::to_string(range.offset), std::to_string(range.size),
               range.tensor.empty() ? "(the whole file)" : printable(range.tensor), short_digest(range.expected),
               short_digest(range.found)});
  table.print();
}

/// Runs the model on the tokens of its golden logits; nothing if it has none. Throws Error(integrity) if a kernel is
/// not the one that is pinned.
std::optional<GoldenComparison> check_golden(const ModelSource& source, const VerifyArguments& arguments) {
  if (arguments.no_golden || !source.manifest().contains("golden")) return std::nullopt;
  EngineOptions options;
  options.plan.rows = runtime::RowSelection::all;
  Engine engine(arguments.model, options);
  return compare_golden(engine, source.manifest()["golden"]);
}

Json golden_json(const std::optional<GoldenComparison>& golden) {
  if (!golden) return nullptr;
  return {{"sameBits", golden->same_bits},
          {"positions", golden->positions},
          {"otherTokens", golden->other_tokens},
          {"largestDifference", golden->largest_difference}};
}

int verify(const VerifyArguments& arguments) {
  const ModelSource source = runtime::open_model(arguments.model, kernels::builtin_registry());
  if (source.format() != SourceFormat::artifact)
    fail(ErrorCode::usage, "{}: a {} model has no digests to verify; candor convert makes an artifact, which has",
         arguments.model, to_string(source.format()));
  ThreadPool pool;
  const std::uint64_t bytes = artifact_bytes(source);
  std::optional<Progress> progress(std::in_place, "verifying", verification_bytes(source), true);
  const std::vector<Damage> damage = verify_artifact(source, pool, &*progress);
  progress.reset();
  std::optional<GoldenComparison> golden;
  if (damage.empty()) {
    // What is not sealed is the original's, whose kernels are others.
    if (const js::Value inference = js::get(&source.manifest(), "inference");
        inference != nullptr && source.manifest().contains("manifestDigest"))
      plan::check_pins(*inference, kernels::builtin_registry());
    golden = check_golden(source, arguments);
  }
  const bool computes_the_same = !golden || golden->same_bits;
  if (arguments.json) {
    Json ranges = Json::array();
    for (const Damage& range : damage)
      ranges.push_back({{"file", range.file},
                        {"offset", range.offset},
                        {"bytes", range.size},
                        {"tensor", range.tensor},
                        {"expected", range.expected},
                        {"found", range.found}});
    print_json({{"bytes", bytes}, {"damage", std::move(ranges)}, {"golden", golden_json(golden)}});
  } else if (damage.empty()) {
    print(fmt::format("{}: every byte is as it was written ({}).\n", arguments.model, format_bytes(bytes)));
    if (golden && computes_the_same)
      print(fmt::format("The golden logits of {} are computed to the bit.\n", counted(golden->positions, "position")));
    if (!computes_the_same)
      print(fmt::format("The golden logits differ by {} of the largest; candor rebind says more.\n",
                        short_number(golden->largest_difference)));
  } else {
    print_damage(damage);
  }
  return damage.empty() && computes_the_same ? 0 : exit_status(ErrorCode::integrity);
}

}  // namespace

void add_verify(CLI::App& program, Invocation& invocation) {
  CLI::App& app =
      *program.add_subcommand("verify", "Check an artifact's bytes, kernels and golden logits; status 7 if any differ");
  auto arguments = std::make_shared<VerifyArguments>();
  (void)add_model(app, arguments->model, "An artifact folder");
  app.add_flag("--no-golden", arguments->no_golden, "Hash only; do not compute the golden logits again");
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), verify);
}

}  // namespace candor::cli
