// Each WGSL kernel on the device against double precision, with tails and shapes past every tile edge: sampling.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "webgpu/kernel_program.h"

namespace candor::webgpu::testing {
namespace {

std::vector<std::uint32_t> sampled(const Matrix& logits, const std::vector<SamplerParameters>& samplers,
                                   std::span<const std::uint32_t> history = {}, std::uint32_t position = 0) {
  KernelProgram program(logits.rows, {.context = 4096, .page_positions = 4096});
  const auto src = program.input(logits);
  const auto slice = program.step({.kernel = "webgpu/elements.wgsl",
                                   .entry = "row_slice",
                                   .operation = "row_slice",
                                   .operands = {src},
                                   .constants = {{0}},
                                   .cols = logits.cols,
                                   .rows = kernels::RowKind::sequences});
  const auto token = program.step({.kernel = "webgpu/sample.wgsl",
                                   .entry = "sample",
                                   .operation = "sample",
                                   .operands = {slice},
                                   .cols = 1,
                                   .encoding = Encoding::u32,
                                   .rows = kernels::RowKind::sequences});
  program.load();
  const std::uint32_t page = 0;
  std::vector<Segment> segments;
  for (std::uint32_t r = 0; r < logits.rows; ++r)
    segments.push_back({.first_row = r,
                        .rows = 1,
                        .first_position = position + r,
                        .kv_pages = &page,
                        .sampler = &samplers[r % samplers.size()],
                        .history = history});
  program.run(segments);
  return program.integers(token);
}

TEST(WebGpuKernels, GreedySamplingTakesTheLowestOfTheLargest) {
  SKIP_WITHOUT_DEVICE();
  std::mt19937_64 random(12);
  for (const std::uint32_t vocabulary : {1u, 255u, 257u, 5000u}) {
    Matrix logits = random_matrix(random, 3, vocabulary);
    logits.values[2 * vocabulary + vocabulary / 2] = 9;
    logits.values[3 * vocabulary - 1] = 9;
    const auto got = sampled(logits, {SamplerParameters{}});
    for (std::uint32_t r = 0; r < 3; ++r) {
      const auto* row = logits.values.data() + r * vocabulary;
      EXPECT_EQ(got[r], std::max_element(row, row + vocabulary) - row);
    }
  }
  Matrix bad = random_matrix(random, 2, 300);
  bad.values[7] = std::numeric_limits<float>::quiet_NaN();
  bad.values[300 + 8] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sampled(bad, {SamplerParameters{}}), (std::vector<std::uint32_t>{kNoToken, kNoToken}));
}

TEST(WebGpuKernels, PenaltyMovesTheChoice) {
  SKIP_WITHOUT_DEVICE();
  const Matrix logits{1, 4, {1.0f, 3.0f, 2.0f, -1.0f}};
  SamplerParameters sampler;
  sampler.repetition_penalty = 2;
  const std::vector<std::uint32_t> history{1};
  EXPECT_EQ(sampled(logits, {sampler}, history), std::vector<std::uint32_t>{2});
}

TEST(WebGpuKernels, SamplingFollowsTheDistributionAndItsCuts) {
  SKIP_WITHOUT_DEVICE();
  constexpr std::uint32_t kDraws = 2000;
  const std::vector<double> share{0.4, 0.3, 0.2, 0.06, 0.04};
  Matrix logits{kDraws, 5, {}};
  for (std::uint32_t r = 0; r < kDraws; ++r)
    for (const double p : share) logits.values.push_back(static_cast<float>(std::log(p)));
  const auto frequencies = [&](const SamplerParameters& sampler) {
    std::vector<double> counts(5);
    for (const std::uint32_t token : sampled(logits, {sampler})) counts.at(token) += 1.0 / kDraws;
    return counts;
  };
  const auto expect_near = [](const std::vector<double>& got, const std::vector<double>& wanted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], wanted[i] == 0 ? 0 : 0.045) << i;
  };
  SamplerParameters sampler;
  sampler.temperature = 1;
  sampler.seed = 7;
  expect_near(frequencies(sampler), share);
  sampler.top_k = 2;
  expect_near(frequencies(sampler), {0.4 / 0.7, 0.3 / 0.7, 0, 0, 0});
  sampler.top_k = 0;
  sampler.top_p = 0.85f;
  expect_near(frequencies(sampler), {0.4 / 0.9, 0.3 / 0.9, 0.2 / 0.9, 0, 0});
  sampler.top_p = 1;
  sampler.min_p = 0.6f;
  expect_near(frequencies(sampler), {0.4 / 0.7, 0.3 / 0.7, 0, 0, 0});
  EXPECT_EQ(sampled(logits, {sampler}), sampled(logits, {sampler}));
  SamplerParameters other = sampler;
  other.seed = 8;
  EXPECT_NE(sampled(logits, {sampler}), sampled(logits, {other}));
}

}  // namespace
}  // namespace candor::webgpu::testing
