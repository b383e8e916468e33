#include <CLI/CLI.hpp>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/table.h"
#include "runtime/compare.h"

namespace candor::cli {
namespace {

using runtime::Comparison;
using runtime::StepDifference;

/// Values of both models are held for one chunk; a chunk's size changes no bit.
constexpr std::uint32_t kChunkRows = 32;

struct CompareArguments {
  PairArguments pair;
  std::string webgpu_library, adapter;
  std::optional<std::string> tokens;
  std::string text;
  std::string phase = "prefill";
  double bound = 0;
  std::uint32_t context = 0;
  unsigned threads = 0;
  std::string isa;
  std::string other_isa;
  bool json = false;
};

std::string number(double value) {
  return value == 0 ? "0" : fmt::format("{:.3g}", value);
}

Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json difference_json(const StepDifference& step) {
  return {{"step", step.step_a},
          {"otherStep", step.step_b},
          {"op", step.op},
          {"slot", step.slot},
          {"layer", step.layer < 0 ? Json() : Json(step.layer)},
          {"values", step.values},
          {"different", step.different},
          {"scale", step.scale},
          {"largest", finite_or_null(step.largest)},
          {"relative", finite_or_null(step.relative())},
          {"rms", finite_or_null(step.rms())},
          {"firstRow", step.first_row ? Json(*step.first_row) : Json()}};
}

std::string describe(const StepDifference& step) {
  return fmt::format("{}{}", step.step_a, step.layer < 0 ? "" : fmt::format(" ({}) in layer {}", step.op, step.layer));
}

std::string verdict(const Comparison& comparison, double bound) {
  const StepDifference* first = comparison.first_above(bound);
  if (!first)
    return bound == 0 ? "All steps that both plans have give the same values."
                      : fmt::format("No step differs by more than {} of its largest value.", number(bound));
  return fmt::format("The first step that differs{} is {}: by {} of its largest value {}, from token {} on.",
                     bound == 0 ? "" : fmt::format(" by more than {}", number(bound)), describe(*first),
                     number(first->relative()), number(first->scale), first->first_row.value_or(0));
}

void print_comparison(const Comparison& comparison, double bound) {
  Table table({"step", ">layer", "slot", ">values", ">different", ">scale", ">largest", ">relative", ">rms"});
  for (const StepDifference& step : comparison.steps)
    table.add({step.step_a, step.layer < 0 ? "" : std::to_string(step.layer), step.slot, std::to_string(step.values),
               std::to_string(step.different), number(step.scale), number(step.largest), number(step.relative()),
               number(step.rms())});
  if (!table.empty()) {
    table.print();
    print("\n");
  }
  for (const runtime::UnmatchedStep& step : comparison.unmatched)
    print(fmt::format("not compared: {}{}, {}\n", step.step,
                      step.layer < 0 ? "" : fmt::format(" in layer {}", step.layer), step.reason));
  print(bold(verdict(comparison, bound)) + "\n");
}

runtime::LoadedModel load(const std::string& path, runtime::PlanOptions plan, const CompareArguments& arguments,
                          const std::string& isa) {
  plan.rows = runtime::RowSelection::all;
  runtime::LoadOptions options;
  options.threads = arguments.threads;
  options.isa = isa;
  options.webgpu_library = arguments.webgpu_library;
  options.adapter = arguments.adapter;
  options.context = arguments.context;
  plan.context = arguments.context;
  options.prefill_rows = kChunkRows;
  return {runtime::compile_model(path, plan), options};
}

int compare_models(const CompareArguments& arguments) {
  std::vector<std::uint32_t> tokens;
  if (arguments.tokens) tokens = token_ids(*arguments.tokens);
  runtime::LoadedModel model = load(arguments.pair.plan.model, model_options(arguments.pair), arguments, arguments.isa);
  if (!arguments.tokens) {
    const auto tokenizer = load_tokenizer(model.compiled().source);
    if (!tokenizer)
      fail(ErrorCode::unsupported, "{}: the model's files hold no tokenizer; give --tokens", arguments.pair.plan.model);
    tokens = tokenizer->encode(arguments.text, {.add_special = true, .parse_special = true});
  }
  runtime::LoadedModel other = load(arguments.pair.other_model(), plan_options(arguments.pair.plan), arguments,
                                    arguments.other_isa.empty() ? arguments.isa : arguments.other_isa);
  const Phase phase = arguments.phase == "decode" ? Phase::decode : Phase::prefill;
  const Comparison comparison = runtime::compare(model, other, tokens, phase);
  if (comparison.steps.empty())
    fail(ErrorCode::plan,
         "there is nothing to compare: of the {} steps that the two plans have in {}, none is in both with the same "
         "width; candor plan diff says how they differ",
         comparison.unmatched.size(), arguments.phase);
  const StepDifference* first = comparison.first_above(arguments.bound);
  const int status = first ? kDiffersStatus : 0;
  if (!arguments.json) {
    print_comparison(comparison, arguments.bound);
    return status;
  }
  Json steps = Json::array();
  for (const StepDifference& step : comparison.steps) steps.push_back(difference_json(step));
  Json unmatched = Json::array();
  for (const runtime::UnmatchedStep& step : comparison.unmatched)
    unmatched.push_back(
        {{"step", step.step}, {"layer", step.layer < 0 ? Json() : Json(step.layer)}, {"reason", step.reason}});
  print_json({{"model", {{"planDigest", model.compiled().plan_digest}, {"backend", model.backend().describe()}}},
              {"other", {{"planDigest", other.compiled().plan_digest}, {"backend", other.backend().describe()}}},
              {"tokens", tokens},
              {"phase", arguments.phase},
              {"bound", arguments.bound},
              {"first", first ? difference_json(*first) : Json()},
              {"steps", std::move(steps)},
              {"notCompared", std::move(unmatched)}});
  return status;
}

}  // namespace

void add_compare(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand(
      "compare", "Run two plans side by side; name the first step that differs, with status 11 if one does");
  auto arguments = std::make_shared<CompareArguments>();
  add_pair_options(app, arguments->pair);
  CLI::Option_group& input = *app.add_option_group("Input");
  add_token_ids(input, arguments->tokens, "Token ids, as 1,2,3");
  input.add_option("--text", arguments->text, "A text, through MODEL's tokenizer")->type_name("TEXT");
  input.require_option(1);
  in_range(app.add_option("--bound", arguments->bound,
                          "How much may differ, as a share of the step's largest value; 0: nothing"),
           0.0, 1e30)
      ->type_name("X")
      ->capture_default_str();
  app.add_option("--phase", arguments->phase, "prefill, or decode: token by token through decode's steps")
      ->check(CLI::IsMember(std::vector<std::string>{"prefill", "decode"}))
      ->type_name("PHASE")
      ->capture_default_str();
  add_context(app, arguments->context, "the plan's or the model's, at most 4096");
  add_adapter(app, arguments->webgpu_library, arguments->adapter);
  add_threads(app, arguments->threads);
  add_isa(app, arguments->isa);
  app.add_option("--other-isa", arguments->other_isa, "OTHER's, where it shall be another one")
      ->type_name("NAME")
      ->group("Execution");
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), compare_models);
}

}  // namespace candor::cli
