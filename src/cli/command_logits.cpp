#include <CLI/CLI.hpp>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "formats/safetensors_writer.h"

namespace candor::cli {
namespace {

struct LogitsArguments {
  PlanArguments plan;
  LoadArguments load;
  std::vector<std::uint32_t> tokens;
  std::string text;
  std::string out;
  bool json = false;
};

/// A file with one tensor `logits`, [rows, vocabulary] float32.
void write_logits(const std::string& path, std::span<const float> logits, std::uint64_t vocabulary) {
  TensorInfo tensor;
  tensor.name = "logits";
  tensor.encoding = Encoding::f32;
  tensor.shape = {logits.size() / vocabulary, vocabulary};
  const OutputLayout layout = layout_safetensors({tensor}, {}, UINT64_MAX);
  std::string content = layout.files.front().header;
  const auto bytes = std::as_bytes(logits);
  content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  write_file_atomically(path, content);
}

int write_logits_of(const LogitsArguments& arguments) {
  EngineOptions options{plan_options(arguments.plan), load_options(arguments.load, !arguments.json)};
  options.plan.rows = runtime::RowSelection::all;
  Engine engine(arguments.plan.model, options);
  const std::vector<std::uint32_t> tokens =
      arguments.tokens.empty() ? engine.encode_raw(arguments.text) : arguments.tokens;
  const std::vector<float> logits = engine.logits(tokens);
  const runtime::CompiledModel& compiled = engine.model().compiled();
  write_logits(arguments.out, logits, compiled.vocabulary);
  if (arguments.json) {
    print_json({{"file", arguments.out},
                {"tokens", tokens},
                {"shape", {tokens.size(), compiled.vocabulary}},
                {"planDigest", compiled.plan_digest}});
  } else {
    report(fmt::format("{}: logits [{}, {}], {} · plan {}", arguments.out, tokens.size(), compiled.vocabulary,
                       format_bytes(logits.size() * sizeof(float)), short_digest(compiled.plan_digest)));
  }
  return 0;
}

}  // namespace

void add_logits(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("logits", "Write the logits of every position to a safetensors file");
  auto arguments = std::make_shared<LogitsArguments>();
  add_plan_options(app, arguments->plan);
  CLI::Option_group& input = *app.add_option_group("Input");
  input.add_option("--tokens", arguments->tokens, "Token ids, as 1,2,3; works without a tokenizer")
      ->type_name("IDS")
      ->delimiter(',');
  input.add_option("--text", arguments->text, "A text as it is, with BOS where the tokenizer adds one")
      ->type_name("TEXT");
  input.require_option(1);
  app.add_option("--out", arguments->out, "The file; its tensor `logits` is [tokens, vocabulary] float32")
      ->type_name("FILE")
      ->required();
  add_load_options(app, arguments->load);
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), write_logits_of);
}

}  // namespace candor::cli
