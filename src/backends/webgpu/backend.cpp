#include "backends/webgpu/backend.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "backends/webgpu/batch_block.h"
#include "backends/webgpu/bound_kernel.h"
#include "backends/webgpu/device.h"
#include "backends/webgpu/packed_weight.h"
#include "backends/webgpu/requirements.h"
#include "backends/webgpu/self_test.h"
#include "base/checked.h"
#include "base/error.h"
#include "kernels/registry.h"

namespace candor::webgpu {
namespace {

constexpr std::string_view kLayout = "webgpu";
constexpr std::uint64_t kUnitBytes = 16;
constexpr std::uint64_t kMostHeadColumns = 512;
constexpr std::uint32_t kMostChained = 64;  ///< tokens a submission
constexpr const char* kTimestamps = "timestamp-query";
constexpr std::size_t kTimedAtOnce = 1024;  ///< steps; a query set holds 4096 times

/// A constant of the instruction's operation.
std::uint64_t constant(const Instruction& instruction, std::string_view name) {
  const auto* operation = kernels::builtin_registry().find_operation(instruction.operation);
  return instruction.constants.integer(kernels::parse_operation(instruction.operation, operation->raw).constant(name));
}

BatchFacts facts_of(const Batch& batch) {
  BatchFacts facts;
  facts.rows = {static_cast<std::uint32_t>(batch.tokens.size()), static_cast<std::uint32_t>(batch.segments.size())};
  for (const Segment& segment : batch.segments) facts.end = std::max(facts.end, segment.first_position + segment.rows);
  return facts;
}

class WebGpuBackend final : public Backend {
 public:
  explicit WebGpuBackend(const WebGpuOptions& options)
      : options_(options),
        adapter_(choose_adapter(std::make_shared<const Library>(options.library), options.adapter)) {}

  [[nodiscard]] std::string_view name() const override { return "webgpu"; }

  [[nodiscard]] Json describe() const override {
    Json out{{"backend", "webgpu"}};
    out.update(adapter_.describe());
    return out;
  }

  [[nodiscard]] bool has_feature(std::string_view feature) const override {
    return adapter_.features().contains(std::string(feature));
  }

  [[nodiscard]] std::optional<double> measure_copy() override { return copy_bandwidth(*device_); }
  [[nodiscard]] bool in_main_memory() const override { return false; }
  [[nodiscard]] bool separate_slots() const override { return true; }

  [[nodiscard]] WeightLayout weight_layout(const Instruction& user, Encoding encoding, std::uint64_t rows,
                                           std::uint64_t cols) const override {
    (void)kernel_entry(user);
    if (user.operation == "expert_matmul" && cols % 4 != 0)
      fail(ErrorCode::plan, "step \"{}\": kernel {}#{} reads experts' inputs four at a time, and {} are no multiple",
           user.step, user.kernel, user.entry, cols);
    return {std::string(kLayout), packed_bytes(encoding, rows, cols, "step \"" + user.step + "\"")};
  }

  /// Keys and values in units of 16 bytes a position; rows of a convolution as they are.
  [[nodiscard]] std::uint64_t kv_page_bytes(const Instruction& user, std::uint32_t positions,
                                            Encoding encoding) const override {
    (void)kernel_entry(user);
    if (user.operation == "short_conv")
      return checked_align(checked_mul(constant(user, "channels") * 4, positions, "convolution's cache"), kUnitBytes,
                           "convolution's cache");
    const std::uint64_t columns = constant(user, "headDim");
    if (columns > kMostHeadColumns)
      fail(ErrorCode::plan, "step \"{}\": kernel {}#{} has room for heads of {} columns, not {}", user.step,
           user.kernel, user.entry, kMostHeadColumns, columns);
    const std::uint64_t heads = constant(user, "kvHeads");
    const std::uint64_t elements = encoding == Encoding::f16 ? 8 : 4;
    const std::uint64_t units = (columns + elements - 1) / elements;
    return checked_mul(checked_mul(2 * heads, units * kUnitBytes, "KV cache"), positions, "KV cache");
  }

  [[nodiscard]] std::uint64_t scratch_bytes(const Instruction& instruction, std::uint32_t, std::uint32_t,
                                            const ProgramLimits& limits) const override {
    return scratch_of(instruction, limits);
  }

  void load(Program program, const WeightSource& weights, const std::function<void(std::uint64_t)>& progress) override {
    program_ = std::move(program);
    block_.emplace(program_.limits);
    want_device();
    if (options_.self_test) self_test(program_, adapter_, options_);
    for (auto& bound : bound_) bound.clear();
    batch_words_.resize(block_->bytes() / 4);
    allocate();
    load_weights(weights, progress);
    for (const Phase phase : {Phase::prefill, Phase::decode}) bind(phase);
    device_->wait();
  }

  void run(Phase phase, const Batch& batch, const InstructionObserver* observer) override {
    const auto rows = static_cast<std::uint32_t>(batch.tokens.size());
    const auto sequences = static_cast<std::uint32_t>(batch.segments.size());
    if (rows == 0 || rows > program_.limits.rows || sequences > program_.limits.sequences)
      fail(ErrorCode::internal, "a batch of {} rows and {} sequences exceeds the program's {} and {}", rows, sequences,
           program_.limits.rows, program_.limits.sequences);
    facts_ = facts_of(batch);
    block_->encode(batch, batch_words_);
    device_->write(batch_, 0, std::as_bytes(std::span(batch_words_)));
    const auto& bound = bound_[static_cast<std::size_t>(phase)];
    if (observer && *observer) {
      for (std::size_t i = 0; i < bound.size(); ++i) {
        submit(std::span(bound).subspan(i, 1));
        (*observer)(phase, i);
      }
    } else {
      submit(bound);
    }
  }

  [[nodiscard]] std::optional<std::vector<double>> step_seconds(Phase phase, const Batch& batch) override {
    if (!device_->requirements().features.contains(kTimestamps)) return std::nullopt;
    facts_ = facts_of(batch);
    block_->encode(batch, batch_words_);
    device_->write(batch_, 0, std::as_bytes(std::span(batch_words_)));
    const std::span<const BoundKernel> bound = bound_[static_cast<std::size_t>(phase)];
    std::vector<double> seconds;
    for (std::size_t first = 0; first < bound.size(); first += kTimedAtOnce) {
      const auto part = bound.subspan(first, std::min(kTimedAtOnce, bound.size() - first));
      device_->doing("timing step \"" + part.front().step() + "\"");
      const Timestamps timestamps(*device_, static_cast<std::uint32_t>(2 * part.size()));
      Commands commands(*device_);
      for (std::size_t i = 0; i < part.size(); ++i) {
        commands.time_next_pass(timestamps, static_cast<std::uint32_t>(2 * i));
        part[i].record(commands, facts_, 0);
      }
      commands.resolve(timestamps);
      commands.submit();
      std::vector<std::uint64_t> nanoseconds(2 * part.size());
      device_->read(timestamps.resolved(), 0, std::as_writable_bytes(std::span(nanoseconds)));
      for (std::size_t i = 0; i < part.size(); ++i)
        seconds.push_back(static_cast<double>(nanoseconds[2 * i + 1] - nanoseconds[2 * i]) * 1e-9);
    }
    return seconds;
  }

  [[nodiscard]] std::uint32_t chained_runs() const override { return chained_; }

  [[nodiscard]] bool overlaps_reads() const override { return true; }

  void submit_chained(std::span<const Batch> batches, std::uint32_t sampled, bool continued) override {
    const auto sequences = static_cast<std::uint32_t>(batches.front().segments.size());
    const ProgramValue& result = program_.phase(Phase::decode).values.at(sampled);
    facts_ = facts_of(batches.back());
    for (std::size_t i = 0; i < batches.size(); ++i) {
      block_->encode(batches[i], batch_words_);
      device_->write(batch_, i * block_->bytes(), std::as_bytes(std::span(batch_words_)));
    }
    const auto& bound = bound_[static_cast<std::size_t>(Phase::decode)];
    device_->doing(fmt::format("decoding {} tokens", batches.size()));
    Commands commands(*device_);
    const auto pass_on = [&](std::uint64_t batch) {
      for (std::uint64_t row = 0; row < sequences; ++row)
        commands.copy(slots_[result.buffer], row * result.row_bytes, batch_,
                      batch * block_->bytes() + block_->offset_of(ExternalInput::tokens) + row * 4, 4);
    };
    Readback flight = take_readback();
    if (continued) pass_on(0);
    for (std::uint64_t i = 0; i < batches.size(); ++i) {
      for (const BoundKernel& kernel : bound)
        kernel.record(commands, facts_of(batches[i]), static_cast<std::uint32_t>(i * block_->bytes()));
      for (std::uint64_t row = 0; row < sequences; ++row)
        commands.copy(slots_[result.buffer], row * result.row_bytes, flight.staging(), (i * sequences + row) * 4, 4);
      if (i + 1 < batches.size()) pass_on(i + 1);
    }
    commands.submit();
    flight.start(batches.size() * sequences * 4);
    flights_.push_back(std::move(flight));
  }

  std::vector<std::uint32_t> collect_chained() override {
    if (flights_.empty()) fail(ErrorCode::internal, "no tokens are being decoded");
    Readback flight = std::move(flights_.front());
    flights_.pop_front();
    std::vector<std::uint32_t> tokens(flight.bytes() / 4);
    flight.finish(std::as_writable_bytes(std::span(tokens)));
    idle_.push_back(std::move(flight));
    return tokens;
  }

  void copy_kv_page(std::uint32_t from, std::uint32_t to) override {
    device_->doing("copying a page of the KV cache");
    Commands commands(*device_);
    for (std::size_t i = 0; i < kv_.size(); ++i) {
      // A copy within one buffer is not allowed.
      const std::uint64_t bytes = program_.kv[i].page_bytes;
      if (page_.size() < bytes) page_ = device_->storage(bytes, "a page of the KV cache");
      commands.copy(kv_[i], from * bytes, page_, 0, bytes);
      commands.copy(page_, 0, kv_[i], to * bytes, bytes);
    }
    commands.submit();
  }

  void read_value(Phase phase, std::uint32_t value, std::span<std::byte> out) const override {
    const ProgramValue& entry = program_.phase(phase).values.at(value);
    const std::uint64_t dense = encoded_bytes(entry.encoding, entry.cols, entry.slot);
    const std::uint32_t rows = value_rows(phase, value);
    if (out.size() != dense * rows)
      fail(ErrorCode::internal, "slot {} holds {} bytes, not {}", entry.slot, dense * rows, out.size());
    std::vector<std::byte> padded(entry.row_bytes * rows);
    device_->read(slots_[entry.buffer], 0, padded);
    for (std::uint32_t row = 0; row < rows; ++row)
      std::memcpy(out.data() + row * dense, padded.data() + row * entry.row_bytes, dense);
  }

  [[nodiscard]] std::uint32_t value_rows(Phase phase, std::uint32_t value) const override {
    return facts_.rows[static_cast<std::size_t>(program_.phase(phase).values.at(value).rows)];
  }

 private:
  Readback take_readback() {
    if (idle_.empty()) return {*device_, std::uint64_t{chained_} * program_.limits.sequences * 4};
    Readback out = std::move(idle_.back());
    idle_.pop_back();
    return out;
  }

  struct PlacedWeight {
    const Buffer* buffer = nullptr;
    std::uint64_t offset = 0;
  };

  void submit(std::span<const BoundKernel> kernels) {
    device_->doing("step \"" + kernels.back().step() + "\"");
    Commands commands(*device_);
    for (const BoundKernel& kernel : kernels) kernel.record(commands, facts_, 0);
    commands.submit();
  }

  /// A device for what the Program needs; the one there is, if it was asked for as much.
  void want_device() {
    Requirements wanted = requirements_of(program_);
    const std::uint64_t batch = block_->bytes() * kMostChained;
    wanted.binding_bytes = std::max(wanted.binding_bytes, block_->bytes());
    wanted.buffer_bytes = std::max(wanted.buffer_bytes, batch);
    if (adapter_.features().contains(kTimestamps)) wanted.features.insert(kTimestamps);
    if (device_ && device_->requirements().cover(wanted)) return;
    check_adapter(program_, adapter_);
    release();
    device_ = std::make_unique<Device>(choose_adapter(adapter_.library(), options_.adapter), std::move(wanted));
  }

  void release() {
    for (auto& bound : bound_) bound.clear();
    flights_.clear();
    idle_.clear();
    lists_.clear();
    slots_.clear();
    kv_.clear();
    weight_buffers_.clear();
    for (Buffer* buffer : {&batch_, &uniforms_, &scratch_, &page_}) *buffer = Buffer();
  }

  /// Everything whose size the Program says, before anything is uploaded.
  void allocate() {
    device_->doing("memory for slots");
    slots_.clear();
    for (std::size_t i = 0; i < program_.slot_buffers.size(); ++i)
      slots_.push_back(device_->storage(program_.slot_buffers[i], fmt::format("slot buffer {}", i)));
    device_->doing("memory for the KV cache");
    kv_.clear();
    for (const ProgramKv& cache : program_.kv)
      kv_.push_back(device_->storage(checked_mul(cache.page_bytes, program_.limits.pages, "KV cache"),
                                     fmt::format("the KV cache of layer {}", cache.layer)));
    chained_ = std::min(program_.decode_loop.batch_size, kMostChained);
    batch_ = device_->storage(block_->bytes() * chained_, "the batch");
    flights_.clear();
    idle_.clear();
    page_ = Buffer();
    std::uint64_t instructions = 0;
    for (const ProgramPhase& phase : program_.phases) instructions += phase.instructions.size();
    uniforms_ = device_->uniforms(instructions * kParameterBytes, "constants");
    std::uint64_t scratch = 0;
    for (const ProgramPhase& phase : program_.phases)
      for (const Instruction& instruction : phase.instructions)
        scratch = std::max(scratch, scratch_of(instruction, program_.limits));
    scratch_ = device_->storage(scratch, "scratch");
    device_->doing("memory for weights");
    place_weights();
  }

  /// Matrices that kernels see as one binding (bound_kernel.h) lie in one buffer, one behind the other; every other
  /// weight has a buffer of its own.
  void place_weights() {
    weight_buffers_.clear();
    weights_.assign(program_.weights.size(), {});
    std::vector<std::vector<std::uint32_t>> groups;
    for (const ProgramPhase& phase : program_.phases)
      for (const Instruction& instruction : phase.instructions) {
        if (binds_weights_together(instruction)) {
          groups.push_back(instruction.weights);
        } else {
          for (const std::uint32_t weight : instruction.weights) groups.push_back({weight});
        }
      }
    // A weight that one step has in company and another alone lies in the company's buffer.
    std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
    for (const auto& group : groups)
      if (!group.empty() && !is_placed(group)) place_group(group);
  }

  /// Whether the weights lie one behind the other already.
  [[nodiscard]] bool is_placed(const std::vector<std::uint32_t>& group) const {
    const PlacedWeight& first = weights_[group.front()];
    std::uint64_t offset = first.offset;
    for (const std::uint32_t weight : group) {
      if (!weights_[weight].buffer || weights_[weight].buffer != first.buffer || weights_[weight].offset != offset)
        return false;
      offset += program_.weights[weight].bytes;
    }
    return true;
  }

  void place_group(const std::vector<std::uint32_t>& group) {
    std::uint64_t bytes = 0;
    for (const std::uint32_t weight : group) {
      if (weights_[weight].buffer)
        fail(ErrorCode::plan,
             "tensor {} is a weight of several steps in other company, which this backend cannot lay out",
             program_.weights[weight].tensor);
      bytes = checked_add(bytes, program_.weights[weight].bytes, "weights");
    }
    auto& buffer = weight_buffers_.emplace_back(
        std::make_unique<Buffer>(device_->storage(bytes, program_.weights[group.front()].tensor)));
    std::uint64_t offset = 0;
    for (const std::uint32_t weight : group) {
      weights_[weight] = {buffer.get(), offset};
      offset += program_.weights[weight].bytes;
    }
  }

  void load_weights(const WeightSource& source, const std::function<void(std::uint64_t)>& progress) {
    std::uint64_t done = 0;
    std::vector<std::byte> packed;
    for (std::size_t i = 0; i < program_.weights.size(); ++i) {
      const ProgramWeight& weight = program_.weights[i];
      device_->doing("uploading " + weight.tensor);
      std::span<const std::byte> bytes = source(weight);
      if (!is_stored_layout(weight.encoding, weight.cols) || bytes.size() % 4 != 0) {
        packed.assign(weight.bytes, std::byte{0});
        pack(weight.encoding, bytes, weight.rows, weight.cols, packed);
        bytes = packed;
      }
      device_->write(*weights_[i].buffer, weights_[i].offset, bytes);
      done += weight.bytes;
      if (progress) progress(done);
    }
  }

  void bind(Phase phase) {
    Places places;
    places.value = [this](const ProgramValue& value) {
      const std::uint32_t rows =
          value.rows == kernels::RowKind::tokens ? program_.limits.rows : program_.limits.sequences;
      return BufferRange{&slots_[value.buffer], 0, value.row_bytes * rows};
    };
    places.weights = [this](std::span<const std::uint32_t> weights) {
      std::uint64_t bytes = 0;
      for (const std::uint32_t weight : weights) bytes += program_.weights[weight].bytes;
      return BufferRange{weights_[weights.front()].buffer, weights_[weights.front()].offset, bytes};
    };
    places.kv = [this](std::int32_t kv) {
      const Buffer& buffer = kv_.at(static_cast<std::size_t>(kv));
      return BufferRange{&buffer, 0, buffer.size()};
    };
    places.list = [this](const std::vector<float>& values) {
      auto& buffer = lists_[values];
      if (!buffer) {
        buffer = std::make_unique<Buffer>(device_->storage(values.size() * sizeof(float), "a list of constants"));
        device_->write(*buffer, 0, std::as_bytes(std::span(values)));
      }
      return BufferRange{buffer.get(), 0, values.size() * sizeof(float)};
    };
    places.batch = &batch_;
    places.uniforms = &uniforms_;
    places.scratch = &scratch_;
    auto& out = bound_[static_cast<std::size_t>(phase)];
    out.clear();
    std::size_t index = phase == Phase::prefill ? 0 : program_.phase(Phase::prefill).instructions.size();
    for (const Instruction& instruction : program_.phase(phase).instructions) {
      device_->doing(fmt::format("step \"{}\", kernel {}#{}", instruction.step, instruction.kernel, instruction.entry));
      out.emplace_back(*device_, program_, phase, instruction, index++, *block_, places);
    }
  }

  WebGpuOptions options_;
  Adapter adapter_;
  std::unique_ptr<Device> device_;
  Program program_;
  std::optional<BatchBlock> block_;
  std::vector<std::uint32_t> batch_words_;
  Buffer batch_, uniforms_, scratch_, page_;
  std::deque<Readback> flights_;  // of decoded tokens, the oldest first
  std::vector<Readback> idle_;
  std::uint32_t chained_ = 1;
  std::vector<Buffer> slots_, kv_;
  std::vector<std::unique_ptr<Buffer>> weight_buffers_;
  std::vector<PlacedWeight> weights_;
  std::map<std::vector<float>, std::unique_ptr<Buffer>> lists_;
  std::array<std::vector<BoundKernel>, 2> bound_;
  BatchFacts facts_;  // of the last run
};

}  // namespace

std::unique_ptr<Backend> make_webgpu_backend(const WebGpuOptions& options) {
  return std::make_unique<WebGpuBackend>(options);
}

}  // namespace candor::webgpu
