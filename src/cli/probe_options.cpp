#include "cli/probe_options.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <exception>

#include "base/error.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/tensor_file.h"

namespace candor::cli {
namespace {

using runtime::ProbedStep;

std::string layer_text(const ProbedStep& step) {
  return step.layer < 0 ? std::string() : std::to_string(step.layer);
}

std::string first_values(const ProbedStep& step) {
  std::vector<std::string> out;
  for (const float value : step.head) out.push_back(fmt::format("{:.6g}", value));
  return fmt::format("{}{}", fmt::join(out, " "), step.cols > step.head.size() ? " …" : "");
}

Json probed_json(const ProbedStep& step) {
  const runtime::ValueStatistics& statistics = step.statistics;
  Json head = Json::array();
  for (const float value : step.head) head.push_back(std::isfinite(value) ? Json(value) : Json());
  return {{"phase", to_string(step.phase)},
          {"step", step.step},
          {"op", step.op},
          {"layer", step.layer < 0 ? Json() : Json(step.layer)},
          {"slot", step.slot},
          {"encoding", to_string(step.encoding)},
          {"shape", {step.rows, step.cols}},
          {"smallest", statistics.smallest()},
          {"largest", statistics.largest()},
          {"mean", statistics.mean()},
          {"rms", statistics.rms()},
          {"notFinite", statistics.not_finite()},
          {"head", std::move(head)}};
}

}  // namespace

void add_probe_options(CLI::App& app, ProbeArguments& arguments) {
  add_repeated(app, "--probe", arguments.probes,
               "Show what a step wrote: its id, op or slot, with :LAYER for one layer, or all; repeatable")
      ->type_name("STEP[:LAYER]")
      ->group("Probes");
  app.add_option("--probe-out", arguments.out, "Save it too: a safetensors file with a float32 tensor for each step")
      ->type_name("FILE")
      ->group("Probes");
}

ProbeSession::ProbeSession(Engine& engine, const ProbeArguments& arguments, bool explain_errors)
    : engine_(engine), out_(arguments.out), explain_errors_(explain_errors), exceptions_(std::uncaught_exceptions()) {
  if (arguments.probes.empty()) {
    if (!out_.empty()) fail(ErrorCode::usage, "--probe-out {}: no step is probed; give --probe STEP", out_);
    return;
  }
  probes_.emplace(engine.model().program(), arguments.probes, !out_.empty());
  engine.session().observe(
      [this](Phase phase, std::size_t instruction) { probes_->read(engine_.model().backend(), phase, instruction); });
}

ProbeSession::~ProbeSession() {
  if (!probes_) return;
  engine_.session().observe({});
  if (!explain_errors_ || std::uncaught_exceptions() == exceptions_) return;
  try {
    for (const std::string& line : lines()) report(line);
  } catch (const std::exception&) {  // the error on its way says enough
  }
}

std::vector<std::string> ProbeSession::lines() const {
  if (!probes_) return {};
  Table table({"phase", "step", ">layer", "slot", "encoding", ">rows", ">cols", ">smallest", ">largest", ">mean",
               ">rms", ">not finite", "last row"});
  for (const ProbedStep& step : probes_->steps()) {
    if (step.rows == 0) continue;
    const runtime::ValueStatistics& statistics = step.statistics;
    table.add({std::string(to_string(step.phase)), step.step, layer_text(step), step.slot,
               std::string(to_string(step.encoding)), std::to_string(step.rows), std::to_string(step.cols),
               fmt::format("{:.6g}", statistics.smallest()), fmt::format("{:.6g}", statistics.largest()),
               fmt::format("{:.6g}", statistics.mean()), fmt::format("{:.6g}", statistics.rms()),
               statistics.not_finite() == 0 ? "" : std::to_string(statistics.not_finite()), first_values(step)});
  }
  std::vector<std::string> lines = table.lines();
  if (const ProbedStep* step = probes_->first_not_finite())
    lines.push_back(fmt::format("the first step with values that are not finite: {}{} in {}", step->step,
                                step->layer < 0 ? "" : fmt::format(" of layer {}", step->layer),
                                to_string(step->phase)));
  return lines;
}

Json ProbeSession::to_json() const {
  Json list = Json::array();
  if (!probes_) return list;
  for (const ProbedStep& step : probes_->steps())
    if (step.rows > 0) list.push_back(probed_json(step));
  return list;
}

void ProbeSession::save() const {
  if (!probes_ || out_.empty()) return;
  std::vector<NamedTensor> tensors;
  for (const ProbedStep& step : probes_->steps()) {
    if (step.rows == 0) continue;
    const std::string name =
        fmt::format("{}.{}{}", to_string(step.phase), step.step, step.layer < 0 ? "" : fmt::format(".{}", step.layer));
    tensors.push_back({name, {step.rows, step.cols}, step.values});
  }
  write_tensors(out_, tensors, {{"planDigest", engine_.model().compiled().plan_digest}});
}

}  // namespace candor::cli
