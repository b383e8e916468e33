// Memory and calls for measuring kernels: slots, weights of random bytes, and a kernel call that is put together once
// and run many times.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "base/checked.h"
#include "kernels/cpu/kernel.h"

namespace candor::cli {

using cpu::KvCache;
using cpu::Matrix;

/// Zeroed memory at a multiple of 64 bytes.
class Bytes {
 public:
  explicit Bytes(std::uint64_t size)
      : data_(static_cast<std::byte*>(std::aligned_alloc(64, (size + 63) / 64 * 64 + 64))) {
    if (data_ == nullptr) fail(ErrorCode::resource, "{} bytes of memory are not to be had", size);
    std::memset(data_.get(), 0, size);
  }
  [[nodiscard]] std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

/// Bytes 0 … 55, so that every f16, bf16 and f32 made of them is a finite number.
inline Bytes random_bytes(std::uint64_t size, std::mt19937_64& random) {
  Bytes bytes(size);
  for (std::uint64_t i = 0; i < size; i += 8) {
    const std::uint64_t word = random() & 0x3737373737373737;
    std::memcpy(bytes.data() + i, &word, std::min<std::uint64_t>(8, size - i));
  }
  return bytes;
}

class Slot {
 public:
  Slot(std::uint32_t rows, std::uint32_t cols, Encoding encoding = Encoding::f32)
      : row_bytes_(checked_align(encoded_bytes(encoding, cols, "slot"), 64, "slot")),
        bytes_(row_bytes_ * rows),
        matrix_{bytes_.data(), rows, cols, row_bytes_, encoding} {}

  [[nodiscard]] Matrix view() const { return matrix_; }
  void fill(std::mt19937_64& random) {
    std::normal_distribution<float> normal;
    for (std::uint32_t r = 0; r < matrix_.rows; ++r)
      for (std::uint32_t c = 0; c < matrix_.cols; ++c)
        reinterpret_cast<float*>(matrix_.data + r * row_bytes_)[c] = normal(random);
  }

 private:
  std::uint64_t row_bytes_;
  Bytes bytes_;
  Matrix matrix_;
};

class Call {
 public:
  Call(const cpu::Kernel& kernel, ThreadPool& pool) : kernel_(kernel), pool_(pool) {}

  std::vector<Matrix> inputs;
  std::vector<cpu::Weight> weights;
  std::vector<std::vector<double>> constants;
  Batch batch;
  const KvCache* kv = nullptr;
  std::uint32_t context = 0;

  std::uint64_t kv_page_bytes(std::uint32_t positions, Encoding encoding) {
    return kernel_.kv_page_bytes(positions, encoding, flat_constants());
  }

  void run(const Slot& dst) {
    if (!scratch_) prepare(dst);
    cpu::KernelArguments arguments;
    arguments.dst = dst.view();
    arguments.inputs = inputs;
    arguments.weights = weights;
    arguments.constants = {values_, begin_};
    arguments.batch = &batch;
    arguments.kv = kv;
    arguments.scratch = {scratch_->data(), scratch_size_};
    arguments.pool = &pool_;
    kernel_.run(arguments);
  }

 private:
  cpu::Constants flat_constants() {
    values_.clear();
    begin_.assign(1, 0);
    for (const auto& constant : constants) {
      values_.insert(values_.end(), constant.begin(), constant.end());
      begin_.push_back(static_cast<std::uint32_t>(values_.size()));
    }
    return {values_, begin_};
  }

  void prepare(const Slot& dst) {
    cpu::KernelShapes shapes;
    shapes.rows = dst.view().rows;
    shapes.src_cols = inputs.empty() ? 0 : inputs[0].cols;
    shapes.dst_cols = dst.view().cols;
    shapes.context = context;
    shapes.threads = pool_.size();
    const cpu::Constants flat = flat_constants();
    scratch_size_ = kernel_.scratch_bytes ? kernel_.scratch_bytes(shapes, flat) : 0;
    scratch_ = std::make_unique<Bytes>(scratch_size_);
  }

  const cpu::Kernel& kernel_;
  ThreadPool& pool_;
  std::vector<double> values_;
  std::vector<std::uint32_t> begin_;
  std::unique_ptr<Bytes> scratch_;
  std::uint64_t scratch_size_ = 0;
};

}  // namespace candor::cli
