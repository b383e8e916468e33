// Running one kernel in a test: slots with guarded padding, weights, constants, a batch, and error statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/kernel.h"

namespace candor::cpu::testing {

/// Zeroed memory that starts at a multiple of 64 bytes.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t size = 0);
  [[nodiscard]] std::byte* data() const { return start_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::unique_ptr<std::byte[]> owner_;
  std::byte* start_ = nullptr;
  std::size_t size_ = 0;
};

/// A matrix in memory of its own. Rows are padded with a pattern that kernels must leave alone.
class Slot {
 public:
  Slot(std::uint32_t rows, std::uint32_t cols, Encoding encoding = Encoding::f32);

  [[nodiscard]] Matrix view() const { return matrix_; }
  [[nodiscard]] std::uint32_t rows() const { return matrix_.rows; }
  [[nodiscard]] std::uint32_t cols() const { return matrix_.cols; }
  template <typename T = float>
  [[nodiscard]] std::span<T> row(std::uint32_t r) const {
    return {reinterpret_cast<T*>(matrix_.data + r * matrix_.row_bytes), matrix_.cols};
  }
  [[nodiscard]] std::span<const std::byte> row_bytes(std::uint32_t r) const;
  /// The content without padding, row after row.
  [[nodiscard]] std::vector<std::byte> content() const;
  [[nodiscard]] bool padding_intact() const;
  void fill(std::mt19937_64& random, float scale = 1);

 private:
  AlignedBytes bytes_;
  Matrix matrix_;
  std::uint64_t used_ = 0;  // bytes of a row that hold elements
};

/// A vector or matrix of weights as a file stores it.
struct StoredWeight {
  std::vector<std::byte> bytes = {};
  std::uint64_t rows = 1;
  std::uint64_t cols = 0;
  Encoding encoding = Encoding::f32;
  std::vector<double> values = {};  ///< what the bytes mean, row after row
};

/// Random values rounded to a plain encoding (f32, f16, bf16).
[[nodiscard]] StoredWeight plain_weight(std::mt19937_64& random, std::uint64_t rows, std::uint64_t cols,
                                        Encoding encoding, float scale = 1);

/// One call, put together piece by piece. What it refers to must outlive it.
struct KernelCall {
  std::string_view file;
  std::string_view entry = "main";
  std::vector<const Slot*> inputs = {};
  std::vector<const StoredWeight*> weights = {};
  std::vector<std::vector<double>> constants = {};
  Batch batch{};
  const KvCache* kv = nullptr;
  std::uint32_t context = 4096;

  /// Runs into `dst`, which may be one of the inputs. Weights are packed by the kernel first. Fails the test if the
  /// kernel wrote beyond its rows or its scratch memory.
  void run(Isa isa, unsigned threads, const Slot& dst) const;
};

[[nodiscard]] ThreadPool& pool(unsigned threads);

/// Errors in units of the result's scale, the root mean square of what is wanted.
struct ErrorStatistics {
  double max = 0;
  double mean = 0;
};
[[nodiscard]] ErrorStatistics errors(std::span<const double> wanted, std::span<const float> got);

/// All rows of an f32 slot, one after the other.
[[nodiscard]] std::vector<float> values(const Slot& slot);

/// Runs `call` on every instruction set this processor has with 1, 2 and 3 threads, into slots of the given shape, and
/// fails the test unless all have the same bits. Returns the result.
[[nodiscard]] Slot run_everywhere(const KernelCall& call, std::uint32_t rows, std::uint32_t cols,
                                  Encoding encoding = Encoding::f32);

}  // namespace candor::cpu::testing
