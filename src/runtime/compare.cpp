#include "runtime/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "runtime/probe.h"

namespace candor::runtime {
namespace {

/// What a step is for: layer, op, and how many steps of that op the layer had before.
using StepKey = std::tuple<std::int32_t, std::string, std::uint32_t>;

std::vector<StepKey> step_keys(const ProgramPhase& phase) {
  std::map<std::pair<std::int32_t, std::string>, std::uint32_t> counts;
  std::vector<StepKey> keys;
  for (const Instruction& instruction : phase.instructions)
    keys.emplace_back(instruction.layer, instruction.op, counts[{instruction.layer, instruction.op}]++);
  return keys;
}

void add_difference(StepDifference& step, std::span<const float> a, std::span<const float> b, std::uint64_t first_row) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    ++step.values;
    if (std::isfinite(a[i])) step.scale = std::max(step.scale, std::abs(static_cast<double>(a[i])));
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    ++step.different;
    if (!step.first_row) step.first_row = first_row + i / step.cols;
    const double difference = std::isfinite(a[i]) && std::isfinite(b[i])
                                  ? std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]))
                                  : std::numeric_limits<double>::infinity();
    step.largest = std::max(step.largest, difference);
    step.squares += difference * difference;
  }
}

class Comparer {
 public:
  Comparer(LoadedModel& a, LoadedModel& b, Phase phase) : a_(a), b_(b), phase_(phase) { match(); }

  Comparison run(std::span<const std::uint32_t> tokens) {
    Session session_a(a_);
    Session session_b(b_);
    Sequence sequence_a;
    Sequence sequence_b;
    session_a.observe([this](Phase phase, std::size_t instruction) {
      if (pair_of_a_[instruction] >= 0)
        values_[static_cast<std::size_t>(pair_of_a_[instruction])] =
            read_result(a_.backend(), a_.program(), phase, instruction);
    });
    session_b.observe([this](Phase phase, std::size_t instruction) {
      if (pair_of_b_[instruction] >= 0)
        take(static_cast<std::size_t>(pair_of_b_[instruction]),
             read_result(b_.backend(), b_.program(), phase, instruction));
    });
    const std::size_t rows = phase_ == Phase::decode ? 1 : std::min(a_.program().limits.rows, b_.program().limits.rows);
    for (std::size_t done = 0; done < tokens.size(); done += rows) {
      const auto chunk = tokens.subspan(done, std::min(rows, tokens.size() - done));
      session_a.compute(sequence_a, chunk, phase_);
      session_b.compute(sequence_b, chunk, phase_);
      first_row_ += chunk.size();
    }
    return std::move(result_);
  }

 private:
  void match() {
    const ProgramPhase& in_a = a_.program().phase(phase_);
    const ProgramPhase& in_b = b_.program().phase(phase_);
    const std::vector<StepKey> keys_a = step_keys(in_a);
    const std::vector<StepKey> keys_b = step_keys(in_b);
    std::map<StepKey, std::size_t> place_in_b;
    for (std::size_t i = 0; i < keys_b.size(); ++i) place_in_b.emplace(keys_b[i], i);
    pair_of_a_.assign(keys_a.size(), -1);
    pair_of_b_.assign(keys_b.size(), -1);
    for (std::size_t i = 0; i < keys_a.size(); ++i) {
      const Instruction& step = in_a.instructions[i];
      const auto found = place_in_b.find(keys_a[i]);
      if (found == place_in_b.end()) {
        result_.unmatched.push_back({true, step.step, step.layer, "only in A"});
        continue;
      }
      const Instruction& other = in_b.instructions[found->second];
      const ProgramValue& value = in_a.values[step.result];
      const ProgramValue& value_of_b = in_b.values[other.result];
      place_in_b.erase(found);
      if (value.cols != value_of_b.cols || value.rows != value_of_b.rows) {
        result_.unmatched.push_back(
            {true, step.step, step.layer, fmt::format("{} columns in A, {} in B", value.cols, value_of_b.cols)});
        continue;
      }
      pair(i, static_cast<std::size_t>(&other - in_b.instructions.data()));
    }
    for (const auto& [key, index] : place_in_b)
      result_.unmatched.push_back({false, in_b.instructions[index].step, in_b.instructions[index].layer, "only in B"});
    values_.resize(result_.steps.size());
  }

  void pair(std::size_t in_a, std::size_t in_b) {
    const ProgramPhase& phase = a_.program().phase(phase_);
    const Instruction& step = phase.instructions[in_a];
    const ProgramValue& value = phase.values[step.result];
    pair_of_a_[in_a] = pair_of_b_[in_b] = static_cast<std::int32_t>(result_.steps.size());
    StepDifference& entry = result_.steps.emplace_back();
    entry.step_a = step.step;
    entry.step_b = b_.program().phase(phase_).instructions[in_b].step;
    entry.op = step.op;
    entry.slot = value.slot;
    entry.layer = step.layer;
    entry.cols = value.cols;
  }

  /// B's values of a pair, when A's are there.
  void take(std::size_t index, const std::vector<float>& values) {
    StepDifference& step = result_.steps[index];
    if (values.size() != values_[index].size())
      fail(ErrorCode::plan, "step \"{}\" gives {} values in A and {} in B; both plans must compute all rows",
           step.step_a, values_[index].size(), values.size());
    add_difference(step, values_[index], values, first_row_);
    values_[index] = {};
  }

  LoadedModel& a_;
  LoadedModel& b_;
  Phase phase_;
  Comparison result_;
  std::vector<std::int32_t> pair_of_a_, pair_of_b_;  // by instruction: into result_.steps, or -1
  std::vector<std::vector<float>> values_;           // A's, by pair, of the batch being computed
  std::uint64_t first_row_ = 0;
};

}  // namespace

double StepDifference::relative() const {
  if (largest == 0) return 0;
  return scale == 0 ? std::numeric_limits<double>::infinity() : largest / scale;
}

double StepDifference::rms() const {
  return values == 0 ? 0 : std::sqrt(squares / static_cast<double>(values));
}

const StepDifference* Comparison::first_above(double bound) const {
  const auto found =
      std::find_if(steps.begin(), steps.end(), [&](const StepDifference& step) { return step.relative() > bound; });
  return found == steps.end() ? nullptr : &*found;
}

Comparison compare(LoadedModel& a, LoadedModel& b, std::span<const std::uint32_t> tokens, Phase phase) {
  if (tokens.empty()) fail(ErrorCode::usage, "there are no tokens to compare the models on");
  for (const LoadedModel* model : {&a, &b}) {
    if (tokens.size() > model->context())
      fail(ErrorCode::resource, "{}: {} tokens do not fit the context of {}; compare on fewer, or raise --context",
           model->compiled().source.path().string(), tokens.size(), model->context());
    if (model->program().phase(phase).instructions.empty())
      fail(ErrorCode::plan, "{}: the plan has no {} steps", model->compiled().source.path().string(), to_string(phase));
  }
  return Comparer(a, b, phase).run(tokens);
}

}  // namespace candor::runtime
