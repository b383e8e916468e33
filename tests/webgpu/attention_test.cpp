// Each WGSL kernel on the device against double precision, with tails and shapes past every tile edge: rotation and
// attention.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>

#include "base/error.h"
#include "formats/half.h"
#include "webgpu/kernel_program.h"

namespace candor::webgpu::testing {
namespace {

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
      KernelProgram::Step step{.kernel = "webgpu/attention.wgsl",
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

/// The result of every row, computed in chunks; of one row each by the kernels of decode. `inputs` are the operands of
/// `step`, with a row for each position.
std::vector<float> computed(KernelProgram::Step step, const std::vector<const Matrix*>& inputs, std::uint32_t chunk,
                            const AttentionShape& s, Encoding encoding) {
  constexpr std::uint32_t kPages = 64;
  KernelProgram program(chunk, {.rows = chunk, .context = 1024, .page_positions = 16, .pages = kPages});
  for (const Matrix* matrix : inputs) step.operands.push_back(program.input(*matrix));
  step.kernel = "webgpu/attention.wgsl";
  step.cols = s.heads * s.head_dim;
  step.kv = program.cache(s.kv_heads, s.head_dim, encoding, step);
  const auto dst = program.step(step);
  program.load();
  std::vector<std::uint32_t> pages(kPages);
  std::iota(pages.rbegin(), pages.rend(), 0u);  // a scattered order
  std::vector<float> got;
  const std::uint32_t length = inputs.front()->rows;
  for (std::uint32_t first = 0; first < length; first += chunk) {
    program.run({{.rows = std::min(chunk, length - first), .first_position = first, .kv_pages = pages.data()}}, first);
    const auto part = program.floats(dst);
    got.insert(got.end(), part.begin(), part.end());
  }
  return got;
}

std::vector<std::vector<double>> constants_of(const AttentionShape& s, double scale) {
  return {{double(s.heads)},  {double(s.kv_heads)}, {double(s.head_dim)},  {scale},
          {double(s.window)}, {s.softcap},          {s.causal ? 1.0 : 0.0}};
}

void round_to(Encoding encoding, Matrix& matrix) {
  if (encoding == Encoding::f16)
    for (float& x : matrix.values) x = f16_to_f32(f32_to_f16(x));
}

void expect_attention(const AttentionShape& s, std::uint32_t length, std::uint32_t chunk, Encoding encoding) {
  SCOPED_TRACE(fmt::format("heads {}/{} dim {} window {} softcap {} causal {} length {} in chunks of {}, {}", s.heads,
                           s.kv_heads, s.head_dim, s.window, s.softcap, s.causal, length, chunk, to_string(encoding)));
  std::mt19937_64 random(length);
  const Matrix q = random_matrix(random, length, s.heads * s.head_dim);
  Matrix k = random_matrix(random, length, s.kv_heads * s.head_dim);
  Matrix v = random_matrix(random, length, s.kv_heads * s.head_dim);
  const double scale = 0.25;
  const auto got = computed(
      {.entry = chunk == 1 ? "decode" : "prefill", .operation = "attention", .constants = constants_of(s, scale)},
      {&q, &k, &v}, chunk, s, encoding);
  round_to(encoding, k);
  round_to(encoding, v);
  const ErrorStatistics e = errors(attention_oracle(s, q, k, v, scale, 0), got);
  EXPECT_LT(e.max, 1e-5);
  EXPECT_LT(e.mean, 5e-7);
}

TEST(WebGpuKernels, AttentionOfManyRows) {
  SKIP_WITHOUT_DEVICE();
  for (const Encoding encoding : {Encoding::f32, Encoding::f16}) {
    expect_attention({.heads = 1, .kv_heads = 1, .head_dim = 1}, 3, 3, encoding);
    expect_attention({}, 17, 17, encoding);
    expect_attention({}, 40, 7, encoding);
    expect_attention({.heads = 8, .kv_heads = 1, .head_dim = 33}, 40, 16, encoding);
    expect_attention({.window = 8}, 40, 9, encoding);
    expect_attention({.window = 200}, 300, 100, encoding);
    expect_attention({.softcap = 1.5}, 40, 40, encoding);
    expect_attention({.heads = 2, .kv_heads = 2, .head_dim = 128}, 140, 139, encoding);
    expect_attention({.heads = 1, .kv_heads = 1, .head_dim = 129}, 65, 33, encoding);
    expect_attention({.heads = 2, .kv_heads = 1, .head_dim = 256}, 66, 64, encoding);
    expect_attention({.causal = false}, 33, 33, encoding);
    expect_attention({.window = 7, .causal = false}, 33, 33, encoding);
  }
}

TEST(WebGpuKernels, AttentionOfOneRowPastSeveralChunks) {
  SKIP_WITHOUT_DEVICE();
  for (const Encoding encoding : {Encoding::f32, Encoding::f16}) {
    expect_attention({.heads = 1, .kv_heads = 1, .head_dim = 1}, 3, 1, encoding);
    expect_attention({}, 530, 1, encoding);
    expect_attention({.heads = 4, .kv_heads = 1, .head_dim = 33, .window = 300}, 560, 1, encoding);
    expect_attention({.window = 8, .softcap = 1.5}, 260, 1, encoding);
    expect_attention({.heads = 2, .kv_heads = 1, .head_dim = 512}, 20, 1, encoding);
  }
}

TEST(WebGpuKernels, ARowOfAttentionIsTheSameInEveryBatch) {
  SKIP_WITHOUT_DEVICE();
  const AttentionShape s{.window = 90};
  std::mt19937_64 random(21);
  const Matrix q = random_matrix(random, 150, s.heads * s.head_dim);
  const Matrix k = random_matrix(random, 150, s.kv_heads * s.head_dim);
  const Matrix v = random_matrix(random, 150, s.kv_heads * s.head_dim);
  const KernelProgram::Step step{.entry = "prefill", .operation = "attention", .constants = constants_of(s, 0.25)};
  const auto whole = computed(step, {&q, &k, &v}, 150, s, Encoding::f16);
  EXPECT_EQ(whole, computed(step, {&q, &k, &v}, 19, s, Encoding::f16));
  EXPECT_EQ(whole, computed(step, {&q, &k, &v}, 64, s, Encoding::f16));
}

TEST(WebGpuKernels, SequencesDecodeTogether) {
  SKIP_WITHOUT_DEVICE();
  const AttentionShape s{.heads = 2, .kv_heads = 1, .head_dim = 8};
  constexpr std::uint32_t kLength = 270;
  std::mt19937_64 random(22);
  // Rows of two sequences in turn.
  const Matrix q = random_matrix(random, 2 * kLength, s.heads * s.head_dim);
  const Matrix k = random_matrix(random, 2 * kLength, s.kv_heads * s.head_dim);
  const Matrix v = random_matrix(random, 2 * kLength, s.kv_heads * s.head_dim);
  KernelProgram program(2, {.rows = 2, .context = 512, .page_positions = 16, .pages = 64});
  KernelProgram::Step step{.kernel = "webgpu/attention.wgsl",
                           .entry = "decode",
                           .operation = "attention",
                           .operands = {program.input(q), program.input(k), program.input(v)},
                           .constants = constants_of(s, 0.25),
                           .cols = s.heads * s.head_dim};
  step.kv = program.cache(s.kv_heads, s.head_dim, Encoding::f32, step);
  const auto dst = program.step(step);
  program.load();
  std::vector<std::uint32_t> pages(64);
  std::iota(pages.begin(), pages.end(), 0u);
  std::array<std::vector<float>, 2> got;
  for (std::uint32_t p = 0; p < kLength; ++p) {
    std::vector<Segment> segments;
    for (std::uint32_t i = 0; i < 2; ++i)
      segments.push_back({.first_row = i, .rows = 1, .first_position = p, .kv_pages = pages.data() + 32 * i});
    program.run(segments, 2 * p);
    const auto both = program.floats(dst);
    for (std::size_t i = 0; i < 2; ++i)
      got.at(i).insert(got.at(i).end(), both.begin() + static_cast<std::ptrdiff_t>(i * step.cols),
                       both.begin() + static_cast<std::ptrdiff_t>((i + 1) * step.cols));
  }
  const auto of = [&](const Matrix& matrix, std::uint32_t sequence) {
    Matrix out{kLength, matrix.cols, {}};
    for (std::uint32_t p = 0; p < kLength; ++p)
      for (std::uint32_t c = 0; c < matrix.cols; ++c) out.values.push_back(matrix.at(2 * p + sequence, c));
    return out;
  };
  for (std::uint32_t i = 0; i < 2; ++i)
    EXPECT_LT(errors(attention_oracle(s, of(q, i), of(k, i), of(v, i), 0.25, 0), got.at(i)).max, 1e-5);
  // Kernels of decode are refused more than a row a sequence.
  try {
    program.run({{.rows = 2, .first_position = 3, .kv_pages = pages.data()}}, 0);
    FAIL() << "two rows of one sequence were accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("one row a sequence"), std::string::npos) << error.what();
  }
}

/// The heads of a matrix rotated by their rows' positions, in double.
void rotate(Matrix& matrix, std::uint32_t head_dim, const std::vector<double>& frequencies, bool interleaved) {
  const auto pairs = static_cast<std::uint32_t>(frequencies.size());
  for (std::uint32_t r = 0; r < matrix.rows; ++r)
    for (std::uint32_t h = 0; h < matrix.cols / head_dim; ++h)
      for (std::uint32_t i = 0; i < pairs; ++i) {
        const double angle = r * double{static_cast<float>(frequencies[i])};
        float* head = matrix.values.data() + std::size_t{r} * matrix.cols + std::size_t{h} * head_dim;
        float& first = head[interleaved ? 2 * i : i];
        float& second = head[interleaved ? 2 * i + 1 : i + pairs];
        const double x = double{first}, y = double{second};
        first = static_cast<float>((x * std::cos(angle) - y * std::sin(angle)) * 1.25);
        second = static_cast<float>((y * std::cos(angle) + x * std::sin(angle)) * 1.25);
      }
}

void expect_rope_attention(const AttentionShape& s, std::uint32_t pairs, bool interleaved, std::uint32_t length,
                           std::uint32_t chunk, Encoding encoding) {
  SCOPED_TRACE(fmt::format("dim {} pairs {} interleaved {} length {} in chunks of {}, {}", s.head_dim, pairs,
                           interleaved, length, chunk, to_string(encoding)));
  std::mt19937_64 random(length);
  Matrix q = random_matrix(random, length, s.heads * s.head_dim);
  Matrix k = random_matrix(random, length, s.kv_heads * s.head_dim);
  Matrix v = random_matrix(random, length, s.kv_heads * s.head_dim);
  Matrix packed{length, q.cols + k.cols + v.cols, {}};
  for (std::uint32_t r = 0; r < length; ++r)
    for (const Matrix* matrix : {&q, &k, &v})
      for (std::uint32_t c = 0; c < matrix->cols; ++c) packed.values.push_back(matrix->at(r, c));
  std::vector<double> frequencies;
  for (std::uint32_t i = 0; i < pairs; ++i) frequencies.push_back(std::pow(1000.0, -double(i) / pairs));
  const double scale = 0.25;
  KernelProgram::Step step{.entry = chunk == 1 ? "rope_decode" : "rope_prefill", .operation = "rope_attention"};
  step.reads_positions = true;
  step.constants = {{double(s.head_dim)}, {interleaved ? 1.0 : 0.0}, frequencies, {1.25},
                    {double(s.heads)},    {double(s.kv_heads)},      {scale},     {double(s.window)},
                    {s.softcap},          {s.causal ? 1.0 : 0.0}};
  const auto got = computed(step, {&packed}, chunk, s, encoding);
  rotate(q, s.head_dim, frequencies, interleaved);
  rotate(k, s.head_dim, frequencies, interleaved);
  round_to(encoding, k);
  round_to(encoding, v);
  const ErrorStatistics e = errors(attention_oracle(s, q, k, v, scale, 0), got);
  // Where a rotated key lies between two f16 numbers, its last bit decides which it becomes.
  EXPECT_LT(e.max, encoding == Encoding::f16 ? 3e-3 : 1e-5);
  EXPECT_LT(e.mean, encoding == Encoding::f16 ? 5e-6 : 1e-6);
}

TEST(WebGpuKernels, RotationAndAttentionInOne) {
  SKIP_WITHOUT_DEVICE();
  for (const Encoding encoding : {Encoding::f32, Encoding::f16})
    for (const std::uint32_t chunk : {1u, 40u, 7u}) {
      expect_rope_attention({}, 10, false, 40, chunk, encoding);
      expect_rope_attention({.head_dim = 33, .window = 9}, 8, false, 40, chunk, encoding);
      expect_rope_attention({.heads = 6, .kv_heads = 3, .head_dim = 64, .softcap = 2}, 32, true, 40, chunk, encoding);
    }
}

}  // namespace
}  // namespace candor::webgpu::testing
