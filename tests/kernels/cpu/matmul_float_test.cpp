// Products with plain weights: against double precision, between instruction sets, threads and numbers of rows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/cpu/kernel_call.h"

namespace candor::cpu::testing {
namespace {

struct Shape {
  std::uint32_t rows, outputs, depth;
};

// One; below, at and past a panel (16), a chunk (64 outputs), a register tile (4, 6, 12 rows), a block of rows (120)
// and a slice of K (256).
constexpr Shape kShapes[] = {{1, 1, 1},     {1, 15, 3},    {1, 16, 16},  {1, 17, 33},  {1, 63, 64},  {1, 81, 257},
                             {2, 33, 40},   {3, 65, 31},   {4, 16, 8},   {5, 17, 255}, {6, 40, 256}, {7, 50, 257},
                             {12, 20, 129}, {13, 130, 65}, {120, 17, 9}, {121, 144, 5}};

std::vector<double> oracle(const Slot& x, const StoredWeight& w) {
  std::vector<double> y;
  for (std::uint32_t m = 0; m < x.rows(); ++m) {
    for (std::uint64_t n = 0; n < w.rows; ++n) {
      double sum = 0;
      for (std::uint32_t k = 0; k < x.cols(); ++k) sum += double{x.row(m)[k]} * w.values[n * w.cols + k];
      y.push_back(sum);
    }
  }
  return y;
}

struct Variant {
  const char* file;
  Encoding encoding;
};

class FloatMatmul : public ::testing::TestWithParam<Variant> {};

TEST_P(FloatMatmul, EqualsTheOracleAndItself) {
  std::mt19937_64 random(1);
  for (const auto& [rows, outputs, depth] : kShapes) {
    SCOPED_TRACE(::testing::Message() << rows << " x " << outputs << " x " << depth);
    Slot x(rows, depth);
    x.fill(random);
    const StoredWeight w = plain_weight(random, outputs, depth, GetParam().encoding);
    KernelCall call{.file = GetParam().file};
    call.inputs = {&x};
    call.weights = {&w};
    const Slot y = run_everywhere(call, rows, outputs);
    const ErrorStatistics e = errors(oracle(x, w), values(y));
    EXPECT_LT(e.max, 3e-6);
    EXPECT_LT(e.mean, 3e-7);
  }
}

TEST_P(FloatMatmul, RowsDoNotDependOnTheirNumber) {
  std::mt19937_64 random(2);
  constexpr std::uint32_t kRows = 125, kOutputs = 70, kDepth = 300;
  Slot x(kRows, kDepth);
  x.fill(random);
  const StoredWeight w = plain_weight(random, kOutputs, kDepth, GetParam().encoding);
  KernelCall call{.file = GetParam().file};
  call.inputs = {&x};
  call.weights = {&w};
  const Slot all(kRows, kOutputs);
  call.run(available_isas().front(), 2, all);
  for (const std::uint32_t count : {1u, 2u, 3u, 5u, 6u, 7u, 13u}) {
    Slot part(count, kDepth);
    for (std::uint32_t r = 0; r < count; ++r) std::copy(x.row(r + 9).begin(), x.row(r + 9).end(), part.row(r).begin());
    call.inputs = {&part};
    const Slot some(count, kOutputs);
    call.run(available_isas().front(), 1, some);
    for (std::uint32_t r = 0; r < count; ++r)
      for (std::uint32_t n = 0; n < kOutputs; ++n) ASSERT_EQ(some.row(r)[n], all.row(r + 9)[n]) << count << " rows";
  }
}

// The chain of the contract, term by term.
TEST_P(FloatMatmul, IsOneChainOfFusedMultiplyAdds) {
  std::mt19937_64 random(3);
  Slot x(7, 77);
  x.fill(random);
  const StoredWeight w = plain_weight(random, 19, 77, GetParam().encoding);
  KernelCall call{.file = GetParam().file};
  call.inputs = {&x};
  call.weights = {&w};
  const Slot y(7, 19);
  call.run(available_isas().front(), 1, y);
  for (std::uint32_t m = 0; m < 7; ++m) {
    for (std::uint32_t n = 0; n < 19; ++n) {
      float sum = 0;
      for (std::uint32_t k = 0; k < 77; ++k) sum = std::fma(x.row(m)[k], static_cast<float>(w.values[n * 77 + k]), sum);
      ASSERT_EQ(y.row(m)[n], sum);
    }
  }
}

TEST_P(FloatMatmul, NoRowsIsNoWork) {
  std::mt19937_64 random(4);
  const Slot x(0, 16);
  const StoredWeight w = plain_weight(random, 16, 16, GetParam().encoding);
  KernelCall call{.file = GetParam().file};
  call.inputs = {&x};
  call.weights = {&w};
  const Slot y(0, 16);
  call.run(available_isas().front(), 1, y);
}

INSTANTIATE_TEST_SUITE_P(Encodings, FloatMatmul,
                         ::testing::Values(Variant{"cpu/matmul_f32.cpp", Encoding::f32},
                                           Variant{"cpu/matmul_f16.cpp", Encoding::f16},
                                           Variant{"cpu/matmul_bf16.cpp", Encoding::bf16}),
                         [](const auto& tested) { return std::string(to_string(tested.param.encoding)); });

class TransposedMatmul : public ::testing::TestWithParam<Variant> {};

// The same weight stored either way gives the same bits.
TEST_P(TransposedMatmul, EqualsTheProductWithTheWeightTurnedRound) {
  std::mt19937_64 random(5);
  const std::size_t size = info(GetParam().encoding).block_bytes;
  for (const auto& [rows, outputs, depth] : kShapes) {
    SCOPED_TRACE(::testing::Message() << rows << " x " << outputs << " x " << depth);
    Slot x(rows, depth);
    x.fill(random);
    const StoredWeight w = plain_weight(random, outputs, depth, GetParam().encoding);
    StoredWeight turned{.rows = depth, .cols = outputs, .encoding = w.encoding};
    turned.bytes.resize(w.bytes.size());
    for (std::uint32_t n = 0; n < outputs; ++n)
      for (std::uint32_t k = 0; k < depth; ++k)
        std::memcpy(turned.bytes.data() + (k * outputs + n) * size, w.bytes.data() + (n * depth + k) * size, size);
    KernelCall call{.file = GetParam().file};
    call.inputs = {&x};
    call.weights = {&w};
    const Slot wanted(rows, outputs);
    call.run(available_isas().front(), 1, wanted);
    call.file = "cpu/matmul_transposed.cpp";
    call.entry = to_string(GetParam().encoding);
    call.weights = {&turned};
    EXPECT_EQ(values(run_everywhere(call, rows, outputs)), values(wanted));
  }
}

INSTANTIATE_TEST_SUITE_P(Encodings, TransposedMatmul,
                         ::testing::Values(Variant{"cpu/matmul_f32.cpp", Encoding::f32},
                                           Variant{"cpu/matmul_f16.cpp", Encoding::f16},
                                           Variant{"cpu/matmul_bf16.cpp", Encoding::bf16}),
                         [](const auto& tested) { return std::string(to_string(tested.param.encoding)); });

TEST(FloatMatmulEdges, SubnormalHalvesInfinitiesAndNans) {
  StoredWeight w{.rows = 4, .cols = 2, .encoding = Encoding::f16};
  const std::uint16_t bits[] = {0x0001, 0x8001, 0x03ff, 0x0000, 0x7c00, 0x0000, 0x7e00, 0x0000};
  w.bytes.resize(sizeof bits);
  std::memcpy(w.bytes.data(), bits, sizeof bits);
  for (const Isa isa : available_isas()) {
    Slot x(1, 2);
    x.row(0)[0] = 1;
    x.row(0)[1] = 3;
    KernelCall call{.file = "cpu/matmul_f16.cpp"};
    call.inputs = {&x};
    call.weights = {&w};
    const Slot y(1, 4);
    call.run(isa, 1, y);
    EXPECT_EQ(y.row(0)[0], -0x1p-23f) << to_string(isa);
    EXPECT_EQ(y.row(0)[1], 1023 * 0x1p-24f) << to_string(isa);
    EXPECT_EQ(y.row(0)[2], INFINITY) << to_string(isa);
    EXPECT_TRUE(std::isnan(y.row(0)[3])) << to_string(isa);
  }
}

}  // namespace
}  // namespace candor::cpu::testing
