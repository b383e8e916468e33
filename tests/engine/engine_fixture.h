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

/// Logits of one input for 1, 2 and 4 threads, prefill at once, in chunks of 7 and token by token, and portable
/// kernels.
inline void expect_same_bits_however_run(const std::filesystem::path& model) {
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < 45; ++i) tokens.push_back((i * 37 + 11) % 300);
  const auto once = logits_with(model, tokens, 1, 256);
  for (const unsigned threads : {2u, 4u})
    expect_same_bits(once, logits_with(model, tokens, threads, 256), std::to_string(threads) + " threads");
  for (const std::uint32_t rows : {7u, 1u})
    expect_same_bits(once, logits_with(model, tokens, 2, rows), "chunks of " + std::to_string(rows));
  expect_same_bits(once, logits_with(model, tokens, 2, 16, "portable"), "portable kernels");
}

}  // namespace candor
