// One model that `candor bench` measures: its rates round by round, and what a token costs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace candor::cli {

/// What a round computes.
struct BenchWork {
  std::uint32_t prompt = 256;
  std::uint32_t generated = 128;
  std::uint32_t depth = 0;
  std::uint32_t sequences = 1;
};

/// The middle of several measurements, and the lowest and highest.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;

  explicit Spread(std::vector<double> values);
  [[nodiscard]] std::string range() const;
  [[nodiscard]] Json to_json() const;
};

class BenchContestant {
 public:
  /// `options` must have room for one sequence more than `work`: the prompt's.
  BenchContestant(std::string model, const EngineOptions& options, const BenchWork& work)
      : name_(std::move(model)), work_(work), engine_(name_, options), sequences_(work.sequences) {}

  /// A prompt and decoding, as far as they are wanted; adds to the rates.
  void round();
  void forget_rates();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Engine& engine() { return engine_; }
  /// Tokens a second of each round; of decoding, of all sequences together.
  [[nodiscard]] const std::vector<double>& prompt_rates() const { return prompt_rates_; }
  [[nodiscard]] const std::vector<double>& decode_rates() const { return decode_rates_; }

  /// Weights and cache that a step of decoding reads, in the middle of the run. Several sequences share the weights.
  [[nodiscard]] std::uint64_t bytes_per_step();
  /// Multiplications and additions in the matrix products of the prompt, and of one token of decoding.
  [[nodiscard]] double prompt_operations() { return operations(Phase::prefill, work_.prompt); }
  [[nodiscard]] double decode_operations() { return operations(Phase::decode, 1); }

 private:
  [[nodiscard]] std::vector<std::uint32_t> some_tokens(std::uint32_t count);
  [[nodiscard]] double operations(Phase phase, std::uint32_t rows);
  void decode();

  std::string name_;
  BenchWork work_;
  Engine engine_;
  std::vector<runtime::Sequence> sequences_;  // of decoding, kept at the depth from round to round
  std::vector<double> prompt_rates_, decode_rates_;
};

}  // namespace candor::cli
