// Rotary embeddings against double precision, up to large positions.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/kernel_call.h"

namespace candor::cpu::testing {
namespace {

struct RopeShape {
  std::uint32_t heads, head_dim, pairs;
};

class Rope : public ::testing::TestWithParam<bool> {};

TEST_P(Rope, EqualsTheOracle) {
  const bool interleaved = GetParam();
  std::mt19937_64 random(1);
  for (const auto& [heads, head_dim, pairs] : {RopeShape{1, 2, 1}, RopeShape{3, 64, 32}, RopeShape{2, 80, 20},
                                               RopeShape{1, 34, 17}, RopeShape{5, 128, 64}, RopeShape{2, 9, 4}}) {
    SCOPED_TRACE(::testing::Message() << heads << " heads of " << head_dim << ", " << pairs << " pairs");
    const std::vector<std::uint32_t> positions{0, 1, 2, 77, 4095, 131071, 16777215};
    const auto rows = static_cast<std::uint32_t>(positions.size());
    Slot x(rows, heads * head_dim);
    x.fill(random);
    std::vector<double> frequencies;
    for (std::uint32_t i = 0; i < pairs; ++i) frequencies.push_back(std::pow(10000.0, -double(i) / pairs));
    constexpr double kScale = 1.25;
    KernelCall call{.file = "cpu/rope.cpp"};
    call.inputs = {&x};
    call.constants = {{double(head_dim)}, {interleaved ? 1.0 : 0.0}, frequencies, {kScale}};
    call.batch.positions = positions;
    const Slot y = run_everywhere(call, rows, heads * head_dim);
    std::vector<double> wanted;
    for (std::uint32_t r = 0; r < rows; ++r) {
      std::vector<double> row(x.row(r).begin(), x.row(r).end());
      for (std::uint32_t head = 0; head < heads; ++head) {
        for (std::uint32_t i = 0; i < pairs; ++i) {
          // The angle is rounded to f32, as in the models' own code.
          const double angle = double{static_cast<float>(positions[r]) * static_cast<float>(frequencies[i])};
          double& x0 = row[head * head_dim + (interleaved ? 2 * i : i)];
          double& x1 = row[head * head_dim + (interleaved ? 2 * i + 1 : i + pairs)];
          const double a = x0, b = x1;
          x0 = kScale * (a * std::cos(angle) - b * std::sin(angle));
          x1 = kScale * (b * std::cos(angle) + a * std::sin(angle));
        }
      }
      wanted.insert(wanted.end(), row.begin(), row.end());
    }
    const ErrorStatistics e = errors(wanted, values(y));
    EXPECT_LT(e.max, 4e-7);
    EXPECT_LT(e.mean, 5e-8);
    const std::vector<float> separate = values(y);
    call.run(available_isas().front(), 2, x);  // in place
    EXPECT_EQ(values(x), separate);
  }
}

INSTANTIATE_TEST_SUITE_P(Styles, Rope, ::testing::Bool(),
                         [](const auto& tested) { return tested.param ? "interleaved" : "half"; });

}  // namespace
}  // namespace candor::cpu::testing
