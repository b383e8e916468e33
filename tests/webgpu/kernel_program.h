// Running one kernel on the device in a test, through the backend alone: a Program whose inputs are rows gathered from
// tables, so that what a kernel reads is what the test put there.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/backend.h"

namespace candor::webgpu::testing {

/// The device of all tests, or null where there is none and CANDOR_REQUIRE_WEBGPU is not set. CANDOR_WEBGPU_ADAPTER
/// names an adapter.
[[nodiscard]] Backend* device();

#define SKIP_WITHOUT_DEVICE() \
  if (::candor::webgpu::testing::device() == nullptr) GTEST_SKIP() << "no WebGPU library or no adapter here"

/// The encodings that weights may have: plain numbers, and blocks.
inline const std::vector<Encoding> kPlain{Encoding::f32, Encoding::f16, Encoding::bf16};
inline const std::vector<Encoding> kBlocks{Encoding::q8_0, Encoding::q4_0, Encoding::q4_k, Encoding::q5_k,
                                           Encoding::q6_k};

/// Row-major numbers.
struct Matrix {
  std::uint32_t rows = 0, cols = 0;
  std::vector<float> values;

  [[nodiscard]] float at(std::uint32_t r, std::uint32_t c) const { return values[std::size_t{r} * cols + c]; }
};

[[nodiscard]] Matrix random_matrix(std::mt19937_64& random, std::uint32_t rows, std::uint32_t cols, float scale = 1);

/// A weight as a file stores it, and what its bytes mean.
struct StoredMatrix {
  Encoding encoding = Encoding::f32;
  std::uint64_t rows = 1, cols = 0;
  std::vector<std::byte> bytes = {};
  std::vector<float> values = {};
};
[[nodiscard]] StoredMatrix stored(const Matrix& matrix, Encoding encoding);

class KernelProgram {
 public:
  /// `rows`: of the batch.
  explicit KernelProgram(std::uint32_t rows, ProgramLimits limits = {});

  /// A slot that holds the matrix; one row a token.
  std::uint32_t input(const Matrix& matrix);

  struct Step {
    std::string kernel = {}, entry = {}, operation = {};
    std::vector<std::uint32_t> operands = {};
    std::vector<StoredMatrix> weights = {};
    std::vector<std::vector<double>> constants = {};
    std::uint32_t cols = 0;  ///< of the result
    Encoding encoding = Encoding::f32;
    kernels::RowKind rows = kernels::RowKind::tokens;
    std::int32_t kv = -1;
    bool reads_positions = false;
  };
  std::uint32_t step(const Step& step);
  std::int32_t cache(std::uint64_t kv_heads, std::uint64_t head_dim, Encoding encoding, const Step& user);

  /// Computes all rows as one batch: one sequence from position 0, or as `segments` say.
  void load();
  void run(std::vector<Segment> segments = {}, std::uint32_t first_token = 0);
  [[nodiscard]] std::vector<float> floats(std::uint32_t value) const;
  [[nodiscard]] std::vector<std::uint32_t> integers(std::uint32_t value) const;

 private:
  [[nodiscard]] std::uint32_t add_value(std::uint32_t cols, Encoding encoding, kernels::RowKind rows);
  [[nodiscard]] std::uint32_t add_weight(const StoredMatrix& weight, const Instruction& user);

  std::uint32_t rows_;
  Program program_;
  std::vector<StoredMatrix> weights_;
};

/// Errors in units of the root mean square of what is wanted.
struct ErrorStatistics {
  double max = 0;
  double mean = 0;
};
[[nodiscard]] ErrorStatistics errors(const std::vector<double>& wanted, const std::vector<float>& got);

}  // namespace candor::webgpu::testing
