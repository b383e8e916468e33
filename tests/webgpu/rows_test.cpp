// Each WGSL kernel on the device against double precision, with tails and shapes past every tile edge: norms and
// softmax.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "webgpu/kernel_program.h"

namespace candor::webgpu::testing {
namespace {

TEST(WebGpuKernels, Norms) {
  SKIP_WITHOUT_DEVICE();
  std::mt19937_64 random(6);
  for (const Encoding encoding : kPlain)
    for (const auto& [cols, width] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
             {1, 1}, {5, 5}, {64, 64}, {257, 257}, {128, 32}, {1000, 1000}}) {
      SCOPED_TRACE(fmt::format("cols {} width {} {}", cols, width, to_string(encoding)));
      const Matrix x = random_matrix(random, 3, cols, 2);
      const StoredMatrix w = stored(random_matrix(random, 1, width), encoding);
      const StoredMatrix full = stored(random_matrix(random, 1, cols), encoding);
      const StoredMatrix bias = stored(random_matrix(random, 1, cols), Encoding::f32);
      KernelProgram program(3);
      const auto src = program.input(x);
      const auto rms = program.step({.kernel = "webgpu/rows.wgsl",
                                     .entry = "rmsnorm",
                                     .operation = "rmsnorm",
                                     .operands = {src},
                                     .weights = {w},
                                     .constants = {{1e-5}, {double(width)}, {1.0}},
                                     .cols = cols});
      const auto layer = program.step({.kernel = "webgpu/rows.wgsl",
                                       .entry = "layernorm",
                                       .operation = "layernorm",
                                       .operands = {src},
                                       .weights = {full, bias},
                                       .constants = {{1e-5}},
                                       .cols = cols});
      const auto unit = program.step({.kernel = "webgpu/rows.wgsl",
                                      .entry = "l2_normalize",
                                      .operation = "l2_normalize",
                                      .operands = {src},
                                      .constants = {{1e-12}},
                                      .cols = cols});
      const auto soft = program.step(
          {.kernel = "webgpu/rows.wgsl", .entry = "softmax", .operation = "softmax", .operands = {src}, .cols = cols});
      program.load();
      program.run();
      std::vector<double> wanted_rms, wanted_layer, wanted_unit, wanted_soft;
      for (std::uint32_t r = 0; r < 3; ++r) {
        double mean = 0, variance = 0, length = 0, total = 0;
        for (std::uint32_t c = 0; c < cols; ++c) {
          mean += double{x.at(r, c)} / cols;
          length += double{x.at(r, c)} * double{x.at(r, c)};
          total += std::exp(double{x.at(r, c)});
        }
        for (std::uint32_t c = 0; c < cols; ++c) variance += std::pow(double{x.at(r, c)} - mean, 2) / cols;
        for (std::uint32_t c = 0; c < cols; ++c) {
          double squares = 0;
          for (std::uint32_t i = 0; i < width; ++i) squares += std::pow(double{x.at(r, c / width * width + i)}, 2);
          wanted_rms.push_back(double{x.at(r, c)} / std::sqrt(squares / width + 1e-5) *
                               (double{w.values[c % width]} + 1));
          wanted_layer.push_back((double{x.at(r, c)} - mean) / std::sqrt(variance + 1e-5) * double{full.values[c]} +
                                 double{bias.values[c]});
          wanted_unit.push_back(double{x.at(r, c)} / std::sqrt(length));
          wanted_soft.push_back(std::exp(double{x.at(r, c)}) / total);
        }
      }
      EXPECT_LT(errors(wanted_rms, program.floats(rms)).max, 4e-6);
      EXPECT_LT(errors(wanted_layer, program.floats(layer)).max, 4e-6);
      EXPECT_LT(errors(wanted_unit, program.floats(unit)).max, 4e-6);
      EXPECT_LT(errors(wanted_soft, program.floats(soft)).max, 1e-5);
    }
}

}  // namespace
}  // namespace candor::webgpu::testing
