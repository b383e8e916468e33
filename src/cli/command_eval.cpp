#include <CLI/CLI.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "engine/perplexity.h"

namespace candor::cli {
namespace {

struct PerplexityArguments {
  PlanArguments plan;
  LoadArguments load;
  std::string file;
  std::uint32_t window = 0;
  std::uint32_t stride = 0;
  bool json = false;
};

int eval_ppl(const PerplexityArguments& arguments) {
  const std::string text = read_file(arguments.file, limits::prompt_bytes);
  EngineOptions options = engine_options(arguments.plan, arguments.load, !arguments.json);
  options.plan.rows = runtime::RowSelection::all;
  Engine engine(arguments.plan.model, options);
  PerplexityOptions setup{arguments.window, arguments.stride, {}};
  std::optional<Progress> bar;
  if (!arguments.json)
    setup.progress = [&](std::uint64_t scored, std::uint64_t total) {
      if (!bar) bar.emplace("tokens", total);
      bar->update(scored);
    };
  const Perplexity result = perplexity_of_text(engine, text, setup);
  bar.reset();
  const std::string& digest = engine.model().compiled().plan_digest;
  if (arguments.json) {
    print_json({{"perplexity", result.per_token()},
                {"bitsPerByte", result.bits_per_byte()},
                {"natsPerToken", result.nats_per_token()},
                {"tokens", result.tokens},
                {"bytes", result.bytes},
                {"window", result.window},
                {"stride", result.stride},
                {"planDigest", digest}});
    return 0;
  }
  print(fmt::format("perplexity {:.4f}  {:.4f} bits a byte\n", result.per_token(), result.bits_per_byte()));
  report(fmt::format("{}, {} · windows of {} moved by {} · plan {} (--rows all)", counted(result.tokens, "token"),
                     counted(result.bytes, "byte"), result.window, result.stride, short_digest(digest)));
  return 0;
}

}  // namespace

void add_eval(CLI::App& program, Invocation& invocation) {
  CLI::App& eval = *program.add_subcommand("eval", "Measure a model");
  eval.require_subcommand(1);
  CLI::App& app = *eval.add_subcommand("ppl", "Perplexity of a text file, and bits a byte");
  auto arguments = std::make_shared<PerplexityArguments>();
  add_plan_options(app, arguments->plan);
  app.add_option("FILE", arguments->file, "The text, UTF-8")->required();
  constexpr auto kLongest = static_cast<std::uint32_t>(limits::context);
  in_range(
      app.add_option("--window", arguments->window, "Tokens computed at once; by default the context, at most 512"), 2u,
      kLongest)
      ->type_name("N");
  in_range(app.add_option("--stride", arguments->stride, "Tokens a window moves on; by default half of it"), 1u,
           kLongest)
      ->type_name("N");
  add_load_options(app, arguments->load);
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), eval_ppl);
}

}  // namespace candor::cli
