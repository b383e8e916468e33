// Each WGSL kernel on the device against double precision, with tails and shapes past every tile edge: products with
// matrices of weights, and rows of tables.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "webgpu/kernel_program.h"

namespace candor::webgpu::testing {
namespace {

/// x · w^T in double.
std::vector<double> product(const Matrix& x, const StoredMatrix& w) {
  std::vector<double> out;
  for (std::uint32_t r = 0; r < x.rows; ++r)
    for (std::uint64_t n = 0; n < w.rows; ++n) {
      double sum = 0;
      for (std::uint32_t k = 0; k < x.cols; ++k) sum += double{x.at(r, k)} * double{w.values[n * w.cols + k]};
      out.push_back(sum);
    }
  return out;
}

void expect_product(const char* entry, std::uint32_t m, std::uint32_t k, std::uint32_t n, Encoding encoding) {
  SCOPED_TRACE(fmt::format("{} M={} K={} N={} {}", entry, m, k, n, to_string(encoding)));
  std::mt19937_64 random(m * 1000003 + k * 1009 + n);
  const Matrix x = random_matrix(random, m, k);
  const StoredMatrix w = stored(random_matrix(random, n, k, 0.1f), encoding);
  KernelProgram program(m);
  const auto src = program.input(x);
  const auto dst = program.step({.kernel = "webgpu/weights.wgsl",
                                 .entry = entry,
                                 .operation = "matmul",
                                 .operands = {src},
                                 .weights = {w},
                                 .cols = n});
  program.load();
  program.run();
  const ErrorStatistics e = errors(product(x, w), program.floats(dst));
  EXPECT_LT(e.max, 4e-6);
  if (m * n > 100) {
    EXPECT_LT(e.mean, 5e-7);
  }
}

TEST(WebGpuKernels, MatrixTimesVectors) {
  SKIP_WITHOUT_DEVICE();
  for (const Encoding encoding : kPlain)
    for (const auto& [m, k, n] : std::vector<std::array<std::uint32_t, 3>>{
             {1, 1, 1}, {1, 7, 3}, {2, 8, 4}, {3, 33, 5}, {1, 1024, 9}, {1, 1030, 66}, {5, 260, 130}})
      expect_product("gemv", m, k, n, encoding);
  for (const Encoding encoding : kBlocks)
    for (const auto& [m, k, n] : std::vector<std::array<std::uint32_t, 3>>{{1, 256, 3}, {2, 512, 5}, {1, 2304, 34}})
      expect_product("gemv", m, k, n, encoding);
  expect_product("gemv", 1, 32, 3, Encoding::q8_0);
  expect_product("gemv", 2, 96, 7, Encoding::q4_0);
}

TEST(WebGpuKernels, MatrixTimesMatrix) {
  SKIP_WITHOUT_DEVICE();
  for (const Encoding encoding : kPlain)
    for (const auto& [m, k, n] : std::vector<std::array<std::uint32_t, 3>>{{1, 1, 1},
                                                                           {3, 7, 5},
                                                                           {64, 32, 64},
                                                                           {65, 33, 65},
                                                                           {63, 31, 63},
                                                                           {17, 260, 130},
                                                                           {130, 40, 5},
                                                                           {5, 65, 129}})
      expect_product("tiled", m, k, n, encoding);
  for (const Encoding encoding : kBlocks)
    for (const auto& [m, k, n] : std::vector<std::array<std::uint32_t, 3>>{{1, 256, 1}, {65, 512, 70}})
      expect_product("tiled", m, k, n, encoding);
  expect_product("tiled", 9, 96, 7, Encoding::q8_0);
}

/// A product's kernels in prefill and decode, each in their plain form and fused.
struct Forms {
  const char *plain, *residual, *gated, *qkv;
};
constexpr std::array<Forms, 2> kForms{
    {{"gemv", "residual_gemv", "gated_gemv", "qkv_gemv"}, {"tiled", "residual_tiled", "gated_tiled", "qkv_tiled"}}};

double gate_of(std::uint32_t kind, double x) {
  if (kind == 0) return x / (1 + std::exp(-x));
  if (kind == 1) return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
}

void expect_fused(const Forms& forms, std::uint32_t m, std::uint32_t k, std::uint32_t n, std::uint32_t n_kv,
                  Encoding encoding) {
  SCOPED_TRACE(fmt::format("{} M={} K={} N={} and {} {}", forms.plain, m, k, n, n_kv, to_string(encoding)));
  std::mt19937_64 random(m * 1000003 + k * 1009 + n);
  const Matrix x = random_matrix(random, m, k);
  const Matrix residual = random_matrix(random, m, n);
  const auto weight = [&](std::uint32_t rows) { return stored(random_matrix(random, rows, k, 0.1f), encoding); };
  const StoredMatrix a = weight(n), b = weight(n), c = weight(n_kv), d = weight(n_kv);
  KernelProgram program(m);
  const auto src = program.input(x);
  const auto other = program.input(residual);
  const auto step = [&](const char* entry, const char* operation, std::vector<std::uint32_t> operands,
                        std::vector<StoredMatrix> weights, std::uint32_t cols, double activation = -1) {
    KernelProgram::Step out{.kernel = "webgpu/weights.wgsl", .entry = entry, .operation = operation};
    out.operands = std::move(operands);
    out.weights = std::move(weights);
    out.cols = cols;
    if (activation >= 0) out.constants = {{activation}};
    return program.step(out);
  };
  const auto sum = step(forms.residual, "matmul_residual", {src, other}, {a}, n);
  std::vector<std::uint32_t> gates;
  for (std::uint32_t kind = 0; kind < 3; ++kind)
    gates.push_back(step(forms.gated, "gated_matmul", {src}, {a, b}, n, kind));
  const auto packed = step(forms.qkv, "qkv_matmul", {src}, {b, c, d}, n + 2 * n_kv);
  program.load();
  program.run();
  const auto first = product(x, a), second = product(x, b), third = product(x, c), fourth = product(x, d);
  std::vector<double> wanted;
  for (std::size_t i = 0; i < first.size(); ++i) wanted.push_back(first[i] + double{residual.values[i]});
  EXPECT_LT(errors(wanted, program.floats(sum)).max, 4e-6);
  for (std::uint32_t kind = 0; kind < 3; ++kind) {
    wanted.clear();
    for (std::size_t i = 0; i < first.size(); ++i) wanted.push_back(gate_of(kind, first[i]) * second[i]);
    EXPECT_LT(errors(wanted, program.floats(gates[kind])).max, 1e-5) << kind;
  }
  wanted.clear();
  for (std::uint32_t r = 0; r < m; ++r)
    for (const auto* part : {&second, &third, &fourth}) {
      const std::size_t cols = part->size() / m;
      for (std::size_t i = 0; i < cols; ++i) wanted.push_back((*part)[r * cols + i]);
    }
  EXPECT_LT(errors(wanted, program.floats(packed)).max, 4e-6);
}

TEST(WebGpuKernels, FusedProductsOfOneRow) {
  SKIP_WITHOUT_DEVICE();
  for (const Encoding encoding : kPlain) {
    expect_fused(kForms[0], 1, 1, 1, 1, encoding);
    expect_fused(kForms[0], 3, 33, 66, 5, encoding);
  }
  for (const Encoding encoding : kBlocks) expect_fused(kForms[0], 2, 512, 70, 9, encoding);
}

TEST(WebGpuKernels, FusedProductsOfManyRows) {
  SKIP_WITHOUT_DEVICE();
  // Encodings are read by what MatrixTimesMatrix tests; a software adapter takes seconds to compile each.
  for (const Encoding encoding : {Encoding::f32, Encoding::f16}) {
    expect_fused(kForms[1], 1, 1, 1, 1, encoding);
    expect_fused(kForms[1], 65, 40, 130, 33, encoding);
  }
  expect_fused(kForms[1], 2, 512, 70, 9, Encoding::q6_k);
}

TEST(WebGpuKernels, TransposedWeights) {
  SKIP_WITHOUT_DEVICE();
  for (const Encoding encoding : kPlain)
    for (const auto& [m, k, n] :
         std::vector<std::array<std::uint32_t, 3>>{{1, 1, 1}, {3, 17, 65}, {2, 64, 64}, {1, 9, 130}}) {
      SCOPED_TRACE(fmt::format("M={} K={} N={} {}", m, k, n, to_string(encoding)));
      std::mt19937_64 random(k);
      const Matrix x = random_matrix(random, m, k);
      const StoredMatrix w = stored(random_matrix(random, k, n), encoding);
      KernelProgram program(m);
      const auto src = program.input(x);
      const auto dst = program.step({.kernel = "webgpu/weights.wgsl",
                                     .entry = "transposed",
                                     .operation = "matmul_transposed",
                                     .operands = {src},
                                     .weights = {w},
                                     .cols = n});
      program.load();
      program.run();
      std::vector<double> wanted;
      for (std::uint32_t r = 0; r < m; ++r)
        for (std::uint32_t c = 0; c < n; ++c) {
          double sum = 0;
          for (std::uint32_t i = 0; i < k; ++i) sum += double{x.at(r, i)} * double{w.values[std::size_t{i} * n + c]};
          wanted.push_back(sum);
        }
      EXPECT_LT(errors(wanted, program.floats(dst)).max, 4e-6);
    }
}

TEST(WebGpuKernels, GatherReadsEveryEncodingAndMarksForeignRows) {
  SKIP_WITHOUT_DEVICE();
  std::mt19937_64 random(5);
  for (const bool block : {false, true})
    for (const Encoding encoding : block ? kBlocks : kPlain) {
      SCOPED_TRACE(to_string(encoding));
      const std::uint32_t cols = block ? 512 : 37;
      const StoredMatrix table = stored(random_matrix(random, 6, cols), encoding);
      KernelProgram program(4);
      KernelProgram::Step gather{
          .kernel = "webgpu/weights.wgsl", .entry = "gather", .operation = "gather", .cols = cols};
      gather.weights = {table};
      gather.constants = {{2.0}};
      gather.reads_positions = true;  // positions 3 … 6 as indices; the table has rows 0 … 5
      const auto dst = program.step(gather);
      program.load();
      const std::uint32_t page = 0;
      program.run({{.rows = 4, .first_position = 3, .kv_pages = &page}});
      const std::vector<float> got = program.floats(dst);
      for (std::uint32_t r = 0; r < 3; ++r)
        for (std::uint32_t c = 0; c < cols; ++c)
          ASSERT_FLOAT_EQ(got[r * cols + c], 2 * table.values[(r + 3) * cols + c]) << r << " " << c;
      for (std::uint32_t c = 0; c < cols; ++c) ASSERT_TRUE(std::isnan(got[3 * cols + c]));
    }
}

}  // namespace
}  // namespace candor::webgpu::testing
