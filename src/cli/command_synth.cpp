#include <CLI/CLI.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/memory.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/table.h"
#include "formats/synth.h"

namespace candor::cli {
namespace {

struct SynthArguments {
  std::string shape;
  std::string output;
  std::string quant = "q8_0";
  std::uint64_t seed = 0;
  bool list = false;
  unsigned threads = 0;
  bool json = false;
};

int list_shapes(const SynthArguments& arguments) {
  Table table({"shape", ">layers", ">hidden", ">heads", ">kv heads", ">feed-forward", ">vocabulary", ">context"});
  Json rows = Json::array();
  for (const SynthShape& shape : synth_shapes()) {
    table.add({std::string(shape.name), std::to_string(shape.layers), std::to_string(shape.hidden),
               std::to_string(shape.heads), std::to_string(shape.kv_heads), std::to_string(shape.feed_forward),
               std::to_string(shape.vocabulary), std::to_string(shape.context)});
    rows.push_back({{"name", shape.name},
                    {"layers", shape.layers},
                    {"hidden", shape.hidden},
                    {"heads", shape.heads},
                    {"kvHeads", shape.kv_heads},
                    {"feedForward", shape.feed_forward},
                    {"vocabulary", shape.vocabulary},
                    {"context", shape.context}});
  }
  if (arguments.json) {
    print_json({{"shapes", std::move(rows)}});
  } else {
    table.print();
  }
  return 0;
}

int synth(const SynthArguments& arguments) {
  if (arguments.list) return list_shapes(arguments);
  if (arguments.shape.empty() || arguments.output.empty())
    fail(ErrorCode::usage, "give a shape and an output; candor synth --list shows the shapes");
  SynthOptions options;
  options.output = arguments.output;
  options.format = arguments.output.ends_with(".gguf") ? OutputFormat::gguf : OutputFormat::artifact;
  options.shape = find_synth_shape(arguments.shape);
  options.mix = *parse_quant_mix(arguments.quant);
  options.seed = arguments.seed;
  options.make_header = [](const ModelSource& planned) { return runtime::generate_manifest(planned, {}); };
  ThreadPool pool(arguments.threads);
  const std::uint64_t bytes = synth_bytes(options);
  std::optional<Progress> progress(std::in_place, "writing", bytes, true);
  synthesize(options, pool, &*progress);
  progress.reset();
  if (arguments.json) {
    print_json({{"output", arguments.output}, {"bytes", bytes}, {"seed", arguments.seed}});
  } else {
    report(fmt::format("{}: {}, seed {}", arguments.output, format_bytes(bytes), arguments.seed));
  }
  return 0;
}

}  // namespace

void add_synth(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("synth", "Write a model with random weights, for measuring");
  auto arguments = std::make_shared<SynthArguments>();
  app.add_option("SHAPE", arguments->shape, "A shape by name");
  app.add_option("OUTPUT", arguments->output, "A .gguf file, or a folder for an artifact; must not exist");
  add_quant(app, arguments->quant);
  constexpr std::uint64_t kLargestSeed = (1ull << 53) - 1;  // exact in JSON
  in_range<std::uint64_t>(app.add_option("--seed", arguments->seed, "The same seed gives the same bytes"), 0,
                          kLargestSeed)
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--list", arguments->list, "List the shapes");
  add_threads(app, arguments->threads);
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), synth);
}

}  // namespace candor::cli
