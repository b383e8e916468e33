// webgpu_bench [ADAPTER]: what the WebGPU kernels reach on a device, beside what the device itself can do in the same
// run. Products with one row and with many, over real shapes; a device copy; and what one dispatch costs. Each time is
// the difference between a submission of many and one of few, so that submitting and reading back do not count; the
// best of several. Output: a line for each.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backends/webgpu/backend.h"
#include "base/checked.h"
#include "base/error.h"

namespace candor::webgpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 7;

/// A Program of `count` steps of one kernel that all read one input and write one result.
class Repeated {
 public:
  Repeated(Backend& backend, std::uint32_t rows, int count) : backend_(backend), rows_(rows), count_(count) {
    program_.backend = "webgpu";
    program_.limits = {.rows = rows, .sequences = 1, .context = 64, .page_positions = 64, .pages = 1};
  }

  void products(const std::string& entry, Encoding encoding, std::uint32_t k, std::uint32_t n) {
    const std::uint32_t src = input(k);
    Instruction step = instruction("matmul", "webgpu/weights.wgsl", entry);
    step.operands.push_back({false, ExternalInput::tokens, src});
    step.weights.push_back(weight(step, encoding, n, k));
    step.result = value(n);
    repeat(step);
  }

  void additions(std::uint32_t cols) {
    const std::uint32_t src = input(cols);
    // Each reads what the one before wrote.
    std::uint32_t last = src;
    const std::uint32_t spare[] = {value(cols), value(cols)};
    for (int i = 0; i < count_; ++i) {
      Instruction step = instruction("residual_add", "webgpu/elements.wgsl", "residual_add");
      step.operands = {{false, ExternalInput::tokens, last}, {false, ExternalInput::tokens, src}};
      step.result = spare[i % 2];
      last = step.result;
      program_.phases[0].instructions.push_back(step);
    }
  }

  void run() {
    if (!loaded_) {
      backend_.load(
          program_,
          [&](const ProgramWeight& weight) {
            const std::uint64_t bytes = encoded_bytes(weight.encoding, weight.cols, "weight") * weight.rows;
            zeros_.resize(std::max<std::size_t>(zeros_.size(), bytes));
            return std::span<const std::byte>(zeros_).first(bytes);
          },
          [](std::uint64_t) {});
      loaded_ = true;
    }
    std::vector<std::uint32_t> tokens(rows_), positions(rows_);
    for (std::uint32_t r = 0; r < rows_; ++r) positions[r] = r % 64;
    const std::uint32_t page = 0;
    const Segment segment{.rows = rows_, .kv_pages = &page};
    backend_.run(Phase::prefill, {tokens, positions, {&segment, 1}}, nullptr);
    std::vector<float> out(std::size_t{rows_} * program_.phases[0].values[0].cols);
    backend_.read_value(Phase::prefill, 0, std::as_writable_bytes(std::span(out)));
  }

 private:
  std::uint32_t value(std::uint32_t cols) {
    ProgramValue value;
    value.slot = "slot";
    value.cols = cols;
    value.row_bytes = checked_align(std::uint64_t{cols} * 4, 64, "slot");
    value.buffer = static_cast<std::uint32_t>(program_.slot_buffers.size());
    program_.slot_buffers.push_back(value.row_bytes * rows_);
    program_.phases[0].values.push_back(value);
    return static_cast<std::uint32_t>(program_.phases[0].values.size() - 1);
  }

  std::uint32_t weight(const Instruction& user, Encoding encoding, std::uint64_t rows, std::uint64_t cols) {
    ProgramWeight entry;
    entry.tensor = "weight";
    entry.encoding = encoding;
    entry.rows = rows;
    entry.cols = cols;
    const WeightLayout layout = backend_.weight_layout(user, encoding, rows, cols);
    entry.layout = layout.name;
    entry.bytes = layout.bytes;
    program_.weights.push_back(entry);
    return static_cast<std::uint32_t>(program_.weights.size() - 1);
  }

  static Instruction instruction(const std::string& operation, const std::string& kernel, const std::string& entry) {
    Instruction out;
    out.step = out.op = out.operation = operation;
    out.kernel = kernel;
    out.entry = entry;
    out.constants.begin.push_back(0);
    return out;
  }

  std::uint32_t input(std::uint32_t cols) {
    Instruction gather = instruction("gather", "webgpu/weights.wgsl", "gather");
    gather.operands.push_back({true, ExternalInput::tokens, 0});
    gather.constants = {{1.0}, {0, 1}};
    gather.weights.push_back(weight(gather, Encoding::f32, 1, cols));
    gather.result = value(cols);
    program_.phases[0].instructions.push_back(gather);
    return gather.result;
  }

  void repeat(const Instruction& step) {
    for (int i = 0; i < count_; ++i) program_.phases[0].instructions.push_back(step);
  }

  Backend& backend_;
  std::uint32_t rows_;
  int count_;
  Program program_;
  std::vector<std::byte> zeros_;
  bool loaded_ = false;
};

double product_seconds(Backend& backend, const std::string& entry, Encoding encoding, std::uint32_t m, std::uint32_t k,
                       std::uint32_t n, int few, int many) {
  double fewer = 1e30, more = 1e30;
  for (const int count : {few, many}) {
    Repeated repeated(backend, m, count);
    repeated.products(entry, encoding, k, n);
    repeated.run();
    for (int round = 0; round < kRounds; ++round) {
      const auto start = Clock::now();
      repeated.run();
      double& best = count == few ? fewer : more;
      best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
    }
  }
  return (more - fewer) / (many - few);
}

void measure(const std::string& adapter) {
  const auto backend = make_webgpu_backend({.library = {}, .adapter = adapter});
  std::printf("%s\n", backend->describe().dump().c_str());
  {
    double times[2] = {1e30, 1e30};
    for (const int which : {0, 1}) {
      Repeated repeated(*backend, 1, which == 0 ? 100 : 600);
      repeated.additions(4096);
      repeated.run();
      for (int round = 0; round < kRounds; ++round) {
        const auto start = Clock::now();
        repeated.run();
        times[which] = std::min(times[which], std::chrono::duration<double>(Clock::now() - start).count());
      }
    }
    std::printf("dependent dispatch: %.2f us; 100 of them, submitted and read back: %.1f us\n",
                (times[1] - times[0]) / 500 * 1e6, times[0] * 1e6);
  }
  std::printf("copy: %.1f GB/s read and written\n", backend->measure_copy().value_or(0) / 1e9);
  for (const Encoding encoding : {Encoding::f16, Encoding::q8_0, Encoding::q4_k, Encoding::q6_k})
    for (const auto& [n, k] : {std::pair{2048u, 2048u},
                               {5632u, 2048u},
                               {4096u, 4096u},
                               {14336u, 4096u},
                               {4096u, 14336u},
                               {16384u, 4096u},
                               {32000u, 2048u}}) {
      const double seconds = product_seconds(*backend, "gemv", encoding, 1, k, n, 50, 250);
      const double bytes = static_cast<double>(encoded_bytes(encoding, k, "weight")) * n;
      std::printf("gemv  %-5s %5u x %5u: %7.2f us %7.1f GB/s\n", std::string(to_string(encoding)).c_str(), n, k,
                  seconds * 1e6, bytes / seconds / 1e9);
    }
  for (const auto& [n, k] : {std::pair{2048u, 2048u}, {5632u, 2048u}, {2048u, 5632u}, {4096u, 4096u}}) {
    const double seconds = product_seconds(*backend, "tiled", Encoding::f16, 512, k, n, 10, 40);
    std::printf("tiled f16   512 x %5u x %5u: %7.1f us %6.2f TFLOP/s\n", n, k, seconds * 1e6,
                2.0 * 512 * n * k / seconds / 1e12);
  }
}

}  // namespace
}  // namespace candor::webgpu

int main(int argc, char** argv) {
  try {
    candor::webgpu::measure(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "webgpu_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
