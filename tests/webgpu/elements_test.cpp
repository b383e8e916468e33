// Each WGSL kernel on the device against double precision, with tails and shapes past every tile edge: elements, rows
// and columns.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "webgpu/kernel_program.h"

namespace candor::webgpu::testing {
namespace {

double activated(std::uint32_t kind, double x) {
  switch (kind) {
    case 0:
      return x / (1 + std::exp(-x));
    case 1:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case 2:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    default:
      return std::max(x, 0.0);
  }
}

TEST(WebGpuKernels, Elements) {
  SKIP_WITHOUT_DEVICE();
  std::mt19937_64 random(7);
  for (const std::uint32_t cols : {1u, 15u, 256u, 300u}) {
    SCOPED_TRACE(cols);
    Matrix x = random_matrix(random, 2, cols, 3);
    x.values[0] = 60;  // where hardware's tanh may overflow
    x.values[cols] = -100;
    const Matrix y = random_matrix(random, 2, cols);
    const StoredMatrix bias = stored(random_matrix(random, 1, cols), Encoding::f16);
    KernelProgram program(2);
    const auto a = program.input(x);
    const auto b = program.input(y);
    struct Case {
      std::uint32_t value;
      std::function<double(double, double, std::uint32_t)> oracle;
    };
    std::vector<Case> cases;
    const auto add = [&](KernelProgram::Step step, std::function<double(double, double, std::uint32_t)> oracle) {
      step.kernel = "webgpu/elements.wgsl";
      step.cols = cols;
      cases.push_back({program.step(step), std::move(oracle)});
    };
    add({.entry = "residual_add", .operation = "residual_add", .operands = {a, b}},
        [](double p, double q, std::uint32_t) { return p + q; });
    add({.entry = "multiply", .operation = "multiply", .operands = {a, b}},
        [](double p, double q, std::uint32_t) { return p * q; });
    add({.entry = "scaled", .operation = "scale", .operands = {a}, .constants = {{0.3}}},
        [](double p, double, std::uint32_t) { return p * double{0.3f}; });
    add({.entry = "softcap", .operation = "softcap", .operands = {a}, .constants = {{1.5}}},
        [](double p, double, std::uint32_t) { return 1.5 * std::tanh(p / 1.5); });
    add({.entry = "bias_add", .operation = "bias_add", .operands = {a}, .weights = {bias}},
        [&](double p, double, std::uint32_t c) { return p + double{bias.values[c]}; });
    for (std::uint32_t kind = 0; kind < 4; ++kind)
      add({.entry = "activate", .operation = "activation", .operands = {a}, .constants = {{double(kind)}}},
          [kind](double p, double, std::uint32_t) { return activated(kind, p); });
    for (std::uint32_t kind = 0; kind < 3; ++kind)
      add({.entry = "gated_activation",
           .operation = "gated_activation",
           .operands = {a, b},
           .constants = {{double(kind)}}},
          [kind](double p, double q, std::uint32_t) { return activated(kind, p) * q; });
    program.load();
    program.run();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      std::vector<double> wanted;
      for (std::uint32_t r = 0; r < 2; ++r)
        for (std::uint32_t c = 0; c < cols; ++c)
          wanted.push_back(cases[i].oracle(double{x.at(r, c)}, double{y.at(r, c)}, c));
      EXPECT_LT(errors(wanted, program.floats(cases[i].value)).max, 3e-6) << "case " << i;
    }
  }
}

TEST(WebGpuKernels, RowsAndColumnsAreSelected) {
  SKIP_WITHOUT_DEVICE();
  std::mt19937_64 random(8);
  const Matrix x = random_matrix(random, 7, 300);
  KernelProgram program(7);
  const auto src = program.input(x);
  const auto last = program.step({.kernel = "webgpu/elements.wgsl",
                                  .entry = "row_slice",
                                  .operation = "row_slice",
                                  .operands = {src},
                                  .constants = {{0}},
                                  .cols = 300,
                                  .rows = kernels::RowKind::sequences});
  const auto all = program.step({.kernel = "webgpu/elements.wgsl",
                                 .entry = "row_slice",
                                 .operation = "row_slice",
                                 .operands = {src},
                                 .constants = {{1}},
                                 .cols = 300});
  const auto part = program.step({.kernel = "webgpu/elements.wgsl",
                                  .entry = "slice_columns",
                                  .operation = "slice_columns",
                                  .operands = {src},
                                  .constants = {{17}, {270}},
                                  .cols = 270});
  std::vector<std::uint32_t> pooled;
  for (const double kind : {0.0, 1.0, 2.0})
    pooled.push_back(program.step({.kernel = "webgpu/rows.wgsl",
                                   .entry = "pool",
                                   .operation = "pool",
                                   .operands = {src},
                                   .constants = {{kind}},
                                   .cols = 300,
                                   .rows = kernels::RowKind::sequences}));
  program.load();
  const std::uint32_t page = 0;
  program.run({{.first_row = 0, .rows = 3, .kv_pages = &page}, {.first_row = 3, .rows = 4, .kv_pages = &page}});
  EXPECT_EQ(program.floats(all), x.values);
  const std::vector<float> ends = program.floats(last), columns = program.floats(part);
  ASSERT_EQ(ends.size(), 600u);
  for (std::uint32_t c = 0; c < 300; ++c) {
    EXPECT_EQ(ends[c], x.at(2, c));
    EXPECT_EQ(ends[300 + c], x.at(6, c));
    const double mean = (double{x.at(3, c)} + double{x.at(4, c)} + double{x.at(5, c)} + double{x.at(6, c)}) / 4;
    EXPECT_NEAR(program.floats(pooled[0])[300 + c], mean, 1e-6);
    if (c > 3) continue;
    EXPECT_EQ(program.floats(pooled[1])[c], x.at(2, c));
    EXPECT_EQ(program.floats(pooled[2])[300 + c], x.at(3, c));
  }
  for (std::uint32_t r = 0; r < 7; ++r)
    for (std::uint32_t c = 0; c < 270; ++c) ASSERT_EQ(columns[r * 270 + c], x.at(r, 17 + c));
}

TEST(WebGpuKernels, EachStepIsTimedWhereTheDeviceHasAClock) {
  SKIP_WITHOUT_DEVICE();
  if (!device()->has_feature("timestamp-query")) GTEST_SKIP() << "this adapter has no timestamp-query";
  std::mt19937_64 random(3);
  KernelProgram program(2);
  const auto src = program.input(random_matrix(random, 2, 4096));
  program.step({.kernel = "webgpu/elements.wgsl",
                .entry = "scaled",
                .operation = "scale",
                .operands = {src},
                .constants = {{2}},
                .cols = 4096});
  program.load();
  const std::vector<std::uint32_t> tokens{0, 1}, positions{0, 1};
  const std::uint32_t page = 0;
  const Segment segment{.rows = 2, .kv_pages = &page};
  const auto seconds = device()->step_seconds(Phase::prefill, {tokens, positions, {&segment, 1}});
  ASSERT_TRUE(seconds.has_value());
  ASSERT_EQ(seconds->size(), 2u);
  for (const double each : *seconds) {
    EXPECT_GE(each, 0);
    EXPECT_LT(each, 10);
  }
  EXPECT_GT((*seconds)[0] + (*seconds)[1], 0);
}

}  // namespace
}  // namespace candor::webgpu::testing
