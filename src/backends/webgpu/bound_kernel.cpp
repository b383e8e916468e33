#include "backends/webgpu/bound_kernel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <optional>

#include "backends/webgpu/packed_weight.h"
#include "base/checked.h"
#include "base/error.h"
#include "kernels/registry.h"

namespace candor::webgpu {
namespace {

/// The operation's operands in the order of the instruction's, by name.
std::vector<std::string> operand_names(const kernels::Operation& operation) {
  std::vector<std::string> names;
  if (operation.reads_src) names.emplace_back("src");
  names.insert(names.end(), operation.inputs.begin(), operation.inputs.end());
  return names;
}

kernels::Operation operation_of(const Instruction& instruction) {
  const auto* found = kernels::builtin_registry().find_operation(instruction.operation);
  if (!found)
    fail(ErrorCode::plan, "step \"{}\": operation {} is not of this build", instruction.step, instruction.operation);
  return kernels::parse_operation(instruction.operation, found->raw);
}

/// A number, or a name's value.
double number_of(const std::string& term, const std::map<std::string, double>& values, const std::string& step) {
  if (std::isdigit(static_cast<unsigned char>(term.front())) != 0) return std::stod(term);
  const auto found = values.find(term);
  if (found == values.end())
    fail(ErrorCode::internal, "step \"{}\": its kernel counts by \"{}\", which is unknown", step, term);
  return found->second;
}

/// All but lists.
std::map<std::string, double> constants_of(const kernels::Operation& operation, const Instruction& instruction) {
  std::map<std::string, double> values;
  for (std::size_t i = 0; i < operation.constants.size(); ++i)
    if (operation.constants[i].type != kernels::ConstantType::list)
      values[operation.constants[i].name] = instruction.constants.number(i);
  return values;
}

double row_word(kernels::RowKind rows) {
  return rows == kernels::RowKind::tokens ? 0 : 1;
}

BindingKind kind_of(const WgslBinding& binding) {
  if (binding.uniform) return BindingKind::uniform;
  return binding.writes ? BindingKind::read_write : BindingKind::read;
}

/// A kernel's source serves several operations, so some of its parameters have no value in this one; they are 0.
void write_parameters(Device& device, const Buffer& uniforms, std::size_t index,
                      const std::vector<WgslParameter>& parameters, const std::map<std::string, double>& values) {
  std::array<std::uint32_t, kParameterBytes / 4> words{};
  if (parameters.size() > words.size())
    fail(ErrorCode::internal, "{} parameters are more than {}", parameters.size(), words.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto found = values.find(parameters[i].name);
    if (found == values.end()) continue;
    words[i] = parameters[i].is_float ? std::bit_cast<std::uint32_t>(static_cast<float>(found->second))
                                      : static_cast<std::uint32_t>(found->second);
  }
  device.write(uniforms, index * kParameterBytes, std::as_bytes(std::span(words)));
}

/// Binds what the entry names.
class Binder {
 public:
  Binder(const ProgramPhase& phase, const Instruction& instruction, std::size_t index, const BatchBlock& block,
         const Places& places)
      : phase_(phase),
        instruction_(instruction),
        operation_(operation_of(instruction)),
        index_(index),
        block_(block),
        places_(places) {}

  struct Bound {
    BufferRange range;
    bool dynamic = false;
  };

  [[nodiscard]] Bound bind(const std::string& name) const {
    if (name == "batch") return {{places_.batch, 0, block_.bytes()}, true};
    if (name == "params") return {{places_.uniforms, index_ * kParameterBytes, kParameterBytes}};
    if (name == "dst" || name == "chosen") return {places_.value(phase_.values[instruction_.result])};
    if (name == "scratch") return {{places_.scratch, 0, places_.scratch->size()}};
    if (name == "kv") return {places_.kv(instruction_.kv)};
    const std::vector<std::string> operands = operand_names(operation_);
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i] == name) return operand(instruction_.operands[i]);
    if (name == "weight" && !instruction_.weights.empty() && binds_weights_together(instruction_))
      return {places_.weights(instruction_.weights)};
    for (std::size_t i = 0; i < operation_.weights.size(); ++i)
      if (operation_.weights[i] == name) return {places_.weights(std::span(instruction_.weights).subspan(i, 1))};
    for (std::size_t i = 0; i < operation_.constants.size(); ++i)
      if (operation_.constants[i].name == name && operation_.constants[i].type == kernels::ConstantType::list)
        return {places_.list(list(i))};
    fail(ErrorCode::internal, "step \"{}\": kernel {}#{} binds \"{}\", which operation {} has not", instruction_.step,
         instruction_.kernel, instruction_.entry, name, instruction_.operation);
  }

 private:
  [[nodiscard]] Bound operand(const ProgramOperand& operand) const {
    if (operand.is_external)
      return {{places_.batch, block_.offset_of(operand.external), block_.external_bytes()}, true};
    return {places_.value(phase_.values[operand.value])};
  }

  [[nodiscard]] std::vector<float> list(std::size_t constant) const {
    const kernels::ConstantBlock& constants = instruction_.constants;
    std::vector<float> out;
    for (std::size_t i = constants.begin[constant]; i < constants.begin[constant + 1]; ++i)
      out.push_back(static_cast<float>(constants.values[i]));
    return out;
  }

  const ProgramPhase& phase_;
  const Instruction& instruction_;
  kernels::Operation operation_;
  std::size_t index_;
  const BatchBlock& block_;
  const Places& places_;
};

}  // namespace

KernelEntry kernel_entry(const Instruction& instruction) {
  KernelEntry found;
  found.source = find_source(instruction.kernel);
  if (found.source) found.entry = found.source->interface.find(instruction.entry);
  if (!found.entry)
    fail(
        ErrorCode::plan,
        "step \"{}\": this build has no WebGPU kernel \"{}#{}\"; candor rebind --kernel-path webgpu pins an artifact's "
        "steps to those it has",
        instruction.step, instruction.kernel, instruction.entry);
  return found;
}

bool binds_weights_together(const Instruction& instruction) {
  const std::vector<std::string> names = operation_of(instruction).weights;
  if (names.size() == 1) return instruction.weights.size() > 1;
  return names.size() > 1 && std::find(names.begin(), names.end(), "weight") == names.end();
}

std::uint64_t scratch_of(const Instruction& instruction, const ProgramLimits& limits) {
  const std::vector<WgslCount>& counts = kernel_entry(instruction).entry->scratch;
  if (counts.empty()) return 0;
  std::map<std::string, double> values = constants_of(operation_of(instruction), instruction);
  values["rows"] = limits.rows;
  values["sequences"] = limits.sequences;
  values["context"] = limits.context;
  std::uint64_t bytes = 1;
  for (const WgslCount& count : counts) {
    double product = 1;
    for (const std::string& factor : count.factors) product *= number_of(factor, values, instruction.step);
    const double number = std::ceil(product / number_of(count.divisor, values, instruction.step)) +
                          number_of(count.addend, values, instruction.step);
    bytes = checked_mul(bytes, static_cast<std::uint64_t>(number), "scratch");
  }
  return bytes;
}

BoundKernel::BoundKernel(Device& device, const Program& program, Phase phase, const Instruction& instruction,
                         std::size_t index, const BatchBlock& block, const Places& places)
    : step_(instruction.step),
      limit_(device.adapter().limits().max_workgroups),
      rows_(program.phase(phase).values[instruction.result].rows) {
  const ProgramPhase& owner = program.phase(phase);
  const KernelEntry kernel = kernel_entry(instruction);
  const std::map<std::string, double> values = values_of(program, owner, instruction);
  single_ = kernel.entry->single;
  write_parameters(device, *places.uniforms, index, kernel.source->interface.parameters, values);
  const Binder binder(owner, instruction, index, block, places);
  for (const WgslPass& wanted : kernel.entry->passes) {
    PipelineRequest request;
    request.key = instruction.kernel + "#" + wanted.function;
    request.label = request.key;
    request.source = kernel.source->text;
    request.entry = wanted.function;
    for (const std::string& name : kernel.source->interface.overrides)
      if (const auto found = values.find(name); found != values.end()) request.constants.insert(*found);
    std::vector<WgslBinding> bindings = wanted.bindings;
    std::sort(bindings.begin(), bindings.end(), [](const auto& a, const auto& b) { return a.binding < b.binding; });
    std::vector<BufferRange> ranges;
    std::size_t dynamics = 0;
    for (const WgslBinding& binding : bindings) {
      const auto [range, dynamic] = binder.bind(binding.name);
      request.bindings.push_back({binding.binding, kind_of(binding), dynamic});
      ranges.push_back(range);
      dynamics += dynamic ? 1 : 0;
    }
    const Pipeline& pipeline = device.pipeline(request);
    Pass pass{&pipeline, BindGroup(device, pipeline, request.bindings, ranges), {}, dynamics, wanted.beyond};
    for (const WgslCount& count : wanted.dispatch) pass.counts.push_back(resolve(count, values));
    passes_.push_back(std::move(pass));
  }
  device.check();
}

std::map<std::string, double> BoundKernel::values_of(const Program& program, const ProgramPhase& phase,
                                                     const Instruction& instruction) const {
  const kernels::Operation operation = operation_of(instruction);
  std::map<std::string, double> values = constants_of(operation, instruction);
  const auto put_value = [&](const std::string& name, const ProgramValue& value) {
    values[name + "Cols"] = value.cols;
    values[name + "Stride"] = static_cast<double>(value.row_bytes / 4);
  };
  const ProgramValue& result = phase.values[instruction.result];
  put_value("dst", result);
  values["rowsAt"] = row_word(result.rows);
  const std::vector<std::string> operands = operand_names(operation);
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (!instruction.operands[i].is_external) put_value(operands[i], phase.values[instruction.operands[i].value]);

  const auto put_weight = [&](const std::string& name, const ProgramWeight& weight) {
    values.emplace(name + "Rows", static_cast<double>(weight.rows));
    values.emplace(name + "Cols", static_cast<double>(weight.cols));
    values.emplace(name + "Encoding", encoding_number(weight.encoding, weight.tensor));
    values.emplace(name + "Stride", static_cast<double>(weight.bytes / 16));
    values.emplace(name + "Count", static_cast<double>(instruction.weights.size()));
  };
  std::uint64_t place = 0;
  for (std::size_t i = 0; i < operation.weights.size(); ++i) {
    const ProgramWeight& weight = program.weights[instruction.weights[i]];
    put_weight(operation.weights[i], weight);
    values[operation.weights[i] + "At"] = static_cast<double>(place / 16);
    place += weight.bytes;
    const ProgramWeight& first = program.weights[instruction.weights.front()];
    if (binds_weights_together(instruction) && weight.encoding != first.encoding)
      fail(ErrorCode::plan, "step \"{}\": kernel {}#{} reads matrices of one encoding, but {} is {} and {} is {}",
           instruction.step, instruction.kernel, instruction.entry, first.tensor, to_string(first.encoding),
           weight.tensor, to_string(weight.encoding));
  }
  if (!instruction.weights.empty()) put_weight("weight", program.weights[instruction.weights.front()]);
  if (instruction.kv >= 0) {
    const ProgramKv& cache = program.kv[static_cast<std::size_t>(instruction.kv)];
    values["kvEncoding"] = encoding_number(cache.encoding, instruction.step);
    values["pagePositions"] = program.limits.page_positions;
    values["pageStride"] = static_cast<double>(cache.page_bytes / 16);
  }
  return values;
}

BoundKernel::Count BoundKernel::resolve(const WgslCount& wanted, const std::map<std::string, double>& values) const {
  const auto varies = [](const std::string& name) {
    if (name == "rows") return Varying::rows;
    if (name == "sequences") return Varying::sequences;
    return name == "end" ? Varying::end : Varying::none;
  };
  Count count;
  count.fold = wanted.fold;
  count.divisor = number_of(wanted.divisor, values, step_);
  for (const std::string& factor : wanted.factors) {
    if (varies(factor) == Varying::none) {
      count.fixed *= number_of(factor, values, step_);
    } else {
      count.factor = varies(factor);
    }
  }
  count.addend = varies(wanted.addend);
  if (count.addend == Varying::none) count.added = number_of(wanted.addend, values, step_);
  return count;
}

double BoundKernel::varying(Varying what, const BatchFacts& batch) const {
  switch (what) {
    case Varying::rows:
      return batch.rows[static_cast<std::size_t>(rows_)];
    case Varying::sequences:
      return batch.rows[static_cast<std::size_t>(kernels::RowKind::sequences)];
    case Varying::end:
      return batch.end;
    case Varying::none:
      break;
  }
  return 1;
}

void BoundKernel::record(Commands& commands, const BatchFacts& batch, std::uint32_t batch_offset) const {
  if (single_ && batch.rows[0] != batch.rows[1])
    fail(ErrorCode::plan,
         "step \"{}\": its kernel takes one row a sequence, as in decode, and a batch has {} rows of {} sequences; "
         "choose "
         "the kernel that the kernel path has for prefill",
         step_, batch.rows[0], batch.rows[1]);
  for (const Pass& pass : passes_)
    if (batch.end > pass.beyond) record(commands, pass, batch, batch_offset);
}

void BoundKernel::record(Commands& commands, const Pass& pass, const BatchFacts& batch,
                         std::uint32_t batch_offset) const {
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::size_t at = 0;
  const auto put = [&](double count) {
    if (at == groups.size() || count > limit_)
      fail(ErrorCode::device,
           "step \"{}\" needs {} workgroups in a dimension, and the adapter allows {}; use a smaller --prefill-chunk",
           step_, count, limit_);
    groups[at++] = static_cast<std::uint32_t>(count);
  };
  for (const Count& count : pass.counts) {
    const double added = count.added + (count.addend == Varying::none ? 0 : varying(count.addend, batch));
    const double wanted = std::ceil(count.fixed * varying(count.factor, batch) / count.divisor) + added;
    const double planes = count.fold ? std::max(1.0, std::ceil(wanted / limit_)) : 1;
    put(std::ceil(wanted / planes));
    if (count.fold) put(planes);
  }
  const std::array<std::uint32_t, 2> offsets{batch_offset, batch_offset};
  commands.dispatch(*pass.pipeline, pass.group, std::span(offsets).first(pass.dynamic), groups[0], groups[1],
                    groups[2]);
}

}  // namespace candor::webgpu
