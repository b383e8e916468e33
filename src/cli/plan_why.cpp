#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cli/output.h"
#include "cli/plan_commands.h"
#include "cli/table.h"
#include "kernels/registry.h"
#include "plan/explain.h"

namespace candor::cli {
namespace {

/// "q_proj.mathDtype" → ("q_proj", "mathDtype"); no field if the text ends in none.
std::pair<std::string, std::string> split_field(std::string text) {
  for (const std::string_view field : plan::explained_fields()) {
    const std::string ending = "." + std::string(field);
    if (!text.ends_with(ending)) continue;
    text.resize(text.size() - ending.size());
    if (text.ends_with(".precision")) text.resize(text.size() - std::string_view(".precision").size());
    return {text, std::string(field)};
  }
  return {text, {}};
}

/// The step that is meant. Where there is none, but one before a point, it is the field that was wrong.
std::string find_step_or_refuse_field(const plan::ExecutionPlan& plan, const std::string& name) {
  try {
    return plan::find_step(plan, name);
  } catch (const Error& error) {
    for (std::size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0; dot = name.rfind('.', dot - 1)) {
      std::string id;
      try {
        id = plan::find_step(plan, name.substr(0, dot));
      } catch (const Error&) {
        continue;
      }
      fail(ErrorCode::usage, "step \"{}\" has no field \"{}\" to explain; the fields are {}", id,
           printable(name.substr(dot + 1)), fmt::join(plan::explained_fields(), ", "));
    }
    throw;
  }
}

/// True if the two phases' explanations read the same, so that one is enough.
bool same(const plan::StepExplanation& a, const plan::StepExplanation& b) {
  return a.to_json()["fields"] == b.to_json()["fields"];
}

void print_step(const plan::StepExplanation& explanation, std::string_view phases,
                const kernels::KernelRegistry& registry) {
  const plan::ResolvedStep& step = *explanation.step;
  print(fmt::format("{}  {} in {}\n", bold(step.id), printable(step.op), phases));
  if (step.kernel.empty()) return;
  const auto digest = registry.digest(step.kernel, step.entry);
  print(fmt::format("kernel {}#{}, pinned to sha256:{}, the digest of its source in this build\n", step.kernel,
                    step.entry, digest.value_or("")));
}

void print_fields(const plan::StepExplanation& explanation) {
  for (const plan::FieldExplanation& field : explanation.fields) {
    print(fmt::format("\n{} = {}\n", bold(field.field), bold(field.value)));
    for (const plan::Candidate& candidate : field.candidates) {
      const bool used = candidate.lost.empty();
      const std::string line = fmt::format("  {} {}  {}: {}{}{}", used ? "*" : " ", candidate.value, candidate.source,
                                           candidate.place, used ? "" : "; ", candidate.lost);
      print((used ? line : dim(line)) + "\n");
    }
  }
}

}  // namespace

int plan_why(const PlanCommandArguments& arguments) {
  const runtime::CompiledModel model = runtime::compile_model(arguments.plan.model, plan_options(arguments.plan));
  auto [name, field] = split_field(arguments.step);
  const std::string id = find_step_or_refuse_field(model.plan, name);
  auto explanations = plan::explain_step({model.plan, model.manifest["inference"], model.overlay, *model.registry}, id);
  for (plan::StepExplanation& explanation : explanations)
    if (!field.empty()) std::erase_if(explanation.fields, [&](const auto& each) { return each.field != field; });
  if (!field.empty() && explanations.front().fields.empty())
    fail(ErrorCode::usage, "step \"{}\" has no {}; only attention reads and writes the KV cache", id, field);
  if (arguments.json) {
    Json steps = Json::array();
    for (const plan::StepExplanation& explanation : explanations) steps.push_back(explanation.to_json());
    print_json({{"planDigest", model.plan_digest}, {"explanations", std::move(steps)}});
    return 0;
  }
  if (explanations.size() == 2 && same(explanations[0], explanations[1])) {
    print_step(explanations[0], "prefill and decode", *model.registry);
    print_fields(explanations[0]);
    return 0;
  }
  bool first = true;
  for (const plan::StepExplanation& explanation : explanations) {
    if (!std::exchange(first, false)) print("\n");
    print_step(explanation, explanation.phase, *model.registry);
    print_fields(explanation);
  }
  return 0;
}

}  // namespace candor::cli
