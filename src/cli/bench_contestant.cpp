#include "cli/bench_contestant.h"

#include <algorithm>
#include <chrono>

#include "cli/output.h"

namespace candor::cli {
namespace {

double bench_seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Spread::Spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  median = values[values.size() / 2];
  low = values.front();
  high = values.back();
}

std::string Spread::range() const {
  return fmt::format("{} to {}", short_number(low), short_number(high));
}

Json Spread::to_json() const {
  return {{"median", median}, {"low", low}, {"high", high}};
}

void BenchContestant::round() {
  if (work_.prompt > 0) {
    runtime::Session& session = engine_.session();
    runtime::Sequence sequence;
    const auto start = std::chrono::steady_clock::now();
    (void)session.prefill(sequence, some_tokens(work_.prompt));
    prompt_rates_.push_back(work_.prompt / bench_seconds_since(start));
    session.truncate(sequence, 0);
  }
  if (work_.generated > 0) decode();
}

void BenchContestant::decode() {
  runtime::Session& session = engine_.session();
  const std::uint32_t depth = std::max(work_.depth, 1u);
  std::vector<runtime::Sequence*> pointers;
  std::vector<std::uint32_t> tokens;
  for (runtime::Sequence& sequence : sequences_) {
    pointers.push_back(&sequence);
    tokens.push_back(some_tokens(depth + 1).back());
    if (sequence.tokens.empty()) session.compute(sequence, some_tokens(depth), Phase::prefill);
  }
  const auto start = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < work_.generated; ++i) tokens = session.decode(pointers, tokens);
  decode_rates_.push_back(static_cast<double>(work_.generated) * work_.sequences / bench_seconds_since(start));
  // What lies at the depth serves the next round, unless layout sliding has dropped it.
  const bool dropped = engine_.model().program().limits.layout == CacheLayout::sliding;
  for (runtime::Sequence& sequence : sequences_) session.truncate(sequence, dropped ? 0 : depth);
}

void BenchContestant::forget_rates() {
  prompt_rates_.clear();
  decode_rates_.clear();
}

/// Ids that look alike to every model: which tokens they are changes no cost.
std::vector<std::uint32_t> BenchContestant::some_tokens(std::uint32_t count) {
  const std::uint64_t vocabulary = engine_.model().compiled().vocabulary;
  std::vector<std::uint32_t> tokens(count);
  for (std::uint32_t i = 0; i < count; ++i) tokens[i] = static_cast<std::uint32_t>((i * 7919ull + 1) % vocabulary);
  return tokens;
}

std::uint64_t BenchContestant::bytes_per_step() {
  const std::uint32_t depth = work_.depth + work_.generated / 2;
  const std::uint64_t weights = engine_.session().bytes_per_token(0);
  return weights + (engine_.session().bytes_per_token(depth) - weights) * work_.sequences;
}

double BenchContestant::operations(Phase which, std::uint32_t rows) {
  const Program& program = engine_.model().program();
  const ProgramPhase& phase = program.phase(which);
  double operations = 0;
  for (const Instruction& instruction : phase.instructions) {
    if (instruction.operation.find("matmul") == std::string::npos) continue;
    double share = phase.values[instruction.result].rows == kernels::RowKind::tokens ? rows : 1;
    if (instruction.operation == "expert_matmul")
      share *=
          static_cast<double>(instruction.constants.integer(1)) / static_cast<double>(instruction.constants.integer(0));
    for (const std::uint32_t index : instruction.weights)
      operations += 2 * share * static_cast<double>(program.weights[index].rows * program.weights[index].cols);
  }
  return operations;
}

}  // namespace candor::cli
