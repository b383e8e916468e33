#include "webgpu/kernel_program.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "backends/webgpu/backend.h"
#include "base/checked.h"
#include "base/error.h"
#include "formats/quant/codec.h"

namespace candor::webgpu::testing {

Backend* device() {
  static const std::unique_ptr<Backend> backend = []() -> std::unique_ptr<Backend> {
    const char* adapter = std::getenv("CANDOR_WEBGPU_ADAPTER");
    try {
      return make_webgpu_backend({.library = {}, .adapter = adapter != nullptr ? adapter : "", .self_test = false});
    } catch (const Error& error) {
      if (std::getenv("CANDOR_REQUIRE_WEBGPU") != nullptr) throw;
      return nullptr;
    }
  }();
  return backend.get();
}

Matrix random_matrix(std::mt19937_64& random, std::uint32_t rows, std::uint32_t cols, float scale) {
  std::normal_distribution<float> normal(0, scale);
  Matrix out{rows, cols, std::vector<float>(std::size_t{rows} * cols)};
  for (float& x : out.values) x = normal(random);
  return out;
}

StoredMatrix stored(const Matrix& matrix, Encoding encoding) {
  StoredMatrix out{encoding, matrix.rows, matrix.cols};
  const std::uint64_t row = padded_row_bytes(encoding, matrix.cols);
  out.bytes.resize(row * matrix.rows);
  quantize(encoding, matrix.values.data(), out.bytes.data(), matrix.rows, matrix.cols);
  out.values.resize(matrix.values.size());
  for (std::uint32_t r = 0; r < matrix.rows; ++r)
    dequantize(encoding, out.bytes.data() + r * row, out.values.data() + std::size_t{r} * matrix.cols, matrix.cols);
  return out;
}

KernelProgram::KernelProgram(std::uint32_t rows, ProgramLimits limits) : rows_(rows) {
  limits.rows = std::max(limits.rows, rows);
  limits.sequences = std::max(limits.sequences, rows);
  limits.context = std::max(limits.context, 64u);
  limits.page_positions = limits.page_positions == 0 ? 64 : limits.page_positions;
  limits.pages = std::max(limits.pages, 1u);
  program_.backend = "webgpu";
  program_.limits = limits;
}

std::uint32_t KernelProgram::add_value(std::uint32_t cols, Encoding encoding, kernels::RowKind rows) {
  auto& phase = program_.phases[0];
  ProgramValue value;
  value.slot = fmt::format("v{}", phase.values.size());
  value.encoding = encoding;
  value.rows = rows;
  value.cols = cols;
  value.row_bytes = checked_align(encoded_bytes(encoding, cols, value.slot), 64, value.slot);
  value.buffer = static_cast<std::uint32_t>(program_.slot_buffers.size());
  program_.slot_buffers.push_back(value.row_bytes * program_.limits.rows);
  phase.values.push_back(std::move(value));
  return static_cast<std::uint32_t>(phase.values.size() - 1);
}

std::uint32_t KernelProgram::add_weight(const StoredMatrix& weight, const Instruction& user) {
  ProgramWeight entry;
  entry.tensor = fmt::format("w{}", weights_.size());
  entry.encoding = weight.encoding;
  entry.rows = weight.rows;
  entry.cols = weight.cols;
  const WeightLayout layout = device()->weight_layout(user, weight.encoding, weight.rows, weight.cols);
  entry.layout = layout.name;
  entry.bytes = layout.bytes;
  program_.weights.push_back(std::move(entry));
  weights_.push_back(weight);
  return static_cast<std::uint32_t>(weights_.size() - 1);
}

std::uint32_t KernelProgram::input(const Matrix& matrix) {
  Instruction gather;
  gather.step = fmt::format("input{}", program_.phases[0].instructions.size());
  gather.kernel = "webgpu/weights.wgsl";
  gather.entry = "gather";
  gather.operation = "gather";
  gather.operands.push_back({true, ExternalInput::tokens, 0});
  gather.constants = {{1.0}, {0, 1}};
  gather.weights.push_back(add_weight(stored(matrix, Encoding::f32), gather));
  gather.result = add_value(matrix.cols, Encoding::f32, kernels::RowKind::tokens);
  program_.phases[0].instructions.push_back(gather);
  return gather.result;
}

std::uint32_t KernelProgram::step(const Step& step) {
  Instruction instruction;
  instruction.step = step.operation;
  instruction.kernel = step.kernel;
  instruction.entry = step.entry;
  instruction.operation = step.operation;
  for (const std::uint32_t operand : step.operands)
    instruction.operands.push_back({false, ExternalInput::tokens, operand});
  if (step.operation == "sample") instruction.operands.push_back({true, ExternalInput::sampler, 0});
  if (step.reads_positions) instruction.operands.push_back({true, ExternalInput::positions, 0});
  instruction.constants.begin.push_back(0);
  for (const auto& constant : step.constants) {
    instruction.constants.values.insert(instruction.constants.values.end(), constant.begin(), constant.end());
    instruction.constants.begin.push_back(static_cast<std::uint32_t>(instruction.constants.values.size()));
  }
  for (const StoredMatrix& weight : step.weights) instruction.weights.push_back(add_weight(weight, instruction));
  instruction.kv = step.kv;
  if (step.kv >= 0) {
    ProgramKv& cache = program_.kv[static_cast<std::size_t>(step.kv)];
    cache.page_bytes = device()->kv_page_bytes(instruction, program_.limits.page_positions, cache.encoding);
  }
  instruction.result = add_value(step.cols, step.encoding, step.rows);
  program_.phases[0].instructions.push_back(instruction);
  return instruction.result;
}

std::int32_t KernelProgram::cache(std::uint64_t kv_heads, std::uint64_t head_dim, Encoding encoding, const Step&) {
  program_.kv.push_back({0, kv_heads, head_dim, 0, encoding, 0});
  return static_cast<std::int32_t>(program_.kv.size() - 1);
}

void KernelProgram::load() {
  std::size_t next = 0;
  device()->load(
      program_, [&](const ProgramWeight&) { return std::span<const std::byte>(weights_[next++].bytes); },
      [](std::uint64_t) {});
}

void KernelProgram::run(std::vector<Segment> segments, std::uint32_t first_token) {
  std::vector<std::uint32_t> pages(program_.limits.pages);
  std::iota(pages.begin(), pages.end(), 0u);
  if (segments.empty()) segments.push_back({.rows = rows_, .kv_pages = pages.data()});
  std::vector<std::uint32_t> tokens, positions;
  for (const Segment& segment : segments)
    for (std::uint32_t r = 0; r < segment.rows; ++r) {
      tokens.push_back(first_token + static_cast<std::uint32_t>(tokens.size()));
      positions.push_back(segment.first_position + r);
    }
  const Batch batch{tokens, positions, segments};
  device()->run(Phase::prefill, batch, nullptr);
}

std::vector<float> KernelProgram::floats(std::uint32_t value) const {
  std::vector<float> out(std::size_t{device()->value_rows(Phase::prefill, value)} *
                         program_.phases[0].values[value].cols);
  device()->read_value(Phase::prefill, value, std::as_writable_bytes(std::span(out)));
  return out;
}

std::vector<std::uint32_t> KernelProgram::integers(std::uint32_t value) const {
  std::vector<std::uint32_t> out(std::size_t{device()->value_rows(Phase::prefill, value)} *
                                 program_.phases[0].values[value].cols);
  device()->read_value(Phase::prefill, value, std::as_writable_bytes(std::span(out)));
  return out;
}

ErrorStatistics errors(const std::vector<double>& wanted, const std::vector<float>& got) {
  if (wanted.size() != got.size()) throw std::logic_error("as many results as wanted ones");
  double squares = 0;
  for (const double x : wanted) squares += x * x;
  const double scale = std::max(std::sqrt(squares / static_cast<double>(wanted.size())), 1e-30);
  ErrorStatistics statistics;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double error = std::abs(wanted[i] - double{got[i]}) / scale;
    if (!(error <= statistics.max)) statistics.max = error;
    statistics.mean += error / static_cast<double>(wanted.size());
  }
  return statistics;
}

}  // namespace candor::webgpu::testing
