#include "kernels/cpu/kernel_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "base/checked.h"
#include "formats/half.h"

namespace candor::cpu::testing {
namespace {

constexpr std::byte kPattern{0xa5};
constexpr std::size_t kGuard = 64;

KernelShapes shapes_of(const KernelCall& call, const Slot& dst, unsigned threads) {
  KernelShapes shapes;
  shapes.rows = std::max(dst.rows(), call.inputs.empty() ? 0 : call.inputs[0]->rows());
  shapes.src_cols = call.inputs.empty() ? 0 : call.inputs[0]->cols();
  shapes.dst_cols = dst.cols();
  shapes.context = call.context;
  shapes.threads = threads;
  return shapes;
}

}  // namespace

AlignedBytes::AlignedBytes(std::size_t size) : owner_(std::make_unique<std::byte[]>(size + 64)), size_(size) {
  const auto address = reinterpret_cast<std::uintptr_t>(owner_.get());
  start_ = owner_.get() + (64 - address % 64) % 64;
}

Slot::Slot(std::uint32_t rows, std::uint32_t cols, Encoding encoding) : used_(encoded_bytes(encoding, cols, "slot")) {
  const std::uint64_t row_bytes = checked_align(used_ + 1, 64, "slot row");  // at least one byte of padding
  bytes_ = AlignedBytes(row_bytes * rows);
  matrix_ = {bytes_.data(), rows, cols, row_bytes, encoding};
  std::memset(bytes_.data(), static_cast<int>(kPattern), bytes_.size());
}

std::span<const std::byte> Slot::row_bytes(std::uint32_t r) const {
  return {matrix_.data + r * matrix_.row_bytes, used_};
}

std::vector<std::byte> Slot::content() const {
  std::vector<std::byte> out;
  for (std::uint32_t r = 0; r < rows(); ++r) out.insert(out.end(), row_bytes(r).begin(), row_bytes(r).end());
  return out;
}

bool Slot::padding_intact() const {
  for (std::uint32_t r = 0; r < rows(); ++r) {
    const std::byte* row = matrix_.data + r * matrix_.row_bytes;
    if (!std::all_of(row + used_, row + matrix_.row_bytes, [](std::byte b) { return b == kPattern; })) return false;
  }
  return true;
}

void Slot::fill(std::mt19937_64& random, float scale) {
  std::normal_distribution<float> normal(0, scale);
  for (std::uint32_t r = 0; r < rows(); ++r)
    for (float& x : row(r)) x = normal(random);
}

StoredWeight plain_weight(std::mt19937_64& random, std::uint64_t rows, std::uint64_t cols, Encoding encoding,
                          float scale) {
  std::normal_distribution<float> normal(0, scale);
  StoredWeight weight;
  weight.rows = rows;
  weight.cols = cols;
  weight.encoding = encoding;
  const std::size_t size = info(encoding).block_bytes;
  weight.bytes.resize(rows * cols * size);
  for (std::uint64_t i = 0; i < rows * cols; ++i) {
    const float x = normal(random);
    std::byte* at = weight.bytes.data() + i * size;
    if (encoding == Encoding::f32) {
      std::memcpy(at, &x, size);
      weight.values.push_back(double{x});
    } else {
      const bool half = encoding == Encoding::f16;
      const std::uint16_t bits = half ? f32_to_f16(x) : f32_to_bf16(x);
      std::memcpy(at, &bits, size);
      weight.values.push_back(double{half ? f16_to_f32(bits) : bf16_to_f32(bits)});
    }
  }
  return weight;
}

void KernelCall::run(Isa isa, unsigned threads, const Slot& dst) const {
  const Kernel* kernel = find_kernel(isa, file, entry);
  ASSERT_NE(kernel, nullptr) << file << "#" << entry;

  std::vector<Matrix> matrices;
  for (const Slot* slot : inputs) matrices.push_back(slot->view());
  std::vector<AlignedBytes> packed;
  std::vector<Weight> operands;
  for (const StoredWeight* weight : weights) {
    const std::size_t bytes = kernel->pack ? kernel->packed_bytes(weight->rows, weight->cols) : weight->bytes.size();
    packed.emplace_back(bytes + kGuard);
    std::memset(packed.back().data() + bytes, static_cast<int>(kPattern), kGuard);
    if (kernel->pack) {
      kernel->pack(weight->bytes.data(), weight->rows, weight->cols, packed.back().data(), pool(threads));
    } else {
      std::memcpy(packed.back().data(), weight->bytes.data(), bytes);
    }
    for (std::size_t i = 0; i < kGuard; ++i) ASSERT_EQ(packed.back().data()[bytes + i], kPattern) << "packed weight";
    operands.push_back({packed.back().data(), weight->rows, weight->cols, weight->encoding});
  }
  std::vector<double> numbers;
  std::vector<std::uint32_t> begin{0};
  for (const auto& constant : constants) {
    numbers.insert(numbers.end(), constant.begin(), constant.end());
    begin.push_back(static_cast<std::uint32_t>(numbers.size()));
  }
  KernelArguments arguments;
  arguments.dst = dst.view();
  arguments.inputs = matrices;
  arguments.weights = operands;
  arguments.constants = {numbers, begin};
  arguments.batch = &batch;
  arguments.kv = kv;
  arguments.pool = &pool(threads);
  const std::size_t scratch_bytes =
      kernel->scratch_bytes ? kernel->scratch_bytes(shapes_of(*this, dst, threads), arguments.constants) : 0;
  const AlignedBytes scratch(scratch_bytes + kGuard);
  std::memset(scratch.data(), static_cast<int>(kPattern), scratch.size());
  arguments.scratch = {scratch.data(), scratch_bytes};
  kernel->run(arguments);
  for (std::size_t i = 0; i < kGuard; ++i) ASSERT_EQ(scratch.data()[scratch_bytes + i], kPattern) << "scratch memory";
  ASSERT_TRUE(dst.padding_intact());
}

ThreadPool& pool(unsigned threads) {
  static std::map<unsigned, std::unique_ptr<ThreadPool>> pools;
  auto& found = pools[threads];
  if (!found) found = std::make_unique<ThreadPool>(threads);
  return *found;
}

ErrorStatistics errors(std::span<const double> wanted, std::span<const float> got) {
  double squares = 0;
  for (const double x : wanted) squares += x * x;
  const double scale = std::sqrt(squares / static_cast<double>(wanted.size()));
  ErrorStatistics statistics;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double error = std::abs(wanted[i] - double{got[i]}) / (scale > 0 ? scale : 1);
    statistics.max = error > statistics.max || std::isnan(error) ? error : statistics.max;
    statistics.mean += error / static_cast<double>(wanted.size());
  }
  return statistics;
}

std::vector<float> values(const Slot& slot) {
  std::vector<float> out;
  for (std::uint32_t r = 0; r < slot.rows(); ++r) out.insert(out.end(), slot.row(r).begin(), slot.row(r).end());
  return out;
}

Slot run_everywhere(const KernelCall& call, std::uint32_t rows, std::uint32_t cols, Encoding encoding) {
  Slot first(rows, cols, encoding);
  call.run(available_isas().front(), 1, first);
  for (const Isa isa : available_isas()) {
    for (const unsigned threads : {1u, 2u, 3u}) {
      const Slot other(rows, cols, encoding);
      call.run(isa, threads, other);
      EXPECT_TRUE(first.content() == other.content())
          << call.file << " on " << to_string(isa) << " with " << threads << " threads";
    }
  }
  return first;
}

}  // namespace candor::cpu::testing
