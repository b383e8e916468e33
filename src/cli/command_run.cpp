#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <optional>
#include <random>

#include "base/error.h"
#include "base/limits.h"
#include "cli/chat.h"
#include "cli/command.h"
#include "cli/conversation.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/probe_options.h"
#include "cli/receipt_file.h"
#include "cli/run_report.h"
#include "kernels/cpu/probe.h"

namespace candor::cli {
namespace {

struct RunArguments {
  PlanArguments plan;
  LoadArguments load;
  ProbeArguments probe;
  std::optional<std::string> prompt;
  bool raw = false;
  std::string system;
  std::string tools;
  std::uint32_t max_tokens = 0;
  bool ignore_eos = false;
  std::vector<std::string> stop;
  SamplerParameters sampler;
  std::string seed = "0";
  std::string receipt;
  std::uint32_t prefix_positions = 0;
  bool quiet = false;
  bool json = false;
};

/// Seeds stay exact in JSON, whose numbers are doubles.
constexpr std::uint64_t kLargestSeed = (1ull << 53) - 1;
constexpr std::uint32_t kLargestCount = std::numeric_limits<std::uint32_t>::max();

std::uint64_t parse_seed(const std::string& text) {
  if (text == "random") return std::random_device{}();
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size() || seed > kLargestSeed)
    fail(ErrorCode::usage, "--seed must be an integer from 0 to {}, or random; got \"{}\"", kLargestSeed,
         printable(text));
  return seed;
}

void add_prompt_options(CLI::App& app, RunArguments& arguments) {
  const auto set_prompt = [&arguments](const std::string& text) {
    if (arguments.prompt) throw CLI::ValidationError("the prompt is given twice");
    arguments.prompt = text;
  };
  app.add_option_function<std::string>("PROMPT", set_prompt, "The prompt; without one, standard input, or a chat");
  app.add_option_function<std::string>("-p,--prompt", set_prompt, "The same")->type_name("TEXT");
  app.add_flag("--raw", arguments.raw, "Take the text as it is, without the chat template; an empty one starts at BOS");
  app.add_option("--system", arguments.system, "The system's turn")->type_name("TEXT");
  app.add_option("--tools", arguments.tools, "A JSON array of tools for the chat template")->type_name("FILE");
  in_range(app.add_option("-n,--max-tokens", arguments.max_tokens,
                          "Longest answer (default: until a stop or a full context)"),
           1u, static_cast<std::uint32_t>(limits::context))
      ->type_name("N");
  add_repeated(app, "--stop", arguments.stop, "A text that ends the answer and is not part of it; repeatable")
      ->type_name("TEXT");
  app.add_flag("--ignore-eos", arguments.ignore_eos, "Go on after a stop token");
}

void add_sampler_options(CLI::App& app, RunArguments& arguments) {
  SamplerParameters& sampler = arguments.sampler;
  const auto add = [&app](const char* name, auto& value, const char* type, const char* help) {
    return app.add_option(name, value, help)->type_name(type)->capture_default_str()->group("Sampling");
  };
  in_range(add("--temperature", sampler.temperature, "T", "0 takes the likeliest token"), 0.0f, 100.0f);
  in_range(add("--top-k", sampler.top_k, "K", "Keep the K likeliest tokens; 0: all"), 0u, kLargestCount);
  in_range(add("--top-p", sampler.top_p, "P", "Keep the likeliest until their sum reaches P; 1: all"), 0.0f, 1.0f);
  in_range(add("--min-p", sampler.min_p, "P", "Keep those at least P times as likely as the likeliest; 0: all"), 0.0f,
           1.0f);
  in_range(add("--repetition-penalty", sampler.repetition_penalty, "F", "Divide the logits of recent tokens; 1: not"),
           0.01f, 100.0f);
  in_range(add("--repetition-window", sampler.repetition_window, "N", "How many tokens are recent"), 0u, kLargestCount);
  add("--seed", arguments.seed, "N|random", "The same seed gives the same answer");
}

/// What was asked for and could have no effect is an error.
void check(const CLI::App& app, const RunArguments& arguments) {
  if (arguments.sampler.temperature > 0) return;
  for (const char* name : {"--top-k", "--top-p", "--min-p"})
    if (app.count(name) > 0) fail(ErrorCode::usage, "{} does nothing at temperature 0; give --temperature too", name);
}

/// The prompt given, or standard input if that is no terminal; nothing for a chat. One line feed that a shell put at
/// the end of the input is no part of the prompt.
std::optional<std::string> find_prompt(const RunArguments& arguments) {
  if (arguments.prompt || input_is_terminal()) return arguments.prompt;
  std::string text = read_input();
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

/// What the same number of threads reads from memory at most; the report compares with it.
double memory_bandwidth(const RunArguments& arguments) {
  if (arguments.quiet) return 0;
  ThreadPool pool(arguments.load.threads);
  return cpu::measure_read_bandwidth(pool);
}

int answer(Engine& engine, Conversation& conversation, TextRequest request, const std::string& prompt,
           const EngineOptions& options, const RunArguments& arguments) {
  request.prompt = conversation.ask(prompt);
  std::function<void(std::string_view)> on_text;
  if (!arguments.json) on_text = print_model_text;
  ProbeSession probes(engine, arguments.probe, !arguments.json);
  const TextResult result = engine.generate(request, on_text);
  probes.save();
  if (!arguments.receipt.empty()) write_receipt(arguments.receipt, receipt_of(engine, options, request, result));
  const RunReport report_of_run{result, engine, request.sampler, memory_bandwidth(arguments)};
  if (arguments.json) {
    Json out = report_of_run.to_json(conversation.prompt_text());
    if (probes.any()) out["probes"] = probes.to_json();
    print_json(out);
  } else {
    print("\n");
    flush_output();
    for (const std::string& line : probes.lines()) report(line);
    if (!arguments.quiet) report(report_of_run.line());
  }
  return result.reason == runtime::StopReason::cancelled ? exit_status(ErrorCode::cancelled) : 0;
}

int run(const RunArguments& arguments) {
  catch_interrupts();
  TextRequest request;
  request.max_tokens = arguments.max_tokens;
  request.sampler = arguments.sampler;
  request.sampler.seed = parse_seed(arguments.seed);
  request.stop_strings = arguments.stop;
  request.ignore_stop_tokens = arguments.ignore_eos;
  request.cancelled = interrupted;
  ConversationOptions options{arguments.raw, arguments.system, {}};
  if (!arguments.tools.empty()) options.tools = read_json_file(arguments.tools);
  const std::optional<std::string> prompt = find_prompt(arguments);
  if (!prompt && arguments.json) fail(ErrorCode::usage, "--json answers one prompt; give it, or pipe it in");
  if (!prompt && !arguments.probe.probes.empty())
    fail(ErrorCode::usage, "--probe looks at one prompt; give it, or pipe it in");
  if (!prompt && !arguments.receipt.empty())
    fail(ErrorCode::usage, "--receipt is of one prompt; give it, or pipe it in");
  if (prompt && arguments.prefix_positions != 0)
    fail(ErrorCode::usage, "--prefix-cache is for the turns of a chat; one prompt has no turns before it");
  check_output_files({{"--receipt", arguments.receipt}, {"--probe-out", arguments.probe.out}}, arguments.plan.model);

  EngineOptions engine_setup = engine_options(arguments.plan, arguments.load, !arguments.quiet && !arguments.json);
  engine_setup.load.prefix_positions = arguments.prefix_positions;
  Engine engine(arguments.plan.model, engine_setup);
  (void)engine.tokenizer();  // a model that takes no text says so before anything else is asked
  Conversation conversation(engine, std::move(options));
  if (!prompt) return chat(engine, conversation, std::move(request), {memory_bandwidth(arguments), arguments.quiet});
  return answer(engine, conversation, std::move(request), *prompt, engine_setup, arguments);
}

}  // namespace

void add_run(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("run", "Answer a prompt, or chat");
  auto arguments = std::make_shared<RunArguments>();
  add_plan_options(app, arguments->plan);
  add_prompt_options(app, *arguments);
  add_sampler_options(app, *arguments);
  add_probe_options(app, arguments->probe);
  add_load_options(app, arguments->load);
  add_receipt(app, arguments->receipt);
  in_range(app.add_option("--prefix-cache", arguments->prefix_positions,
                          "Positions of earlier turns that a chat keeps instead of computing them again; needs "
                          "--session kvcache.layout=paged"),
           1u, static_cast<std::uint32_t>(limits::context))
      ->type_name("N");
  app.add_flag("--quiet", arguments->quiet, "Only the answer and errors");
  add_json(app, arguments->json);
  on_chosen(app, invocation, [&app, arguments] {
    check(app, *arguments);
    return run(*arguments);
  });
}

}  // namespace candor::cli
