// Each WGSL kernel on the device against double precision, with tails and shapes past every tile edge: short
// convolutions and mixtures of experts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "webgpu/kernel_program.h"

namespace candor::webgpu::testing {
namespace {

TEST(WebGpuKernels, ShortConvolutionInChunks) {
  SKIP_WITHOUT_DEVICE();
  std::mt19937_64 random(10);
  const std::uint32_t channels = 70, taps = 3, length = 20;
  const Matrix x = random_matrix(random, length, channels);
  for (const Encoding encoding : kPlain)
    for (const std::uint32_t chunk : {20u, 1u, 7u}) {
      SCOPED_TRACE(fmt::format("{} chunks of {}", to_string(encoding), chunk));
      const StoredMatrix w = stored(random_matrix(random, channels, taps), encoding);
      KernelProgram program(chunk, {.rows = chunk, .context = 64, .page_positions = 16, .pages = 4});
      KernelProgram::Step step{.kernel = "webgpu/short_conv.wgsl",
                               .entry = "short_conv",
                               .operation = "short_conv",
                               .operands = {program.input(x)},
                               .weights = {w},
                               .constants = {{double(channels)}, {double(taps)}},
                               .cols = channels};
      step.kv = program.cache(1, channels, Encoding::f32, step);
      const auto dst = program.step(step);
      program.load();
      const std::vector<std::uint32_t> pages{2, 0, 1, 3};
      std::vector<float> got;
      for (std::uint32_t first = 0; first < length; first += chunk) {
        program.run({{.rows = std::min(chunk, length - first), .first_position = first, .kv_pages = pages.data()}},
                    first);
        const auto part = program.floats(dst);
        got.insert(got.end(), part.begin(), part.end());
      }
      std::vector<double> wanted;
      for (std::uint32_t p = 0; p < length; ++p)
        for (std::uint32_t c = 0; c < channels; ++c) {
          double sum = 0;
          for (std::uint32_t t = 0; t < taps; ++t)
            if (p + t + 1 >= taps) sum += double{w.values[c * taps + t]} * double{x.at(p + t + 1 - taps, c)};
          wanted.push_back(sum);
        }
      EXPECT_LT(errors(wanted, got).max, 2e-6);
    }
}

TEST(WebGpuKernels, ExpertsAreChosenMultipliedAndCombined) {
  SKIP_WITHOUT_DEVICE();
  std::mt19937_64 random(11);
  for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::q8_0}) {
    SCOPED_TRACE(to_string(encoding));
    const std::uint32_t rows = 5, k = 96, n = 35, experts = 6, chosen = 2;
    const Matrix x = random_matrix(random, rows, k), logits = random_matrix(random, rows, experts);
    KernelProgram program(rows);
    const auto src = program.input(x);
    const auto scores = program.input(logits);
    const auto top = program.step({.kernel = "webgpu/routing.wgsl",
                                   .entry = "top_k",
                                   .operation = "top_k",
                                   .operands = {scores},
                                   .constants = {{double(chosen)}},
                                   .cols = chosen,
                                   .encoding = Encoding::u32});
    const auto shares = program.step({.kernel = "webgpu/routing.wgsl",
                                      .entry = "routing_weights",
                                      .operation = "routing_weights",
                                      .operands = {scores, top},
                                      .constants = {{1}, {0.5}},
                                      .cols = chosen});
    KernelProgram::Step multiply{.kernel = "webgpu/weights.wgsl",
                                 .entry = "expert_gemv",
                                 .operation = "expert_matmul",
                                 .operands = {src, top},
                                 .constants = {{double(experts)}, {double(chosen)}, {1}},
                                 .cols = chosen * n};
    for (std::uint32_t e = 0; e < experts; ++e)
      multiply.weights.push_back(stored(random_matrix(random, n, k, 0.1f), encoding));
    const auto each = program.step(multiply);
    const auto sum = program.step({.kernel = "webgpu/routing.wgsl",
                                   .entry = "combine_experts",
                                   .operation = "combine_experts",
                                   .operands = {each, shares},
                                   .cols = n});
    program.load();
    program.run();
    const auto got_top = program.integers(top);
    std::vector<double> wanted;
    for (std::uint32_t r = 0; r < rows; ++r) {
      std::vector<std::uint32_t> order(experts);
      std::iota(order.begin(), order.end(), 0u);
      std::sort(order.begin(), order.end(), [&](auto a, auto b) { return logits.at(r, a) > logits.at(r, b); });
      ASSERT_EQ(got_top[r * chosen], order[0]);
      ASSERT_EQ(got_top[r * chosen + 1], order[1]);
      const double total = double{logits.at(r, order[0])} + double{logits.at(r, order[1])};
      for (std::uint32_t c = 0; c < n; ++c) {
        double value = 0;
        for (std::uint32_t i = 0; i < chosen; ++i) {
          double dot = 0;
          for (std::uint32_t j = 0; j < k; ++j)
            dot += double{x.at(r, j)} * double{multiply.weights[order[i]].values[c * k + j]};
          value += dot * double{logits.at(r, order[i])} / total * 0.5;
        }
        wanted.push_back(value);
      }
    }
    EXPECT_LT(errors(wanted, program.floats(sum)).max, 2e-5);
  }
}

}  // namespace
}  // namespace candor::webgpu::testing
