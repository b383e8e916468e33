// Probes: what chosen steps wrote, read right after each ran, as float32 with statistics. Goals: any slot of any step
// can be looked at without changing the plan or a bit of the result. Not a goal: printing, files. Rejected: a step of
// the plan that saves a slot, because the plan that is looked at would then be another one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"

namespace candor::runtime {

/// A result's rows as float32, [rows, cols], of whatever encoding; token ids too. Only right after the instruction ran.
[[nodiscard]] std::vector<float> read_result(const Backend& backend, const Program& program, Phase phase,
                                             std::size_t instruction);

/// Of the values added so far, those that are finite.
class ValueStatistics {
 public:
  void add(std::span<const float> values);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t not_finite() const { return not_finite_; }
  [[nodiscard]] float smallest() const { return smallest_; }  ///< 0 if no value is finite
  [[nodiscard]] float largest() const { return largest_; }
  [[nodiscard]] double mean() const;
  [[nodiscard]] double rms() const;  ///< root of the mean square

 private:
  std::uint64_t count_ = 0;
  std::uint64_t not_finite_ = 0;
  float smallest_ = 0, largest_ = 0;
  double sum_ = 0, squares_ = 0;
};

/// The most that probes keep: 128 rows of every slot of a model of 8 billion parameters are about this much.
inline constexpr std::uint64_t kProbeBytes = 4ull << 30;

/// What one step wrote in one layer in one phase, over all runs.
struct ProbedStep {
  Phase phase = Phase::prefill;
  std::string step, op, slot;
  std::int32_t layer = -1;  ///< -1 outside the layers
  Encoding encoding = Encoding::f32;
  std::uint32_t cols = 0;
  std::uint64_t rows = 0;
  ValueStatistics statistics;
  std::vector<float> head;    ///< the first values of the last row
  std::vector<float> values;  ///< [rows, cols], rows in the order computed; empty unless kept
};

class Probes {
 public:
  /// Each probe is STEP, SLOT, STEP:LAYER, SLOT:LAYER, or "all"; see choose(). `keep`: keep all values, at most
  /// kProbeBytes. Throws Error(usage) for a layer in which no such step runs, Error(not_found), with names that
  /// come close, for a name nothing has.
  Probes(const Program& program, std::span<const std::string> probes, bool keep);

  /// Reads the result if a probe chose this instruction. For Session::observe. Throws Error(resource) where the values
  /// kept become too many.
  void read(const Backend& backend, Phase phase, std::size_t instruction);

  /// In the order of the Program: prefill's, then decode's. Steps that have not run have no rows.
  [[nodiscard]] const std::vector<ProbedStep>& steps() const { return steps_; }
  /// The first step of all chosen that wrote a value that is not finite; null if none did.
  [[nodiscard]] const ProbedStep* first_not_finite() const;

 private:
  void choose(std::string_view probe, std::array<std::vector<bool>, 2>& chosen) const;

  const Program& program_;
  bool keep_;
  std::uint64_t kept_bytes_ = 0;
  std::array<std::vector<std::int32_t>, 2> index_;  // by phase and instruction: into steps_, or -1
  std::vector<ProbedStep> steps_;
};

}  // namespace candor::runtime
