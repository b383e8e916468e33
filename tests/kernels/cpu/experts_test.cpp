// What a mixture of experts is made of: softmax, the choice of experts, their weights, their products and the sum, each
// against double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/cpu/quantized_weight.h"

namespace candor::cpu::testing {
namespace {

Slot index_rows(std::uint32_t cols, const std::vector<std::uint32_t>& indices) {
  Slot slot(static_cast<std::uint32_t>(indices.size()) / cols, cols, Encoding::u32);
  for (std::uint32_t i = 0; i < indices.size(); ++i) slot.row<std::uint32_t>(i / cols)[i % cols] = indices[i];
  return slot;
}

TEST(Softmax, EqualsTheOracle) {
  std::mt19937_64 random(1);
  for (const std::uint32_t width : {1u, 2u, 8u, 15u, 16u, 17u, 64u, 65u, 128u, 300u}) {
    SCOPED_TRACE(width);
    Slot x(3, width);
    x.fill(random, 4);
    for (float& value : x.row(1)) value += 1000;
    KernelCall call{.file = "cpu/softmax.cpp"};
    call.inputs = {&x};
    const Slot y = run_everywhere(call, 3, width);
    std::vector<double> wanted;
    for (std::uint32_t r = 0; r < 3; ++r) {
      const double largest = *std::max_element(x.row(r).begin(), x.row(r).end());
      double sum = 0;
      for (const float value : x.row(r)) sum += std::exp(double{value} - largest);
      for (const float value : x.row(r)) wanted.push_back(std::exp(double{value} - largest) / sum);
    }
    const ErrorStatistics e = errors(wanted, values(y));
    EXPECT_LT(e.max, 4e-6);
    EXPECT_LT(e.mean, 2e-7);
  }
}

TEST(TopK, FallingOrderTiesToTheLowerColumnNansLast) {
  const std::vector<std::vector<float>> rows{
      {1, 5, 3, 5, 2}, {-1, -2, -3, -4, -5}, {NAN, 1, NAN, 2, 3}, {0, 0, 0, 0, 0}};
  Slot x(4, 5);
  for (std::uint32_t r = 0; r < 4; ++r) std::copy(rows[r].begin(), rows[r].end(), x.row(r).begin());
  KernelCall call{.file = "cpu/top_k.cpp"};
  call.inputs = {&x};
  call.constants = {{3}};
  const Slot y = run_everywhere(call, 4, 3, Encoding::u32);
  const auto chosen = [&](std::uint32_t r) {
    return std::vector<std::uint32_t>(y.row<std::uint32_t>(r).begin(), y.row<std::uint32_t>(r).end());
  };
  EXPECT_EQ(chosen(0), (std::vector<std::uint32_t>{1, 3, 2}));
  EXPECT_EQ(chosen(1), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(chosen(3), (std::vector<std::uint32_t>{0, 1, 2}));
  for (const std::uint32_t column : chosen(2)) EXPECT_LT(column, 5u);
}

TEST(TopK, EqualsSortingForManyColumns) {
  std::mt19937_64 random(2);
  for (const std::uint32_t width : {8u, 33u, 128u}) {
    Slot x(40, width);
    x.fill(random);
    KernelCall call{.file = "cpu/top_k.cpp"};
    call.inputs = {&x};
    call.constants = {{8}};
    const Slot y = run_everywhere(call, 40, 8, Encoding::u32);
    for (std::uint32_t r = 0; r < 40; ++r) {
      std::vector<std::uint32_t> order(width);
      std::iota(order.begin(), order.end(), 0u);
      std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return x.row(r)[a] > x.row(r)[b]; });
      for (std::uint32_t j = 0; j < 8; ++j) ASSERT_EQ(y.row<std::uint32_t>(r)[j], order[j]);
    }
  }
}

TEST(RoutingWeights, ChosenProbabilitiesNormalisedOrNot) {
  Slot x(2, 4);
  for (std::uint32_t r = 0; r < 2; ++r)
    for (std::uint32_t i = 0; i < 4; ++i) x.row(r)[i] = 0.1F * static_cast<float>(1 + i + r);
  const Slot experts = index_rows(2, {3, 0, 1, 9});
  for (const bool normalize : {false, true}) {
    KernelCall call{.file = "cpu/routing_weights.cpp"};
    call.inputs = {&x, &experts};
    call.constants = {{normalize ? 1.0 : 0.0}, {2.5}};
    const Slot y = run_everywhere(call, 2, 2);
    const double sum = normalize ? 0.5 : 1;
    EXPECT_NEAR(y.row(0)[0], 2.5 * 0.4 / sum, 1e-6);
    EXPECT_NEAR(y.row(0)[1], 2.5 * 0.1 / sum, 1e-6);
    EXPECT_TRUE(std::isnan(y.row(1)[1])) << "there is no expert 9";
  }
}

TEST(CombineExperts, WeighsAndAdds) {
  std::mt19937_64 random(3);
  for (const std::uint32_t width : {1u, 16u, 17u, 300u, 9000u}) {
    SCOPED_TRACE(width);
    Slot x(2, 3 * width), weights(2, 3);
    x.fill(random);
    weights.fill(random);
    KernelCall call{.file = "cpu/combine_experts.cpp"};
    call.inputs = {&x, &weights};
    const Slot y = run_everywhere(call, 2, width);
    std::vector<double> wanted;
    for (std::uint32_t r = 0; r < 2; ++r) {
      for (std::uint32_t i = 0; i < width; ++i) {
        double sum = 0;
        for (std::uint32_t j = 0; j < 3; ++j) sum += double{weights.row(r)[j]} * x.row(r)[j * width + i];
        wanted.push_back(sum);
      }
    }
    EXPECT_LT(errors(wanted, values(y)).max, 1e-6);
  }
}

struct Products {
  std::string entry;
  Encoding encoding;
  std::uint32_t rows, outputs, depth;
};

class ExpertMatmul : public ::testing::TestWithParam<Products> {};

// One expert that many rows chose, one that none did, one that a row chose twice; whole rows and a part each.
TEST_P(ExpertMatmul, EqualsTheProductOfEachChoiceAlone) {
  constexpr std::uint32_t kExperts = 5, kPerToken = 2;
  const auto& [entry, encoding, rows, outputs, depth] = GetParam();
  std::mt19937_64 random(4);
  const bool quantized = info(encoding).block_size > 1;
  std::vector<StoredWeight> experts;
  for (std::uint32_t e = 0; e < kExperts; ++e)
    experts.push_back(quantized ? quantized_weight(random, outputs, depth, encoding)
                                : plain_weight(random, outputs, depth, encoding));
  std::vector<std::uint32_t> chosen;
  for (std::uint32_t r = 0; r < rows; ++r) {
    chosen.push_back(r % 3 == 0 ? 4 : r % 2);
    chosen.push_back(r == 1 ? chosen.back() : 2);
  }
  const Slot choices = index_rows(kPerToken, chosen);
  const std::string matmul = "cpu/matmul_" + entry + ".cpp";
  const bool wide_blocks = info(encoding).block_size == 256;
  const std::string quantize = wide_blocks ? "cpu/quantize_a8_256.cpp" : "cpu/quantize_a8_32.cpp";
  const auto activations = [&](const Slot& x) {
    const Encoding wanted = !quantized ? Encoding::f32 : wide_blocks ? Encoding::a8_256 : Encoding::a8_32;
    Slot out(x.rows(), x.cols(), wanted);
    if (!quantized) {
      for (std::uint32_t r = 0; r < x.rows(); ++r) std::copy(x.row(r).begin(), x.row(r).end(), out.row(r).begin());
      return out;
    }
    KernelCall call{.file = quantize};
    call.inputs = {&x};
    call.run(Isa::portable, 1, out);
    return out;
  };
  for (const std::uint32_t groups : {1u, kPerToken}) {
    SCOPED_TRACE(groups);
    Slot plain(rows, groups * depth);
    plain.fill(random);
    const Slot x = activations(plain);
    KernelCall call{.file = "cpu/expert_matmul.cpp", .entry = entry};
    call.inputs = {&x, &choices};
    for (const StoredWeight& weight : experts) call.weights.push_back(&weight);
    call.constants = {{kExperts}, {kPerToken}, {double(groups)}};
    const Slot y = run_everywhere(call, rows, kPerToken * outputs);
    for (std::uint32_t r = 0; r < rows; ++r) {
      for (std::uint32_t j = 0; j < kPerToken; ++j) {
        Slot one(1, depth);
        const auto part = plain.row(r).subspan(groups == 1 ? 0 : j * depth, depth);
        std::copy(part.begin(), part.end(), one.row(0).begin());
        const Slot alone = activations(one);
        KernelCall product{.file = matmul};
        product.inputs = {&alone};
        product.weights = {&experts[chosen[r * kPerToken + j]]};
        const Slot wanted(1, outputs);
        product.run(Isa::portable, 1, wanted);
        for (std::uint32_t n = 0; n < outputs; ++n)
          ASSERT_EQ(y.row(r)[j * outputs + n], wanted.row(0)[n]) << "row " << r << " choice " << j;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Encodings, ExpertMatmul,
    ::testing::Values(Products{"f32", Encoding::f32, 1, 17, 33}, Products{"f32", Encoding::f32, 37, 40, 20},
                      Products{"f16", Encoding::f16, 7, 16, 65}, Products{"bf16", Encoding::bf16, 9, 33, 16},
                      Products{"q8_0", Encoding::q8_0, 8, 20, 64}, Products{"q4_0", Encoding::q4_0, 8, 20, 96},
                      Products{"q4_k", Encoding::q4_k, 5, 20, 512}, Products{"q5_k", Encoding::q5_k, 5, 16, 256},
                      Products{"q6_k", Encoding::q6_k, 30, 17, 256}));

TEST(ExpertMatmulEdges, AnExpertThatIsNotThereGivesNans) {
  std::mt19937_64 random(5);
  const StoredWeight weight = plain_weight(random, 6, 4, Encoding::f32);
  Slot x(2, 4);
  x.fill(random);
  const Slot choices = index_rows(1, {1, 0});
  KernelCall call{.file = "cpu/expert_matmul.cpp", .entry = "f32"};
  call.inputs = {&x, &choices};
  call.weights = {&weight};
  call.constants = {{1}, {1}, {1}};
  const Slot y(2, 6);
  call.run(available_isas().front(), 2, y);
  for (const float value : y.row(0)) EXPECT_TRUE(std::isnan(value));
  for (const float value : y.row(1)) EXPECT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace candor::cpu::testing
