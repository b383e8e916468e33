// Each WGSL kernel on the device against double precision, with tails and shapes past every tile edge.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "formats/half.h"
#include "webgpu/kernel_program.h"

namespace candor::webgpu::testing {
namespace {

constexpr const char* kWeights = "webgpu/weights.wgsl";
constexpr const char* kRows = "webgpu/rows.wgsl";
constexpr const char* kElements = "webgpu/elements.wgsl";
constexpr const char* kRouting = "webgpu/routing.wgsl";

const std::vector<Encoding> kPlain{Encoding::f32, Encoding::f16, Encoding::bf16};
const std::vector<Encoding> kBlocks{Encoding::q8_0, Encoding::q4_0, Encoding::q4_k, Encoding::q5_k, Encoding::q6_k};

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
  const auto dst = program.step(
      {.kernel = kWeights, .entry = entry, .operation = "matmul", .operands = {src}, .weights = {w}, .cols = n});
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
    for (const auto& [m, k, n] : std::vector<std::array<std::uint32_t, 3>>{
             {1, 1, 1}, {3, 7, 5}, {64, 32, 64}, {65, 33, 65}, {63, 31, 63}, {17, 260, 130}, {130, 40, 5}})
      expect_product("tiled", m, k, n, encoding);
  for (const Encoding encoding : kBlocks)
    for (const auto& [m, k, n] : std::vector<std::array<std::uint32_t, 3>>{{1, 256, 1}, {65, 512, 70}})
      expect_product("tiled", m, k, n, encoding);
  expect_product("tiled", 9, 96, 7, Encoding::q8_0);
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
      const auto dst = program.step({.kernel = kWeights,
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
      KernelProgram::Step gather{.kernel = kWeights, .entry = "gather", .operation = "gather", .cols = cols};
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
      const auto rms = program.step({.kernel = kRows,
                                     .entry = "rmsnorm",
                                     .operation = "rmsnorm",
                                     .operands = {src},
                                     .weights = {w},
                                     .constants = {{1e-5}, {double(width)}, {1.0}},
                                     .cols = cols});
      const auto layer = program.step({.kernel = kRows,
                                       .entry = "layernorm",
                                       .operation = "layernorm",
                                       .operands = {src},
                                       .weights = {full, bias},
                                       .constants = {{1e-5}},
                                       .cols = cols});
      const auto unit = program.step({.kernel = kRows,
                                      .entry = "l2_normalize",
                                      .operation = "l2_normalize",
                                      .operands = {src},
                                      .constants = {{1e-12}},
                                      .cols = cols});
      const auto soft =
          program.step({.kernel = kRows, .entry = "softmax", .operation = "softmax", .operands = {src}, .cols = cols});
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
      step.kernel = kElements;
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
  const auto last = program.step({.kernel = kElements,
                                  .entry = "row_slice",
                                  .operation = "row_slice",
                                  .operands = {src},
                                  .constants = {{0}},
                                  .cols = 300,
                                  .rows = kernels::RowKind::sequences});
  const auto all = program.step({.kernel = kElements,
                                 .entry = "row_slice",
                                 .operation = "row_slice",
                                 .operands = {src},
                                 .constants = {{1}},
                                 .cols = 300});
  const auto part = program.step({.kernel = kElements,
                                  .entry = "slice_columns",
                                  .operation = "slice_columns",
                                  .operands = {src},
                                  .constants = {{17}, {270}},
                                  .cols = 270});
  std::vector<std::uint32_t> pooled;
  for (const double kind : {0.0, 1.0, 2.0})
    pooled.push_back(program.step({.kernel = kRows,
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

TEST(WebGpuKernels, RotaryEmbeddingNearAndFar) {
  SKIP_WITHOUT_DEVICE();
  std::mt19937_64 random(9);
  for (const std::uint32_t first : {0u, 100u, 120000u})
    for (const double style : {0.0, 1.0}) {
      SCOPED_TRACE(fmt::format("position {} style {}", first, style));
      const std::uint32_t head_dim = 20, pairs = 7;
      const Matrix x = random_matrix(random, 3, 3 * head_dim);
      std::vector<double> frequencies;
      for (std::uint32_t i = 0; i < pairs; ++i) frequencies.push_back(std::pow(10000.0, -2.0 * i / 14));
      KernelProgram program(3);
      const auto src = program.input(x);
      KernelProgram::Step step{.kernel = "webgpu/rope.wgsl",
                               .entry = "rope",
                               .operation = "rope",
                               .operands = {src},
                               .constants = {{double(head_dim)}, {style}, frequencies, {1.25}},
                               .cols = 3 * head_dim};
      step.reads_positions = true;
      const auto dst = program.step(step);
      program.load();
      program.run({{.rows = 3, .first_position = first}});
      std::vector<double> wanted(x.values.begin(), x.values.end());
      for (std::uint32_t r = 0; r < 3; ++r)
        for (std::uint32_t h = 0; h < 3; ++h)
          for (std::uint32_t i = 0; i < pairs; ++i) {
            const float angle = static_cast<float>(first + r) * static_cast<float>(frequencies[i]);
            const double c = std::cos(double{angle}) * 1.25, s = std::sin(double{angle}) * 1.25;
            const std::size_t at = std::size_t{r} * 3 * head_dim + h * head_dim;
            const std::size_t i0 = at + (style == 1 ? 2 * i : i), i1 = at + (style == 1 ? 2 * i + 1 : i + pairs);
            const double x0 = double{x.values[i0]}, x1 = double{x.values[i1]};
            wanted[i0] = x0 * c - x1 * s;
            wanted[i1] = x1 * c + x0 * s;
          }
      EXPECT_LT(errors(wanted, program.floats(dst)).max, 3e-6);
    }
}

struct AttentionShape {
  std::uint32_t heads = 4, kv_heads = 2, head_dim = 20, window = 0;
  double softcap = 0;
  bool causal = true;
};

std::vector<double> attention_oracle(const AttentionShape& s, const Matrix& q, const Matrix& k, const Matrix& v,
                                     double scale, std::uint32_t from) {
  std::vector<double> out;
  for (std::uint32_t i = from; i < q.rows; ++i)
    for (std::uint32_t head = 0; head < s.heads; ++head) {
      const std::uint32_t kv = head / (s.heads / s.kv_heads) * s.head_dim;
      const std::uint32_t begin = s.window > 0 && i + 1 > s.window ? i + 1 - s.window : 0;
      std::uint32_t end = s.causal ? i + 1 : q.rows;
      if (!s.causal && s.window != 0) end = std::min(end, i + s.window);
      std::vector<double> e;
      double sum = 0;
      for (std::uint32_t j = begin; j < end; ++j) {
        double score = 0;
        for (std::uint32_t d = 0; d < s.head_dim; ++d)
          score += double{q.at(i, head * s.head_dim + d)} * double{k.at(j, kv + d)};
        score *= scale;
        if (s.softcap > 0) score = s.softcap * std::tanh(score / s.softcap);
        e.push_back(std::exp(score));
        sum += e.back();
      }
      for (std::uint32_t d = 0; d < s.head_dim; ++d) {
        double value = 0;
        for (std::uint32_t j = begin; j < end; ++j) value += e[j - begin] * double{v.at(j, kv + d)};
        out.push_back(value / sum);
      }
    }
  return out;
}

void expect_attention(const AttentionShape& s, std::uint32_t length, std::uint32_t chunk, Encoding encoding) {
  SCOPED_TRACE(fmt::format("heads {}/{} dim {} window {} softcap {} causal {} length {} in chunks of {}, {}", s.heads,
                           s.kv_heads, s.head_dim, s.window, s.softcap, s.causal, length, chunk, to_string(encoding)));
  std::mt19937_64 random(length);
  const Matrix q = random_matrix(random, length, s.heads * s.head_dim);
  Matrix k = random_matrix(random, length, s.kv_heads * s.head_dim);
  Matrix v = random_matrix(random, length, s.kv_heads * s.head_dim);
  const double scale = 0.25;
  KernelProgram program(chunk, {.rows = chunk, .context = 512, .page_positions = 16, .pages = 32});
  KernelProgram::Step step{.kernel = "webgpu/attention.wgsl",
                           .entry = "attention",
                           .operation = "attention",
                           .operands = {program.input(q), program.input(k), program.input(v)},
                           .constants = {{double(s.heads)},
                                         {double(s.kv_heads)},
                                         {double(s.head_dim)},
                                         {scale},
                                         {double(s.window)},
                                         {s.softcap},
                                         {s.causal ? 1.0 : 0.0}},
                           .cols = s.heads * s.head_dim};
  step.kv = program.cache(s.kv_heads, s.head_dim, encoding, step);
  const auto dst = program.step(step);
  program.load();
  std::vector<std::uint32_t> pages(32);
  std::iota(pages.rbegin(), pages.rend(), 0u);  // a scattered order
  std::vector<float> got;
  for (std::uint32_t first = 0; first < length; first += chunk) {
    program.run({{.rows = std::min(chunk, length - first), .first_position = first, .kv_pages = pages.data()}}, first);
    const auto part = program.floats(dst);
    got.insert(got.end(), part.begin(), part.end());
  }
  if (encoding == Encoding::f16)
    for (Matrix* matrix : {&k, &v})
      for (float& x : matrix->values) x = f16_to_f32(f32_to_f16(x));
  const ErrorStatistics e = errors(attention_oracle(s, q, k, v, scale, 0), got);
  EXPECT_LT(e.max, 1e-5);
  EXPECT_LT(e.mean, 5e-7);
}

TEST(WebGpuKernels, Attention) {
  SKIP_WITHOUT_DEVICE();
  for (const Encoding encoding : {Encoding::f32, Encoding::f16}) {
    expect_attention({.heads = 1, .kv_heads = 1, .head_dim = 1}, 3, 3, encoding);
    expect_attention({}, 17, 17, encoding);
    expect_attention({}, 40, 7, encoding);
    expect_attention({}, 20, 1, encoding);
    expect_attention({.heads = 8, .kv_heads = 1, .head_dim = 33}, 40, 16, encoding);
    expect_attention({.window = 8}, 40, 9, encoding);
    expect_attention({.window = 200}, 300, 100, encoding);
    expect_attention({.softcap = 1.5}, 40, 40, encoding);
    expect_attention({.heads = 2, .kv_heads = 2, .head_dim = 128}, 140, 139, encoding);
    expect_attention({.causal = false}, 33, 33, encoding);
    expect_attention({.window = 7, .causal = false}, 33, 33, encoding);
  }
}

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
    const auto top = program.step({.kernel = kRouting,
                                   .entry = "top_k",
                                   .operation = "top_k",
                                   .operands = {scores},
                                   .constants = {{double(chosen)}},
                                   .cols = chosen,
                                   .encoding = Encoding::u32});
    const auto shares = program.step({.kernel = kRouting,
                                      .entry = "routing_weights",
                                      .operation = "routing_weights",
                                      .operands = {scores, top},
                                      .constants = {{1}, {0.5}},
                                      .cols = chosen});
    KernelProgram::Step multiply{.kernel = kWeights,
                                 .entry = "expert_gemv",
                                 .operation = "expert_matmul",
                                 .operands = {src, top},
                                 .constants = {{double(experts)}, {double(chosen)}, {1}},
                                 .cols = chosen * n};
    for (std::uint32_t e = 0; e < experts; ++e)
      multiply.weights.push_back(stored(random_matrix(random, n, k, 0.1f), encoding));
    const auto each = program.step(multiply);
    const auto sum = program.step({.kernel = kRouting,
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

std::vector<std::uint32_t> sampled(const Matrix& logits, const std::vector<SamplerParameters>& samplers,
                                   std::span<const std::uint32_t> history = {}, std::uint32_t position = 0) {
  KernelProgram program(logits.rows, {.context = 4096, .page_positions = 4096});
  const auto src = program.input(logits);
  const auto slice = program.step({.kernel = kElements,
                                   .entry = "row_slice",
                                   .operation = "row_slice",
                                   .operands = {src},
                                   .constants = {{0}},
                                   .cols = logits.cols,
                                   .rows = kernels::RowKind::sequences});
  const auto token = program.step({.kernel = "webgpu/sample.wgsl",
                                   .entry = "sample",
                                   .operation = "sample",
                                   .operands = {slice},
                                   .cols = 1,
                                   .encoding = Encoding::u32,
                                   .rows = kernels::RowKind::sequences});
  program.load();
  const std::uint32_t page = 0;
  std::vector<Segment> segments;
  for (std::uint32_t r = 0; r < logits.rows; ++r)
    segments.push_back({.first_row = r,
                        .rows = 1,
                        .first_position = position + r,
                        .kv_pages = &page,
                        .sampler = &samplers[r % samplers.size()],
                        .history = history});
  program.run(segments);
  return program.integers(token);
}

TEST(WebGpuKernels, GreedySamplingTakesTheLowestOfTheLargest) {
  SKIP_WITHOUT_DEVICE();
  std::mt19937_64 random(12);
  for (const std::uint32_t vocabulary : {1u, 255u, 257u, 5000u}) {
    Matrix logits = random_matrix(random, 3, vocabulary);
    logits.values[2 * vocabulary + vocabulary / 2] = 9;
    logits.values[3 * vocabulary - 1] = 9;
    const auto got = sampled(logits, {SamplerParameters{}});
    for (std::uint32_t r = 0; r < 3; ++r) {
      const auto* row = logits.values.data() + r * vocabulary;
      EXPECT_EQ(got[r], std::max_element(row, row + vocabulary) - row);
    }
  }
  Matrix bad = random_matrix(random, 2, 300);
  bad.values[7] = std::numeric_limits<float>::quiet_NaN();
  bad.values[300 + 8] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sampled(bad, {SamplerParameters{}}), (std::vector<std::uint32_t>{kNoToken, kNoToken}));
}

TEST(WebGpuKernels, PenaltyMovesTheChoice) {
  SKIP_WITHOUT_DEVICE();
  const Matrix logits{1, 4, {1.0f, 3.0f, 2.0f, -1.0f}};
  SamplerParameters sampler;
  sampler.repetition_penalty = 2;
  const std::vector<std::uint32_t> history{1};
  EXPECT_EQ(sampled(logits, {sampler}, history), std::vector<std::uint32_t>{2});
}

TEST(WebGpuKernels, SamplingFollowsTheDistributionAndItsCuts) {
  SKIP_WITHOUT_DEVICE();
  constexpr std::uint32_t kDraws = 2000;
  const std::vector<double> share{0.4, 0.3, 0.2, 0.06, 0.04};
  Matrix logits{kDraws, 5, {}};
  for (std::uint32_t r = 0; r < kDraws; ++r)
    for (const double p : share) logits.values.push_back(static_cast<float>(std::log(p)));
  const auto frequencies = [&](const SamplerParameters& sampler) {
    std::vector<double> counts(5);
    for (const std::uint32_t token : sampled(logits, {sampler})) counts.at(token) += 1.0 / kDraws;
    return counts;
  };
  const auto expect_near = [](const std::vector<double>& got, const std::vector<double>& wanted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], wanted[i] == 0 ? 0 : 0.045) << i;
  };
  SamplerParameters sampler;
  sampler.temperature = 1;
  sampler.seed = 7;
  expect_near(frequencies(sampler), share);
  sampler.top_k = 2;
  expect_near(frequencies(sampler), {0.4 / 0.7, 0.3 / 0.7, 0, 0, 0});
  sampler.top_k = 0;
  sampler.top_p = 0.85f;
  expect_near(frequencies(sampler), {0.4 / 0.9, 0.3 / 0.9, 0.2 / 0.9, 0, 0});
  sampler.top_p = 1;
  sampler.min_p = 0.6f;
  expect_near(frequencies(sampler), {0.4 / 0.7, 0.3 / 0.7, 0, 0, 0});
  EXPECT_EQ(sampled(logits, {sampler}), sampled(logits, {sampler}));
  SamplerParameters other = sampler;
  other.seed = 8;
  EXPECT_NE(sampled(logits, {sampler}), sampled(logits, {other}));
}

}  // namespace
}  // namespace candor::webgpu::testing
