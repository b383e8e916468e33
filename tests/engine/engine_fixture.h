// What the tests of whole models share: where reference data lie, options, and the check that results are the same bits
// however they are computed.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "kernels/cpu/kernel.h"
#include "runtime/probe.h"

namespace candor {

inline const std::filesystem::path kShared = CANDOR_SHARED_DIR;
inline const std::filesystem::path kSource = CANDOR_SOURCE_DIR;

#define SKIP_WITHOUT(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no reference data at " << (path)

inline EngineOptions options(runtime::RowSelection rows = runtime::RowSelection::last, unsigned threads = 2,
                             std::uint32_t prefill_rows = runtime::kDefaultPrefillRows) {
  EngineOptions out;
  out.plan.rows = rows;
  out.load.threads = threads;
  out.load.prefill_rows = prefill_rows;
  return out;
}

inline std::vector<float> logits_with(const std::filesystem::path& model, std::span<const std::uint32_t> tokens,
                                      unsigned threads, std::uint32_t prefill_rows, std::string isa = {}) {
  EngineOptions setup = options(runtime::RowSelection::all, threads, prefill_rows);
  setup.load.isa = std::move(isa);
  return Engine(model, setup).logits(tokens);
}

inline void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << what;
}

inline std::vector<std::uint32_t> varied_tokens(std::uint32_t count, std::uint32_t salt = 0) {
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < count; ++i) tokens.push_back((i * 37 + 11 + salt * 53 + i * i * salt) % 300);
  return tokens;
}

/// Logits of one input for 1, 2 and 3 threads, prefill at once, in chunks of 7 and token by token, and each instruction
/// set that this processor has.
inline void expect_same_bits_however_run(const std::filesystem::path& model) {
  const std::vector<std::uint32_t> tokens = varied_tokens(45);
  const auto once = logits_with(model, tokens, 1, 256);
  for (const unsigned threads : {2u, 3u})
    expect_same_bits(once, logits_with(model, tokens, threads, 256), std::to_string(threads) + " threads");
  for (const std::uint32_t rows : {7u, 1u})
    expect_same_bits(once, logits_with(model, tokens, 2, rows), "chunks of " + std::to_string(rows));
  for (const cpu::Isa isa : cpu::available_isas())
    expect_same_bits(once, logits_with(model, tokens, 2, 16, std::string(to_string(isa))),
                     std::string(to_string(isa)) + " kernels");
}

/// The logits that an engine's runs compute: every row of the last run.
class LogitsOfRuns {
 public:
  explicit LogitsOfRuns(Engine& engine) : engine_(engine) {
    engine_.session().observe([this](Phase phase, std::size_t i) {
      const Program& program = engine_.model().program();
      const std::string& op = program.phase(phase).instructions[i].op;
      if (op == "lm_head" || op == "logit_softcap")
        values_ = runtime::read_result(engine_.model().backend(), program, phase, i);
    });
  }
  ~LogitsOfRuns() { engine_.session().observe({}); }
  LogitsOfRuns(const LogitsOfRuns&) = delete;
  LogitsOfRuns& operator=(const LogitsOfRuns&) = delete;

  [[nodiscard]] std::vector<float> row(std::size_t index) const {
    const auto width = static_cast<std::ptrdiff_t>(engine_.model().compiled().vocabulary);
    const auto first = values_.begin() + static_cast<std::ptrdiff_t>(index) * width;
    return {first, first + width};
  }

 private:
  Engine& engine_;
  std::vector<float> values_;
};

/// A batch of five sequences of different lengths, a fork, and a sequence whose beginning is known, each against the
/// same tokens computed alone and at once.
inline void expect_same_bits_in_company(const std::filesystem::path& model) {
  EngineOptions setup = options(runtime::RowSelection::last, 3, 16);
  setup.plan.session = {{"kvcache", {{"layout", "paged"}, {"pageSize", 16}}}};
  setup.load.context = 64;
  setup.load.sequences = 5;
  setup.load.prefix_positions = 64;
  Engine together(model, setup);
  Engine alone(model, options(runtime::RowSelection::all, 1));
  runtime::Session& session = together.session();
  LogitsOfRuns logits(together);
  const auto last_alone = [&](const std::vector<std::uint32_t>& tokens) {
    const std::vector<float> all = alone.logits(tokens);
    return std::vector<float>(all.end() - static_cast<std::ptrdiff_t>(alone.model().compiled().vocabulary), all.end());
  };

  std::vector<runtime::Sequence> sequences(5);
  std::vector<runtime::Sequence*> batch;
  for (std::uint32_t i = 0; i < 5; ++i) {
    session.compute(sequences[i], varied_tokens(1 + i * 10, i), Phase::prefill);
    batch.push_back(&sequences[i]);
  }
  for (std::uint32_t step = 0; step < 3; ++step) {
    const std::vector<std::uint32_t> tokens = varied_tokens(5, 7 + step);
    (void)session.decode(batch, tokens);
    for (std::uint32_t i = 0; i < 5; ++i)
      expect_same_bits(logits.row(i), last_alone(sequences[i].tokens), "sequence " + std::to_string(i) + " of a batch");
  }

  session.truncate(sequences[0], 0);
  sequences[0] = session.fork(sequences[3], 19);
  session.compute(sequences[0], varied_tokens(6, 12), Phase::prefill);
  expect_same_bits(logits.row(0), last_alone(sequences[0].tokens), "a fork");
  for (runtime::Sequence& sequence : sequences) session.truncate(sequence, 0);

  const std::vector<std::uint32_t> text = varied_tokens(50, 3);
  for (const std::uint32_t wanted : {0u, 48u}) {
    runtime::Sequence sequence;
    const std::uint32_t known = session.begin(sequence, text);
    EXPECT_EQ(known, wanted);
    session.compute(sequence, std::span(text).subspan(known), Phase::prefill);
    expect_same_bits(logits.row(0), last_alone(text), "after " + std::to_string(known) + " known tokens");
    session.remember(sequence);
    session.truncate(sequence, 0);
  }
}

}  // namespace candor
