#include "backends/webgpu/backend.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "backends/webgpu/batch_block.h"
#include "backends/webgpu/bound_kernel.h"
#include "backends/webgpu/device.h"
#include "backends/webgpu/packed_weight.h"
#include "base/checked.h"
#include "base/error.h"
#include "kernels/registry.h"

namespace candor::webgpu {
namespace {

constexpr std::string_view kLayout = "webgpu";
constexpr std::uint64_t kUnitBytes = 16;
constexpr std::uint64_t kMostHeadColumns = 512;
constexpr std::uint32_t kMostChained = 64;  ///< tokens a submission

class WebGpuBackend final : public Backend {
 public:
  explicit WebGpuBackend(Adapter adapter) : adapter_(std::move(adapter)) {}

  [[nodiscard]] std::string_view name() const override { return "webgpu"; }

  [[nodiscard]] Json describe() const override {
    Json out{{"backend", "webgpu"}};
    out.update(device_ ? device_->adapter().describe() : adapter_->describe());
    return out;
  }

  [[nodiscard]] bool has_feature(std::string_view feature) const override {
    return (device_ ? device_->adapter() : *adapter_).features().contains(std::string(feature));
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
      return checked_align(checked_mul(user.constants.integer(0) * 4, positions, "convolution's cache"), kUnitBytes,
                           "convolution's cache");
    if (user.constants.integer(2) > kMostHeadColumns)
      fail(ErrorCode::plan, "step \"{}\": kernel {}#{} has room for heads of {} columns, not {}", user.step,
           user.kernel, user.entry, kMostHeadColumns, user.constants.integer(2));
    const std::uint64_t heads = user.constants.integer(1);
    const std::uint64_t elements = encoding == Encoding::f16 ? 8 : 4;
    const std::uint64_t units = (user.constants.integer(2) + elements - 1) / elements;
    return checked_mul(checked_mul(2 * heads, units * kUnitBytes, "KV cache"), positions, "KV cache");
  }

  [[nodiscard]] std::uint64_t scratch_bytes(const Instruction& instruction, std::uint32_t, std::uint32_t,
                                            const ProgramLimits&) const override {
    (void)kernel_entry(instruction);
    return 0;
  }

  void load(Program program, const WeightSource& weights, const std::function<void(std::uint64_t)>& progress) override {
    program_ = std::move(program);
    if (!device_) device_ = std::make_unique<Device>(*std::exchange(adapter_, std::nullopt), wanted_features());
    for (auto& bound : bound_) bound.clear();
    block_.emplace(program_.limits);
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
    rows_ = {rows, sequences};
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

  [[nodiscard]] std::uint32_t chained_runs() const override { return chained_; }

  std::vector<std::uint32_t> run_chained(std::span<const Batch> batches, std::uint32_t sampled) override {
    const auto sequences = static_cast<std::uint32_t>(batches.front().segments.size());
    const ProgramValue& result = program_.phase(Phase::decode).values.at(sampled);
    rows_ = {sequences, sequences};
    for (std::size_t i = 0; i < batches.size(); ++i) {
      block_->encode(batches[i], batch_words_);
      device_->write(batch_, i * block_->bytes(), std::as_bytes(std::span(batch_words_)));
    }
    const auto& bound = bound_[static_cast<std::size_t>(Phase::decode)];
    device_->doing(fmt::format("decoding {} tokens", batches.size()));
    Commands commands(*device_);
    for (std::uint64_t i = 0; i < batches.size(); ++i) {
      for (const BoundKernel& kernel : bound)
        kernel.record(commands, rows_, static_cast<std::uint32_t>(i * block_->bytes()));
      for (std::uint64_t row = 0; row < sequences; ++row) {
        const std::uint64_t from = row * result.row_bytes;
        commands.copy(slots_[result.buffer], from, ring_, (i * sequences + row) * 4, 4);
        if (i + 1 < batches.size())
          commands.copy(slots_[result.buffer], from, batch_,
                        (i + 1) * block_->bytes() + block_->offset_of(ExternalInput::tokens) + row * 4, 4);
      }
    }
    commands.submit();
    std::vector<std::uint32_t> tokens(batches.size() * sequences);
    device_->read(ring_, 0, std::as_writable_bytes(std::span(tokens)));
    return tokens;
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
    return rows_[static_cast<std::size_t>(program_.phase(phase).values.at(value).rows)];
  }

 private:
  struct PlacedWeight {
    const Buffer* buffer = nullptr;
    std::uint64_t offset = 0;
  };

  void submit(std::span<const BoundKernel> kernels) {
    device_->doing("step \"" + kernels.back().step() + "\"");
    Commands commands(*device_);
    for (const BoundKernel& kernel : kernels) kernel.record(commands, rows_, 0);
    commands.submit();
  }

  /// What the plan's kernels require, as the registry says.
  [[nodiscard]] std::set<std::string> wanted_features() const {
    std::set<std::string> features;
    for (const ProgramPhase& phase : program_.phases)
      for (const Instruction& instruction : phase.instructions)
        if (const auto* variant = kernels::builtin_registry().find(instruction.kernel, instruction.entry))
          features.insert(variant->required_features.begin(), variant->required_features.end());
    return features;
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
    ring_ = device_->storage(std::uint64_t{chained_} * program_.limits.sequences * 4, "tokens");
    std::uint64_t instructions = 0;
    for (const ProgramPhase& phase : program_.phases) instructions += phase.instructions.size();
    uniforms_ = device_->uniforms(instructions * kParameterBytes, "constants");
    device_->doing("memory for weights");
    place_weights();
  }

  /// The weights of one operand that has several (experts) lie in one buffer; every other has one of its own.
  void place_weights() {
    weight_buffers_.clear();
    weights_.assign(program_.weights.size(), {});
    std::vector<std::vector<std::uint32_t>> groups;
    for (const ProgramPhase& phase : program_.phases)
      for (const Instruction& instruction : phase.instructions) {
        const auto* operation = kernels::builtin_registry().find_operation(instruction.operation);
        const bool together = operation && operation->raw.contains("weights") && operation->raw["weights"].size() == 1;
        if (together) groups.push_back(instruction.weights);
        if (!together)
          for (const std::uint32_t weight : instruction.weights) groups.push_back({weight});
      }
    std::map<std::uint32_t, std::size_t> placed;  // by the first weight: how many
    for (const auto& group : groups) {
      if (group.empty()) continue;
      std::uint64_t bytes = 0;
      for (const std::uint32_t weight : group) bytes = checked_add(bytes, program_.weights[weight].bytes, "weights");
      if (const auto found = placed.find(group.front()); found != placed.end()) {
        if (found->second == group.size()) continue;
        fail(ErrorCode::plan, "tensor {} is a weight of its own and one of several, which this backend cannot lay out",
             program_.weights[group.front()].tensor);
      }
      placed.emplace(group.front(), group.size());
      auto& buffer = weight_buffers_.emplace_back(
          std::make_unique<Buffer>(device_->storage(bytes, program_.weights[group.front()].tensor)));
      std::uint64_t offset = 0;
      for (const std::uint32_t weight : group) {
        if (weights_[weight].buffer)
          fail(ErrorCode::plan,
               "tensor {} is a weight of several steps in other company, which this backend cannot "
               "lay out",
               program_.weights[weight].tensor);
        weights_[weight] = {buffer.get(), offset};
        offset += program_.weights[weight].bytes;
      }
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
    places.weights = [this](std::uint32_t weight, std::size_t count) {
      return BufferRange{weights_[weight].buffer, weights_[weight].offset, program_.weights[weight].bytes * count};
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
    auto& out = bound_[static_cast<std::size_t>(phase)];
    out.clear();
    std::size_t index = phase == Phase::prefill ? 0 : program_.phase(Phase::prefill).instructions.size();
    for (const Instruction& instruction : program_.phase(phase).instructions) {
      device_->doing(fmt::format("step \"{}\", kernel {}#{}", instruction.step, instruction.kernel, instruction.entry));
      out.emplace_back(*device_, program_, phase, instruction, index++, *block_, places);
    }
  }

  std::optional<Adapter> adapter_;  // until there is a device
  std::unique_ptr<Device> device_;
  Program program_;
  std::optional<BatchBlock> block_;
  std::vector<std::uint32_t> batch_words_;
  Buffer batch_, uniforms_, ring_;
  std::uint32_t chained_ = 1;
  std::vector<Buffer> slots_, kv_;
  std::vector<std::unique_ptr<Buffer>> weight_buffers_;
  std::vector<PlacedWeight> weights_;
  std::map<std::vector<float>, std::unique_ptr<Buffer>> lists_;
  std::array<std::vector<BoundKernel>, 2> bound_;
  std::array<std::uint32_t, 2> rows_{};  // of the last run, by RowKind
};

}  // namespace

std::unique_ptr<Backend> make_webgpu_backend(const WebGpuOptions& options) {
  const auto library = std::make_shared<const Library>(options.library);
  return std::make_unique<WebGpuBackend>(choose_adapter(library, options.adapter));
}

}  // namespace candor::webgpu
