#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/js_value.h"
#include "base/memory.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/table.h"
#include "engine/gguf_export.h"
#include "engine/golden.h"
#include "formats/artifact_writer.h"
#include "formats/convert.h"
#include "models/original.h"

namespace candor::cli {
namespace {

struct ConvertArguments {
  std::string source;
  std::string output;
  std::string format;
  std::string quant = "keep";
  std::string quant_map;
  std::string kernel_path;
  std::string pooling;
  std::uint32_t context = 0;
  bool requantize = false;
  bool no_golden = false;
  bool tensors = false;
  unsigned threads = 0;
  bool json = false;
};

OutputFormat output_format(const ConvertArguments& arguments) {
  if (arguments.format.empty())
    return arguments.output.ends_with(".gguf") ? OutputFormat::gguf : OutputFormat::artifact;
  return *parse_output_format(arguments.format);  // CLI11 let only these names pass
}

ConvertOptions convert_options(const ConvertArguments& arguments) {
  ConvertOptions options;
  options.output = arguments.output;
  options.format = output_format(arguments);
  options.mix = *parse_quant_mix(arguments.quant);
  if (!arguments.quant_map.empty()) options.map = QuantMap(read_json_file(arguments.quant_map), arguments.quant_map);
  options.requantize = arguments.requantize;
  options.make_header = [&arguments](const ModelSource& planned) {
    runtime::PlanOptions plan;
    plan.kernel_path = arguments.kernel_path;
    plan.pooling = arguments.pooling;
    plan.context = arguments.context;
    Json header = runtime::generate_manifest(planned, plan);
    const js::Value scaling = js::at_path(&header, {"inference", "rope", "ropeScalingType"});
    if (arguments.context != 0 && !js::strict_equal(scaling, "longrope"))
      fail(ErrorCode::usage,
           "--context {} would do nothing: this model computes the same in every context (only LongRoPE chooses its "
           "factors by it); leave it out here and give it to candor run",
           arguments.context);
    return header;
  };
  return options;
}

struct Change {
  std::size_t tensors = 0;
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  double error = 0;  ///< the worst tensor's relative error
};

void print_report(const ConvertReport& report_of_run) {
  std::map<std::pair<Encoding, Encoding>, Change> changes;
  for (const TensorReport& tensor : report_of_run.tensors) {
    Change& change = changes[{tensor.from, tensor.to}];
    ++change.tensors;
    change.before += tensor.bytes_before;
    change.after += tensor.bytes_after;
    if (tensor.stats) change.error = std::max(change.error, tensor.stats->relative_error);
  }
  Table table({"from", "to", ">tensors", ">before", ">after", ">worst relative error"});
  for (const auto& [encodings, change] : changes)
    table.add({std::string(to_string(encodings.first)), std::string(to_string(encodings.second)),
               std::to_string(change.tensors), format_bytes(change.before), format_bytes(change.after),
               change.error > 0 ? short_number(change.error) : "exact"});
  table.print();
  print(fmt::format("\n{}: {} of {}\n", report_of_run.output.string(), format_bytes(report_of_run.bytes_after()),
                    format_bytes(report_of_run.bytes_before())));
  if (report_of_run.resumed > 0) note("{} tensors had been done by an interrupted run", report_of_run.resumed);
  if (!report_of_run.left_out.empty())
    note("{} tensors are no part of the computation and were left out: {}", report_of_run.left_out.size(),
         printable(fmt::format("{}", fmt::join(report_of_run.left_out, ", "))));
  for (const TensorReport& tensor : report_of_run.tensors)
    if (tensor.stats && tensor.to == Encoding::f16 && tensor.stats->above_f16 > 0)
      note("{}: {} values are too large for f16 and became infinite", printable(tensor.name), tensor.stats->above_f16);
}

void print_tensors(const ConvertReport& report_of_run) {
  Table table({"tensor", "from", "to", ">before", ">after", ">relative error", ">largest error"});
  for (const TensorReport& tensor : report_of_run.tensors)
    table.add({printable(tensor.name), std::string(to_string(tensor.from)), std::string(to_string(tensor.to)),
               format_bytes(tensor.bytes_before), format_bytes(tensor.bytes_after),
               tensor.stats ? short_number(tensor.stats->relative_error) : "",
               tensor.stats ? short_number(tensor.stats->max_error) : ""});
  table.print();
  print("\n");
}

/// Runs the new artifact once and keeps the logits that it computed.
void add_golden(const ConvertArguments& arguments) {
  EngineOptions options;
  options.plan.rows = runtime::RowSelection::all;
  options.load.threads = arguments.threads;
  Engine engine(arguments.output, options);
  Json manifest = engine.model().compiled().manifest;
  if (manifest["modelType"] == "embedding") return;  // it has no logits
  manifest["golden"] = record_golden(engine);
  replace_manifest(arguments.output, std::move(manifest));
}

int convert_model(const ConvertArguments& arguments) {
  ModelSource source = runtime::open_model(arguments.source, kernels::builtin_registry());
  if (models::is_original_artifact(source)) {
    source.state_configuration(models::original_configuration(source), models::original_tokenizer_config(source));
    note(
        "{}: its steps are for other kernels and leave out part of what it describes; the new ones are made of the "
        "description",
        arguments.source);
  }
  ConvertOptions options = convert_options(arguments);
  if (options.format == OutputFormat::gguf && !source.gguf()) describe_as_gguf(source, options);
  if (options.format != OutputFormat::artifact && !arguments.kernel_path.empty())
    fail(ErrorCode::usage, "--kernel-path is for artifacts; a {} file has no manifest", to_string(options.format));
  if (options.format != OutputFormat::artifact && (!arguments.pooling.empty() || arguments.context != 0))
    fail(ErrorCode::usage, "--pooling and --context are for artifacts; a {} file has no manifest",
         to_string(options.format));
  say_when_interrupted("; the same command goes on from here");
  ThreadPool pool(arguments.threads);
  std::optional<Progress> progress(std::in_place, "converting", planned_bytes(source, options), true);
  const ConvertReport report_of_run = convert(source, options, pool, &*progress);
  progress.reset();
  say_when_interrupted("; the model is written, without golden logits");
  if (options.format == OutputFormat::artifact && !arguments.no_golden) add_golden(arguments);
  if (arguments.json) {
    print_json(to_json(report_of_run));
    return 0;
  }
  if (arguments.tensors) print_tensors(report_of_run);
  print_report(report_of_run);
  return 0;
}

}  // namespace

void add_convert(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("convert", "Write a model in another format or with other encodings");
  auto arguments = std::make_shared<ConvertArguments>();
  (void)add_model(app, arguments->source, "A GGUF file, a Hugging Face folder, an artifact folder, or a name",
                  "SOURCE");
  app.add_option("OUTPUT", arguments->output, "The folder, or for GGUF the file; must not exist")->required();
  app.add_option("--to", arguments->format, "artifact, gguf or safetensors (default: gguf for *.gguf, else artifact)")
      ->check(CLI::IsMember(std::vector<std::string>{"artifact", "gguf", "safetensors"}))
      ->type_name("FORMAT");
  add_quant(app, arguments->quant);
  app.add_option("--quant-map", arguments->quant_map,
                 "Encodings of single tensors over --quant: a JSON object from names, with *, to encodings")
      ->type_name("FILE");
  app.add_flag("--requantize", arguments->requantize, "Encode anew what is quantized already, losing precision twice");
  app.add_option("--kernel-path", arguments->kernel_path, "For artifacts: rules that choose the kernels")
      ->type_name("ID|FILE");
  add_pooling(app, arguments->pooling);
  add_context(app, arguments->context,
              "what a SOURCE's manifest holds, else the model's, at most 4096; only LongRoPE differs");
  app.add_flag("--no-golden", arguments->no_golden, "Do not run the artifact to record golden logits in its manifest");
  app.add_flag("--tensors", arguments->tensors, "List every tensor with what encoding it cost");
  add_threads(app, arguments->threads);
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), convert_model);
}

}  // namespace candor::cli
