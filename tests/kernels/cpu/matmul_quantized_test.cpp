// Products with quantized weights: the activations' quantization, the products against double precision of the same
// quantized values, bits between instruction sets, threads and numbers of rows, and hostile blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/quantized_weight.h"

namespace candor::cpu::testing {
namespace {

struct QuantizedVariant {
  const char* file;
  const char* quantizer;
  Encoding weight;
  Encoding activation;
};

/// What a row of quantized activations means.
std::vector<double> activation_values(const Slot& a, std::uint32_t r) {
  const std::uint32_t block = info(a.view().encoding).block_size;
  const auto* q = reinterpret_cast<const std::int8_t*>(a.row_bytes(r).data());
  std::vector<double> out(a.cols());
  for (std::uint32_t k = 0; k < a.cols(); ++k) {
    float scale = 0;
    std::memcpy(&scale, q + a.cols() + k / block * sizeof scale, sizeof scale);
    out[k] = double{scale} * q[k];
  }
  return out;
}

Slot quantized(const QuantizedVariant& variant, const Slot& x) {
  KernelCall call{.file = variant.quantizer};
  call.inputs = {&x};
  return run_everywhere(call, x.rows(), x.cols(), variant.activation);
}

class QuantizedMatmul : public ::testing::TestWithParam<QuantizedVariant> {
 protected:
  [[nodiscard]] std::uint32_t block() const { return info(GetParam().activation).block_size; }

  void expect_oracle(const Slot& a, const StoredWeight& w, const Slot& y) const {
    std::vector<double> wanted;
    for (std::uint32_t m = 0; m < a.rows(); ++m) {
      const std::vector<double> x = activation_values(a, m);
      for (std::uint64_t n = 0; n < w.rows; ++n) {
        double sum = 0;
        for (std::uint32_t k = 0; k < a.cols(); ++k) sum += x[k] * w.values[n * w.cols + k];
        wanted.push_back(sum);
      }
    }
    const ErrorStatistics e = errors(wanted, values(y));
    EXPECT_LT(e.max, 2e-6);
    EXPECT_LT(e.mean, 2e-7);
  }
};

TEST_P(QuantizedMatmul, EqualsTheOracleAndItself) {
  // Rows and outputs around a panel, a chunk, a register tile (2, 4, 8) and a block of rows; depths in blocks around a
  // slice of K.
  struct Size {
    std::uint32_t rows, outputs, blocks;
  };
  std::mt19937_64 random(5);
  for (const auto& [rows, outputs, blocks] :
       {Size{1, 1, 1}, Size{1, 15, 2}, Size{1, 16, 3}, Size{1, 81, 5}, Size{2, 33, 2}, Size{3, 17, 1}, Size{4, 65, 2},
        Size{5, 16, 3}, Size{8, 20, 1}, Size{9, 130, 2}, Size{121, 17, 1}, Size{6, 18, 17}}) {
    SCOPED_TRACE(::testing::Message() << rows << " x " << outputs << " x " << blocks << " blocks");
    Slot x(rows, blocks * block());
    x.fill(random);
    const Slot a = quantized(GetParam(), x);
    const StoredWeight w = quantized_weight(random, outputs, x.cols(), GetParam().weight);
    KernelCall call{.file = GetParam().file};
    call.inputs = {&a};
    call.weights = {&w};
    expect_oracle(a, w, run_everywhere(call, rows, outputs));
  }
}

TEST_P(QuantizedMatmul, RowsDoNotDependOnTheirNumber) {
  std::mt19937_64 random(6);
  constexpr std::uint32_t kRows = 123, kOutputs = 70;
  Slot x(kRows, 3 * 256);
  x.fill(random);
  const Slot a = quantized(GetParam(), x);
  const StoredWeight w = quantized_weight(random, kOutputs, x.cols(), GetParam().weight);
  KernelCall call{.file = GetParam().file};
  call.inputs = {&a};
  call.weights = {&w};
  const Slot all(kRows, kOutputs);
  call.run(available_isas().front(), 2, all);
  for (const std::uint32_t count : {1u, 2u, 3u, 4u, 5u, 9u, 13u}) {
    const Slot part(count, a.cols(), GetParam().activation);
    for (std::uint32_t r = 0; r < count; ++r)
      std::copy(a.row_bytes(r + 9).begin(), a.row_bytes(r + 9).end(), part.view().data + r * part.view().row_bytes);
    call.inputs = {&part};
    const Slot some(count, kOutputs);
    call.run(available_isas().front(), 1, some);
    for (std::uint32_t r = 0; r < count; ++r)
      for (std::uint32_t n = 0; n < kOutputs; ++n) ASSERT_EQ(some.row(r)[n], all.row(r + 9)[n]) << count << " rows";
  }
}

TEST_P(QuantizedMatmul, ExtremeBytesAreExact) {
  std::mt19937_64 random(7);
  for (const std::uint32_t rows : {1u, 5u}) {
    Slot x(rows, 2 * 256);
    for (std::uint32_t r = 0; r < rows; ++r)  // ±1 quantize to ±127
      for (float& value : x.row(r)) value = r % 2 == 0 ? -1.0f : (random() % 2 == 0 ? 1.0f : -1.0f);
    const Slot a = quantized(GetParam(), x);
    const StoredWeight w = quantized_weight(random, 18, x.cols(), GetParam().weight, true);
    KernelCall call{.file = GetParam().file};
    call.inputs = {&a};
    call.weights = {&w};
    expect_oracle(a, w, run_everywhere(call, rows, 18));
  }
}

TEST_P(QuantizedMatmul, ActivationsThatAreNotFiniteReachTheResult) {
  std::mt19937_64 random(8);
  Slot x(2, 512);
  x.fill(random);
  x.row(1)[300] = INFINITY;
  const Slot a = quantized(GetParam(), x);
  const StoredWeight w = quantized_weight(random, 16, 512, GetParam().weight);
  KernelCall call{.file = GetParam().file};
  call.inputs = {&a};
  call.weights = {&w};
  for (const Isa isa : available_isas()) {
    const Slot y(2, 16);
    call.run(isa, 1, y);
    for (const float value : y.row(0)) EXPECT_TRUE(std::isfinite(value));
    for (const float value : y.row(1)) EXPECT_TRUE(std::isnan(value));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Encodings, QuantizedMatmul,
    ::testing::Values(
        QuantizedVariant{"cpu/matmul_q8_0.cpp", "cpu/quantize_a8_32.cpp", Encoding::q8_0, Encoding::a8_32},
        QuantizedVariant{"cpu/matmul_q4_0.cpp", "cpu/quantize_a8_32.cpp", Encoding::q4_0, Encoding::a8_32},
        QuantizedVariant{"cpu/matmul_q4_k.cpp", "cpu/quantize_a8_256.cpp", Encoding::q4_k, Encoding::a8_256},
        QuantizedVariant{"cpu/matmul_q5_k.cpp", "cpu/quantize_a8_256.cpp", Encoding::q5_k, Encoding::a8_256},
        QuantizedVariant{"cpu/matmul_q6_k.cpp", "cpu/quantize_a8_256.cpp", Encoding::q6_k, Encoding::a8_256}),
    [](const auto& tested) { return std::string(to_string(tested.param.weight)); });

class Quantizer : public ::testing::TestWithParam<QuantizedVariant> {};

TEST_P(Quantizer, ValuesScalesAndSums) {
  const std::uint32_t block = info(GetParam().activation).block_size;
  std::mt19937_64 random(9);
  Slot x(5, 3 * 256);
  x.fill(random, 10);
  for (float& value : x.row(1)) value *= 1e-30f;
  for (float& value : x.row(2)) value = 0;
  for (float& value : x.row(3)) value = 1e-38f;  // too small to invert
  for (std::uint32_t k = 0; k < x.cols(); ++k) x.row(4)[k] = (static_cast<float>(k % 255) - 127) / 2;  // ties
  const Slot a = quantized(GetParam(), x);
  for (std::uint32_t r = 0; r < x.rows(); ++r) {
    const auto* q = reinterpret_cast<const std::int8_t*>(a.row_bytes(r).data());
    const std::vector<double> meaning = activation_values(a, r);
    for (std::uint32_t first = 0; first < x.cols(); first += block) {
      float largest = 0;
      for (std::uint32_t k = first; k < first + block; ++k) largest = std::max(largest, std::abs(x.row(r)[k]));
      if (r == 3) largest = 0;
      for (std::uint32_t k = first; k < first + block; ++k) {
        const float scaled = largest > 0 ? x.row(r)[k] * (127.0f / largest) : 0.0f;
        ASSERT_EQ(q[k], static_cast<int>(std::nearbyint(scaled)));
        ASSERT_NEAR(meaning[k], q[k] * (double{largest} / 127), 1e-6 * double{largest});
      }
    }
    const std::byte* sums = a.row_bytes(r).data() + x.cols() + x.cols() / block * sizeof(float);
    const std::uint32_t span = block == 32 ? 32 : 16;
    for (std::uint32_t k = 0; k < x.cols(); k += span) {
      int sum = 0;
      for (std::uint32_t i = k; i < k + span; ++i) sum += q[i];
      std::int32_t sum32 = 0;
      std::int16_t sum16 = 0;
      if (block == 32) {
        std::memcpy(&sum32, sums + k / span * sizeof sum32, sizeof sum32);
      } else {
        std::memcpy(&sum16, sums + k / span * sizeof sum16, sizeof sum16);
        sum32 = sum16;
      }
      ASSERT_EQ(sum32, sum);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Encodings, Quantizer,
    ::testing::Values(QuantizedVariant{"", "cpu/quantize_a8_32.cpp", Encoding::f32, Encoding::a8_32},
                      QuantizedVariant{"", "cpu/quantize_a8_256.cpp", Encoding::f32, Encoding::a8_256}),
    [](const auto& tested) { return std::string(to_string(tested.param.activation)); });

}  // namespace
}  // namespace candor::cpu::testing
