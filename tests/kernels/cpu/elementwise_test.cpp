// Activations, gates, sums, scales, caps, casts, slices and norms, each against double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "formats/half.h"
#include "kernels/cpu/kernel_call.h"

namespace candor::cpu::testing {
namespace {

constexpr std::uint32_t kWidths[] = {1, 15, 16, 17, 63, 64, 65, 200, 5000, 9000};

double silu(double x) {
  return x / (1 + std::exp(-x));
}
double gelu_tanh(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_erf(double x) {
  return x / 2 * std::erfc(-x / std::sqrt(2.0));
}
double relu(double x) {
  return x > 0 ? x : 0;
}

struct Function {
  const char* file;
  std::vector<std::vector<double>> constants;
  std::function<double(double)> oracle;
};

std::vector<Function> functions() {
  return {{"cpu/activation.cpp", {{0}}, silu},
          {"cpu/activation.cpp", {{1}}, gelu_tanh},
          {"cpu/activation.cpp", {{2}}, gelu_erf},
          {"cpu/activation.cpp", {{3}}, relu},
          {"cpu/scale.cpp", {{0.75}}, [](double x) { return 0.75 * x; }},
          {"cpu/softcap.cpp", {{3}}, [](double x) { return 3 * std::tanh(x / 3); }}};
}

TEST(Elementwise, FunctionsOfOneElement) {
  std::mt19937_64 random(1);
  for (const Function& function : functions()) {
    for (const std::uint32_t width : kWidths) {
      SCOPED_TRACE(::testing::Message() << function.file << " " << function.constants[0][0] << " width " << width);
      Slot x(width < 300 ? 3 : 1, width);
      x.fill(random, 3);
      KernelCall call{.file = function.file};
      call.inputs = {&x};
      call.constants = function.constants;
      const Slot y = run_everywhere(call, x.rows(), width);
      std::vector<double> wanted;
      for (const float value : values(x)) wanted.push_back(function.oracle(double{value}));
      const ErrorStatistics e = errors(wanted, values(y));
      EXPECT_LT(e.max, 8e-7);
      if (width > 100) {
        EXPECT_LT(e.mean, 6e-8);
      }
      const std::vector<float> separate = values(y);
      call.run(available_isas().front(), 2, x);  // in place
      EXPECT_EQ(values(x), separate);
    }
  }
}

// Every exponent of both signs: relative errors, so that small arguments count.
TEST(Elementwise, FunctionsKeepTheirPrecisionOverAllMagnitudes) {
  Slot x(1, 2 * 210 * 16);
  for (std::uint32_t i = 0; i < x.cols(); ++i)
    x.row(0)[i] = (i % 2 == 0 ? 1.0f : -1.0f) * std::ldexp(1 + static_cast<float>(i / 2 % 16) / 16, int(i / 32) - 140);
  for (const Function& function : functions()) {
    SCOPED_TRACE(::testing::Message() << function.file << " " << function.constants[0][0]);
    KernelCall call{.file = function.file};
    call.inputs = {&x};
    call.constants = function.constants;
    const Slot y = run_everywhere(call, 1, x.cols());
    for (std::uint32_t i = 0; i < x.cols(); ++i) {
      const double in = double{x.row(0)[i]};
      const double wanted = function.oracle(in);
      if (std::abs(in) > 1e30) continue;  // a cube overflows
      // Against the function's value, or against the argument where both factors of a GELU nearly cancel.
      const double scale = std::max(std::abs(wanted), in < 0 ? std::abs(in) * 0.1 : 0.0);
      EXPECT_NEAR(double{y.row(0)[i]}, wanted, 4e-7 * scale + 1e-44) << in;
    }
  }
}

TEST(Elementwise, GatesAndSumsOfTwo) {
  std::mt19937_64 random(2);
  struct Pair {
    const char* file;
    std::vector<std::vector<double>> constants;
    std::function<double(double, double)> oracle;
  };
  const std::vector<Pair> pairs{
      {"cpu/gated_activation.cpp", {{0}}, [](double g, double u) { return silu(g) * u; }},
      {"cpu/gated_activation.cpp", {{1}}, [](double g, double u) { return gelu_tanh(g) * u; }},
      {"cpu/gated_activation.cpp", {{2}}, [](double g, double u) { return gelu_erf(g) * u; }},
      {"cpu/multiply.cpp", {}, [](double a, double b) { return a * b; }},
      {"cpu/residual_add.cpp", {}, [](double a, double b) { return a + b; }}};
  for (const Pair& pair : pairs) {
    for (const std::uint32_t width : kWidths) {
      SCOPED_TRACE(::testing::Message() << pair.file << " width " << width);
      Slot a(2, width), b(2, width);
      a.fill(random, 2);
      b.fill(random, 2);
      KernelCall call{.file = pair.file};
      call.inputs = {&a, &b};
      call.constants = pair.constants;
      const Slot y = run_everywhere(call, 2, width);
      std::vector<double> wanted;
      for (std::uint32_t r = 0; r < 2; ++r)
        for (std::uint32_t i = 0; i < width; ++i)
          wanted.push_back(pair.oracle(double{a.row(r)[i]}, double{b.row(r)[i]}));
      const ErrorStatistics e = errors(wanted, values(y));
      EXPECT_LT(e.max, 2e-6);
      if (width > 100) {
        EXPECT_LT(e.mean, 6e-8);
      }
      const std::vector<float> separate = values(y);
      call.run(available_isas().front(), 2, a);
      EXPECT_EQ(values(a), separate);
    }
  }
}

TEST(Elementwise, BiasInEveryPlainEncoding) {
  std::mt19937_64 random(3);
  for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::bf16}) {
    for (const std::uint32_t width : kWidths) {
      Slot x(2, width);
      x.fill(random);
      const StoredWeight bias = plain_weight(random, 1, width, encoding);
      KernelCall call{.file = "cpu/bias_add.cpp"};
      call.inputs = {&x};
      call.weights = {&bias};
      const Slot y = run_everywhere(call, 2, width);
      for (std::uint32_t r = 0; r < 2; ++r)
        for (std::uint32_t i = 0; i < width; ++i)
          ASSERT_EQ(y.row(r)[i], x.row(r)[i] + static_cast<float>(bias.values[i]));
    }
  }
}

TEST(Elementwise, CastsRoundToNearestEvenAndBack) {
  // Every half, its neighbours and the ties between halves.
  std::vector<float> all;
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float half = f16_to_f32(static_cast<std::uint16_t>(bits));
    const float next = bits + 1 < 0x7c00 ? f16_to_f32(static_cast<std::uint16_t>(bits + 1)) : 65536.0f;
    const float tie = (half + next) / 2;
    all.insert(all.end(), {half, -half, tie, -tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 1e9f)});
  }
  all.insert(all.end(), {65519.9f, 65520.0f, 1e30f, -INFINITY, 1e-45f});
  Slot x(1, static_cast<std::uint32_t>(all.size()));
  std::copy(all.begin(), all.end(), x.row(0).begin());
  KernelCall narrow{.file = "cpu/cast.cpp", .entry = "f32_to_f16"};
  narrow.inputs = {&x};
  const Slot halves = run_everywhere(narrow, 1, x.cols(), Encoding::f16);
  for (std::uint32_t i = 0; i < x.cols(); ++i)
    ASSERT_EQ(halves.row<std::uint16_t>(0)[i], f32_to_f16(x.row(0)[i])) << x.row(0)[i];
  KernelCall widen{.file = "cpu/cast.cpp", .entry = "f16_to_f32"};
  widen.inputs = {&halves};
  const Slot back = run_everywhere(widen, 1, x.cols());
  for (std::uint32_t i = 0; i < x.cols(); ++i) ASSERT_EQ(back.row(0)[i], f16_to_f32(halves.row<std::uint16_t>(0)[i]));
}

TEST(Elementwise, SlicesOfColumnsAndRows) {
  std::mt19937_64 random(4);
  Slot x(6, 100);
  x.fill(random);
  KernelCall columns{.file = "cpu/slice_columns.cpp"};
  columns.inputs = {&x};
  columns.constants = {{33}, {50}};
  const Slot y = run_everywhere(columns, 6, 50);
  for (std::uint32_t r = 0; r < 6; ++r)
    for (std::uint32_t i = 0; i < 50; ++i) ASSERT_EQ(y.row(r)[i], x.row(r)[33 + i]);

  const Segment segments[] = {{.first_row = 0, .rows = 1}, {.first_row = 1, .rows = 3}, {.first_row = 4, .rows = 2}};
  KernelCall rows{.file = "cpu/row_slice.cpp"};
  rows.inputs = {&x};
  rows.batch.segments = segments;
  rows.constants = {{0}};
  const Slot last = run_everywhere(rows, 3, 100);
  for (std::uint32_t i = 0; i < 100; ++i) {
    ASSERT_EQ(last.row(0)[i], x.row(0)[i]);
    ASSERT_EQ(last.row(1)[i], x.row(3)[i]);
    ASSERT_EQ(last.row(2)[i], x.row(5)[i]);
  }
  rows.constants = {{1}};
  EXPECT_EQ(values(run_everywhere(rows, 6, 100)), values(x));
}

TEST(Norms, RmsNormOfRowsAndHeads) {
  std::mt19937_64 random(5);
  for (const std::uint32_t width : kWidths) {
    for (const std::uint32_t groups : {1u, 3u}) {
      SCOPED_TRACE(::testing::Message() << groups << " groups of " << width);
      for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::bf16}) {
        Slot x(2, groups * width);
        x.fill(random, 5);
        const StoredWeight w = plain_weight(random, 1, width, encoding);
        KernelCall call{.file = "cpu/rmsnorm.cpp"};
        call.inputs = {&x};
        call.weights = {&w};
        call.constants = {{1e-5}, {double(width)}, {1}};
        const Slot y = run_everywhere(call, 2, groups * width);
        std::vector<double> wanted;
        for (std::uint32_t r = 0; r < 2; ++r) {
          for (std::uint32_t group = 0; group < groups; ++group) {
            double squares = 0;
            for (std::uint32_t i = 0; i < width; ++i) squares += std::pow(double{x.row(r)[group * width + i]}, 2);
            const double root = std::sqrt(squares / width + 1e-5);
            for (std::uint32_t i = 0; i < width; ++i)
              wanted.push_back(double{x.row(r)[group * width + i]} / root * (w.values[i] + 1));
          }
        }
        const ErrorStatistics e = errors(wanted, values(y));
        EXPECT_LT(e.max, 2e-6);
        EXPECT_LT(e.mean, 1.5e-7);
        const std::vector<float> separate = values(y);
        call.run(available_isas().front(), 2, x);
        EXPECT_EQ(values(x), separate);
      }
    }
  }
}

TEST(Norms, LayerNormWithALargeMean) {
  std::mt19937_64 random(6);
  for (const std::uint32_t width : kWidths) {
    Slot x(2, width);
    x.fill(random, 5);
    for (float& value : x.row(1)) value += 40;
    const StoredWeight w = plain_weight(random, 1, width, Encoding::bf16);
    const StoredWeight b = plain_weight(random, 1, width, Encoding::f32);
    KernelCall call{.file = "cpu/layernorm.cpp"};
    call.inputs = {&x};
    call.weights = {&w, &b};
    call.constants = {{1e-12}};
    const Slot y = run_everywhere(call, 2, width);
    std::vector<double> wanted;
    for (std::uint32_t r = 0; r < 2; ++r) {
      double mean = 0, variance = 0;
      for (const float value : x.row(r)) mean += double{value} / width;
      for (const float value : x.row(r)) variance += std::pow(double{value} - mean, 2) / width;
      for (std::uint32_t i = 0; i < width; ++i)
        wanted.push_back((double{x.row(r)[i]} - mean) / std::sqrt(variance + 1e-12) * w.values[i] + b.values[i]);
    }
    const ErrorStatistics e = errors(wanted, values(y));
    EXPECT_LT(e.max, 1e-5) << width;  // the mean of row 1 is rounded at 40
    EXPECT_LT(e.mean, 1e-6) << width;
  }
}

}  // namespace
}  // namespace candor::cpu::testing
