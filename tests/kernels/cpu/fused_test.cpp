// Fused kernels are the bits of the kernels they stand for, which have oracles of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/cpu/quantized_weight.h"

namespace candor::cpu::testing {
namespace {

struct Product {
  const char* encoding;
  Encoding weight;
  Encoding activation;

  [[nodiscard]] std::string file() const { return std::string("cpu/matmul_") + encoding + ".cpp"; }
};

constexpr Product kProducts[] = {
    {"f32", Encoding::f32, Encoding::f32},      {"f16", Encoding::f16, Encoding::f32},
    {"bf16", Encoding::bf16, Encoding::f32},    {"q8_0", Encoding::q8_0, Encoding::a8_32},
    {"q4_0", Encoding::q4_0, Encoding::a8_32},  {"q4_k", Encoding::q4_k, Encoding::a8_256},
    {"q5_k", Encoding::q5_k, Encoding::a8_256}, {"q6_k", Encoding::q6_k, Encoding::a8_256}};

constexpr std::uint32_t kRowCounts[] = {1, 2, 9, 121};  // streamed panels, then tiles

constexpr std::uint32_t kFusedDepth = 256;

class FusedProducts : public ::testing::TestWithParam<Product> {
 protected:
  std::mt19937_64 random_{11};

  StoredWeight random_weight(std::uint64_t rows, std::uint64_t cols) {
    const Encoding encoding = GetParam().weight;
    return info(encoding).block_size == 1 ? plain_weight(random_, rows, cols, encoding)
                                          : quantized_weight(random_, rows, cols, encoding);
  }

  /// Rows of kFusedDepth columns as the product reads it.
  Slot activations(std::uint32_t rows) {
    Slot x(rows, kFusedDepth);
    x.fill(random_);
    if (GetParam().activation == Encoding::f32) return x;
    KernelCall call{.file = GetParam().activation == Encoding::a8_32 ? "cpu/quantize_a8_32.cpp"
                                                                     : "cpu/quantize_a8_256.cpp"};
    call.inputs = {&x};
    return run_everywhere(call, rows, kFusedDepth, GetParam().activation);
  }

  Slot product(const Slot& x, const StoredWeight& w) const {
    const std::string file = GetParam().file();
    KernelCall call{.file = file};
    call.inputs = {&x};
    call.weights = {&w};
    return run_everywhere(call, x.rows(), static_cast<std::uint32_t>(w.rows));
  }
};

void expect_same(const Slot& wanted, std::uint32_t wanted_column, const Slot& got, std::uint32_t column,
                 std::uint32_t columns) {
  for (std::uint32_t r = 0; r < got.rows(); ++r)
    ASSERT_EQ(std::memcmp(wanted.row(r).data() + wanted_column, got.row(r).data() + column, columns * sizeof(float)), 0)
        << "row " << r;
}

TEST_P(FusedProducts, QkvIsThreeProductsSideBySide) {
  for (const std::uint32_t rows : kRowCounts) {
    const Slot x = activations(rows);
    // Widths around a panel and around a chunk of panels.
    const StoredWeight q = random_weight(130, kFusedDepth), k = random_weight(17, kFusedDepth),
                       v = random_weight(64, kFusedDepth);
    const std::string file = GetParam().file();
    KernelCall call{.file = file, .entry = "qkv"};
    call.inputs = {&x};
    call.weights = {&q, &k, &v};
    const Slot packed = run_everywhere(call, rows, 130 + 17 + 64);
    std::uint32_t column = 0;
    for (const StoredWeight* w : {&q, &k, &v}) {
      const auto width = static_cast<std::uint32_t>(w->rows);
      expect_same(product(x, *w), 0, packed, column, width);
      column += width;
    }
  }
}

TEST_P(FusedProducts, ResidualIsAddedToTheProduct) {
  for (const std::uint32_t rows : kRowCounts) {
    const Slot x = activations(rows);
    const StoredWeight w = random_weight(83, kFusedDepth);
    Slot residual(rows, 83);
    residual.fill(random_);
    const std::string file = GetParam().file();
    KernelCall call{.file = file, .entry = "residual"};
    call.inputs = {&x, &residual};
    call.weights = {&w};
    const Slot got = run_everywhere(call, rows, 83);
    const Slot plain = product(x, w);
    KernelCall sum{.file = "cpu/residual_add.cpp"};
    sum.inputs = {&plain, &residual};
    expect_same(run_everywhere(sum, rows, 83), 0, got, 0, 83);
    call.run(available_isas().front(), 2, residual);  // in place
    expect_same(got, 0, residual, 0, 83);
  }
}

TEST_P(FusedProducts, GatedIsTwoProductsAndTheirGate) {
  for (const std::uint32_t rows : kRowCounts) {
    const Slot x = activations(rows);
    const StoredWeight gate = random_weight(100, kFusedDepth), up = random_weight(100, kFusedDepth);
    for (const double function : {0.0, 2.0}) {
      KernelCall call{.file = "cpu/gated_matmul.cpp", .entry = GetParam().encoding};
      call.inputs = {&x};
      call.weights = {&gate, &up};
      call.constants = {{function}};
      const Slot got = run_everywhere(call, rows, 100);
      const Slot g = product(x, gate), u = product(x, up);
      KernelCall activation{.file = "cpu/gated_activation.cpp"};
      activation.inputs = {&g, &u};
      activation.constants = {{function}};
      expect_same(run_everywhere(activation, rows, 100), 0, got, 0, 100);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Encodings, FusedProducts, ::testing::ValuesIn(kProducts),
                         [](const auto& parameter) { return std::string(parameter.param.encoding); });

TEST(RmsNormQuantize, IsTheNormThenTheBlocks) {
  std::mt19937_64 random(3);
  for (const std::uint32_t rows : {1u, 3u, 40u}) {
    Slot x(rows, 768);
    x.fill(random, 3);
    const StoredWeight w = plain_weight(random, 1, 768, Encoding::f16);
    const std::vector<std::vector<double>> constants{{1e-5}, {768}, {1}};
    KernelCall norm{.file = "cpu/rmsnorm.cpp"};
    norm.inputs = {&x};
    norm.weights = {&w};
    norm.constants = constants;
    const Slot normed = run_everywhere(norm, rows, 768);
    for (const auto& [entry, file, encoding] : {std::tuple{"a8_32", "cpu/quantize_a8_32.cpp", Encoding::a8_32},
                                                std::tuple{"a8_256", "cpu/quantize_a8_256.cpp", Encoding::a8_256}}) {
      KernelCall call{.file = "cpu/rmsnorm_quantize.cpp", .entry = entry};
      call.inputs = {&x};
      call.weights = {&w};
      call.constants = constants;
      KernelCall quantize{.file = file};
      quantize.inputs = {&normed};
      EXPECT_EQ(run_everywhere(call, rows, 768, encoding).content(),
                run_everywhere(quantize, rows, 768, encoding).content());
    }
  }
}

}  // namespace
}  // namespace candor::cpu::testing
