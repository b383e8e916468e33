#include "backends/cpu/backend.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/memory.h"

namespace candor::cpu {
namespace {

/// An instruction with everything but the number of rows settled.
struct BoundInstruction {
  void (*run)(const KernelArguments&) = nullptr;
  Matrix dst;
  kernels::RowKind dst_rows = kernels::RowKind::tokens;
  std::vector<Matrix> inputs;
  std::vector<ProgramOperand> operands;
  std::vector<kernels::RowKind> input_rows;
  std::vector<Weight> weights;
  Constants constants;
  const KvCache* kv = nullptr;
};

Constants view(const kernels::ConstantBlock& block) {
  return {block.values, block.begin};
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options) : isa_(options.isa), pool_(options.threads) {}

  [[nodiscard]] std::string_view name() const override { return "cpu"; }

  [[nodiscard]] Json describe() const override {
    return {{"backend", "cpu"}, {"isa", to_string(isa_)}, {"threads", pool_.size()}};
  }

  /// Every CPU kernel runs on every instruction set, so there is nothing a kernel could require.
  [[nodiscard]] bool has_feature(std::string_view) const override { return false; }

  [[nodiscard]] WeightLayout weight_layout(const Instruction& user, Encoding encoding, std::uint64_t rows,
                                           std::uint64_t cols) const override {
    const Kernel& found = kernel(user);
    if (!found.packed_bytes) return {{}, rows * encoded_bytes(encoding, cols, user.step)};
    return {std::string(found.layout), found.packed_bytes(rows, cols)};
  }

  [[nodiscard]] std::uint64_t kv_page_bytes(const Instruction& attention, std::uint32_t positions,
                                            Encoding encoding) const override {
    const Kernel& found = kernel(attention);
    if (!found.kv_page_bytes)
      fail(ErrorCode::plan, "step \"{}\": kernel \"{}#{}\" keeps no KV cache", attention.step, attention.kernel,
           attention.entry);
    return found.kv_page_bytes(positions, encoding, view(attention.constants));
  }

  [[nodiscard]] std::uint64_t scratch_bytes(const Instruction& instruction, std::uint32_t src_cols,
                                            std::uint32_t dst_cols, const ProgramLimits& limits) const override {
    const Kernel& found = kernel(instruction);
    if (!found.scratch_bytes) return 0;
    return found.scratch_bytes({limits.rows, src_cols, dst_cols, limits.context, pool_.size()},
                               view(instruction.constants));
  }

  void load(Program program, const WeightSource& weights, const std::function<void(std::uint64_t)>& progress) override {
    program_ = std::move(program);
    arena_ = Memory(program_.arena_bytes, "slots");
    scratch_ = Memory(program_.scratch_bytes, "scratch");
    no_types_.assign(program_.limits.rows, 0);
    load_weights(weights, progress);
    kv_memory_.clear();
    kv_.clear();
    for (const ProgramKv& cache : program_.kv) {
      Memory& memory = kv_memory_.emplace_back(cache.page_bytes * program_.limits.pages, "KV cache");
      kv_.push_back({memory.data(), cache.page_bytes, program_.limits.page_positions, cache.encoding});
    }
    for (const Phase phase : {Phase::prefill, Phase::decode}) bind(phase);
  }

  void run(Phase phase, const Batch& batch, const InstructionObserver* observer) override {
    const auto rows = static_cast<std::uint32_t>(batch.tokens.size());
    const auto sequences = static_cast<std::uint32_t>(batch.segments.size());
    if (rows == 0 || rows > program_.limits.rows || sequences > program_.limits.sequences)
      fail(ErrorCode::internal, "a batch of {} rows and {} sequences exceeds the program's {} and {}", rows, sequences,
           program_.limits.rows, program_.limits.sequences);
    rows_ = {rows, sequences};
    auto& bound = bound_[static_cast<std::size_t>(phase)];
    for (std::size_t i = 0; i < bound.size(); ++i) {
      issue(bound[i], batch);
      if (observer && *observer) (*observer)(phase, i);
    }
  }

  void copy_kv_page(std::uint32_t from, std::uint32_t to) override {
    for (const KvCache& cache : kv_)
      std::memcpy(cache.data + to * cache.page_bytes, cache.data + from * cache.page_bytes, cache.page_bytes);
  }

  void read_value(Phase phase, std::uint32_t value, std::span<std::byte> out) const override {
    const ProgramValue& entry = program_.phase(phase).values.at(value);
    const std::uint64_t dense = encoded_bytes(entry.encoding, entry.cols, entry.slot);
    const std::uint32_t rows = value_rows(phase, value);
    if (out.size() != dense * rows)
      fail(ErrorCode::internal, "slot {} holds {} bytes, not {}", entry.slot, dense * rows, out.size());
    for (std::uint32_t row = 0; row < rows; ++row)
      std::memcpy(out.data() + row * dense, arena_.data() + entry.offset + row * entry.row_bytes, dense);
  }

  [[nodiscard]] std::uint32_t value_rows(Phase phase, std::uint32_t value) const override {
    return rows_[static_cast<std::size_t>(program_.phase(phase).values.at(value).rows)];
  }

 private:
  [[nodiscard]] const Kernel& kernel(const Instruction& instruction) const {
    return kernel(instruction.kernel, instruction.entry, instruction.step);
  }
  [[nodiscard]] const Kernel& kernel(std::string_view file, std::string_view entry, std::string_view step) const {
    const Kernel* found = find_kernel(isa_, file, entry);
    if (!found)
      fail(ErrorCode::plan, "step \"{}\": this build has no CPU kernel \"{}#{}\" for {}", step, file, entry,
           to_string(isa_));
    return *found;
  }

  void load_weights(const WeightSource& source, const std::function<void(std::uint64_t)>& progress) {
    weights_.clear();
    std::uint64_t total = 0;
    for (const ProgramWeight& weight : program_.weights)
      if (!weight.layout.empty()) total += (weight.bytes + 63) / 64 * 64;
    packed_ = Memory(total, "weights");
    std::uint64_t offset = 0;
    for (const ProgramWeight& weight : program_.weights) {
      const std::span<const std::byte> stored = source(weight);
      const std::byte* data = stored.data();
      if (!weight.layout.empty()) {
        std::byte* packed = packed_.data() + offset;
        kernel(weight.kernel, weight.entry, weight.tensor).pack(stored.data(), weight.rows, weight.cols, packed, pool_);
        offset += (weight.bytes + 63) / 64 * 64;
        data = packed;
      }
      weights_.push_back({data, weight.rows, weight.cols, weight.encoding});
      if (progress) progress(offset);
    }
  }

  void bind(Phase phase) {
    const ProgramPhase& source = program_.phase(phase);
    auto& out = bound_[static_cast<std::size_t>(phase)];
    out.clear();
    for (const Instruction& instruction : source.instructions) {
      BoundInstruction bound;
      bound.run = kernel(instruction).run;
      bound.dst = matrix(source.values[instruction.result]);
      bound.dst_rows = source.values[instruction.result].rows;
      for (const ProgramOperand& operand : instruction.operands) {
        bound.inputs.push_back(operand.is_external ? Matrix{} : matrix(source.values[operand.value]));
        bound.operands.push_back(operand);
        bound.input_rows.push_back(operand.is_external ? kernels::RowKind::tokens : source.values[operand.value].rows);
      }
      for (const std::uint32_t weight : instruction.weights) bound.weights.push_back(weights_[weight]);
      bound.constants = view(instruction.constants);
      if (instruction.kv >= 0) bound.kv = &kv_[static_cast<std::size_t>(instruction.kv)];
      out.push_back(std::move(bound));
    }
  }

  [[nodiscard]] Matrix matrix(const ProgramValue& value) const {
    return {arena_.data() + value.offset, 0, value.cols, value.row_bytes, value.encoding};
  }

  void issue(BoundInstruction& bound, const Batch& batch) {
    bound.dst.rows = rows_[static_cast<std::size_t>(bound.dst_rows)];
    for (std::size_t i = 0; i < bound.inputs.size(); ++i) {
      if (bound.operands[i].is_external) {
        bind_external(bound.inputs[i], bound.operands[i].external, batch);
      } else {
        bound.inputs[i].rows = rows_[static_cast<std::size_t>(bound.input_rows[i])];
      }
    }
    KernelArguments arguments;
    arguments.dst = bound.dst;
    arguments.inputs = bound.inputs;
    arguments.weights = bound.weights;
    arguments.constants = bound.constants;
    arguments.batch = &batch;
    arguments.kv = bound.kv;
    arguments.scratch = {scratch_.data(), scratch_.size()};
    arguments.pool = &pool_;
    bound.run(arguments);
  }

  /// External inputs are views of the batch itself; kernels only read them.
  void bind_external(Matrix& matrix, ExternalInput external, const Batch& batch) const {
    if (external == ExternalInput::sampler) return;  // read from the batch's segments
    std::span<const std::uint32_t> values = batch.tokens;
    if (external == ExternalInput::positions) values = batch.positions;
    if (external == ExternalInput::types)
      values = batch.types.empty() ? std::span(no_types_).first(batch.tokens.size()) : batch.types;
    auto* data = reinterpret_cast<std::byte*>(const_cast<std::uint32_t*>(values.data()));
    matrix = {data, static_cast<std::uint32_t>(values.size()), 1, sizeof(std::uint32_t), Encoding::u32};
  }

  Isa isa_;
  ThreadPool pool_;
  Program program_;
  Memory arena_, scratch_, packed_;
  std::vector<std::uint32_t> no_types_;  // the types of a batch that names none
  std::vector<Weight> weights_;
  std::vector<Memory> kv_memory_;
  std::vector<KvCache> kv_;
  std::array<std::vector<BoundInstruction>, 2> bound_;
  std::array<std::uint32_t, 2> rows_{};  // of the last run, by RowKind
};

}  // namespace

Isa choose_isa(std::string_view name) {
  const auto available = available_isas();
  if (name.empty()) {
    if (available.front() == Isa::portable)
      fail(ErrorCode::device,
           "this processor has neither AVX2 with FMA nor NEON; --isa portable runs without them, slowly");
    return available.front();
  }
  for (const Isa isa : {Isa::portable, Isa::avx2, Isa::avx512, Isa::neon}) {
    if (to_string(isa) != name) continue;
    if (std::find(available.begin(), available.end(), isa) == available.end())
      fail(ErrorCode::device, "this processor cannot run {} kernels", name);
    return isa;
  }
  fail(ErrorCode::usage, "instruction set \"{}\" is unknown; known are portable, avx2, avx512, neon", printable(name));
}

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace candor::cpu
