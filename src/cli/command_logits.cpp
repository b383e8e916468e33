#include <CLI/CLI.hpp>
#include <optional>

#include "base/error.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/probe_options.h"
#include "cli/receipt_file.h"
#include "cli/tensor_file.h"

namespace candor::cli {
namespace {

struct LogitsArguments {
  PlanArguments plan;
  LoadArguments load;
  ProbeArguments probe;
  std::optional<std::string> tokens;
  std::string text;
  std::string out;
  std::string receipt;
  bool json = false;
};

int write_logits_of(const LogitsArguments& arguments) {
  if (arguments.out.empty() && arguments.probe.probes.empty() && arguments.receipt.empty())
    fail(ErrorCode::usage,
         "nothing is asked for; give --out FILE for the logits, --receipt FILE for their digest, or --probe STEP for "
         "what a step wrote");
  std::vector<std::uint32_t> tokens;
  if (arguments.tokens) tokens = token_ids(*arguments.tokens);
  check_output_files({{"--out", arguments.out}, {"--receipt", arguments.receipt}, {"--probe-out", arguments.probe.out}},
                     arguments.plan.model);
  EngineOptions options = engine_options(arguments.plan, arguments.load, !arguments.json);
  options.plan.rows = runtime::RowSelection::all;
  Engine engine(arguments.plan.model, options);
  if (!arguments.tokens) tokens = engine.encode_raw(arguments.text);
  ProbeSession probes(engine, arguments.probe, !arguments.json);
  const std::vector<float> logits = engine.logits(tokens);
  const runtime::CompiledModel& compiled = engine.model().compiled();
  if (!arguments.out.empty())
    write_tensors(arguments.out, {{"logits", {logits.size() / compiled.vocabulary, compiled.vocabulary}, logits}}, {});
  probes.save();
  if (!arguments.receipt.empty()) write_receipt(arguments.receipt, receipt_of(engine, options, tokens, logits));
  if (arguments.json) {
    Json out{{"tokens", tokens}, {"shape", {tokens.size(), compiled.vocabulary}}, {"planDigest", compiled.plan_digest}};
    if (!arguments.out.empty()) out["file"] = arguments.out;
    if (probes.any()) out["probes"] = probes.to_json();
    print_json(out);
    return 0;
  }
  for (const std::string& line : probes.lines()) print(line + "\n");
  if (!arguments.out.empty())
    report(fmt::format("{}: logits [{}, {}], {} · plan {} (--rows all)", arguments.out, tokens.size(),
                       compiled.vocabulary, format_bytes(logits.size() * sizeof(float)),
                       short_digest(compiled.plan_digest)));
  return 0;
}

}  // namespace

void add_logits(CLI::App& program, Invocation& invocation) {
  CLI::App& app =
      *program.add_subcommand("logits", "Write the logits of every position, or what steps wrote, to safetensors");
  auto arguments = std::make_shared<LogitsArguments>();
  add_plan_options(app, arguments->plan);
  CLI::Option_group& input = *app.add_option_group("Input");
  add_token_ids(input, arguments->tokens, "Token ids, as 1,2,3; works without a tokenizer");
  input.add_option("--text", arguments->text, "A text as it is, with BOS where the tokenizer adds one")
      ->type_name("TEXT");
  input.require_option(1);
  app.add_option("--out", arguments->out, "The file; its tensor `logits` is [tokens, vocabulary] float32")
      ->type_name("FILE");
  add_receipt(app, arguments->receipt);
  add_probe_options(app, arguments->probe);
  add_load_options(app, arguments->load);
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), write_logits_of);
}

}  // namespace candor::cli
