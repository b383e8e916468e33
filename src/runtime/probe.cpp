#include "runtime/probe.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/memory.h"
#include "formats/quant/codec.h"

namespace candor::runtime {
namespace {

constexpr std::array kPhases{Phase::prefill, Phase::decode};
constexpr std::size_t kHeadValues = 4;

/// A row of quantized activations: its int8 values, then a float32 scale for each block.
void decode_activations(std::span<const std::byte> row, std::uint32_t block, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    float scale = 0;
    std::memcpy(&scale, row.data() + out.size() + i / block * sizeof scale, sizeof scale);
    out[i] = scale * static_cast<float>(static_cast<std::int8_t>(row[i]));
  }
}

/// Name and layer of "NAME:LAYER"; the whole is the name where no number follows a colon. Throws Error(usage) for a
/// number that is no layer's.
std::pair<std::string_view, std::optional<std::int32_t>> split_layer(std::string_view probe) {
  const std::size_t colon = probe.rfind(':');
  if (colon == std::string_view::npos) return {probe, std::nullopt};
  std::int32_t layer = 0;
  const char* const end = probe.data() + probe.size();
  const auto [stop, error] = std::from_chars(probe.data() + colon + 1, end, layer);
  if (error == std::errc::invalid_argument || stop != end) return {probe, std::nullopt};
  if (error != std::errc() || layer < 0)
    fail(ErrorCode::usage, "probe \"{}\": layers are counted from 0; {} is none", printable(probe),
         printable(probe.substr(colon + 1)));
  return {probe.substr(0, colon), layer};
}

const std::string& slot_of(const ProgramPhase& phase, const Instruction& instruction) {
  return phase.values[instruction.result].slot;
}

/// How a probe's name may mean an instruction, the closest first. The first of these that any instruction fits is the
/// one that counts.
bool fits(std::size_t way, std::string_view name, const ProgramPhase& phase, const Instruction& instruction) {
  switch (way) {
    case 0:
      return name == "all" || instruction.step == name;
    case 1:
      return instruction.op == name;
    case 2:
      return slot_of(phase, instruction) == name;
    default:
      return instruction.step.ends_with(fmt::format("_{}", name));
  }
}
constexpr std::size_t kWays = 4;

[[noreturn]] void refuse_name(std::string_view name, const Program& program) {
  std::set<std::string> ops;
  std::set<std::string> slots;
  for (const ProgramPhase& phase : program.phases)
    for (const Instruction& instruction : phase.instructions) {
      ops.insert(instruction.op);
      slots.insert(slot_of(phase, instruction));
    }
  fail(ErrorCode::not_found, "probe \"{}\": no step has this id, op or slot; the ops are {}; the slots are {}",
       printable(name), fmt::join(ops, ", "), fmt::join(slots, ", "));
}

}  // namespace

std::vector<float> read_result(const Backend& backend, const Program& program, Phase phase, std::size_t instruction) {
  const std::uint32_t result = program.phase(phase).instructions[instruction].result;
  const ProgramValue& value = program.phase(phase).values[result];
  const std::uint32_t rows = backend.value_rows(phase, result);
  const std::size_t row_bytes = encoded_bytes(value.encoding, value.cols, value.slot);
  std::vector<std::byte> bytes(row_bytes * rows);
  backend.read_value(phase, result, bytes);
  std::vector<float> out(std::size_t{rows} * value.cols);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto from = std::span<const std::byte>(bytes).subspan(row * row_bytes, row_bytes);
    const auto to = std::span(out).subspan(row * value.cols, value.cols);
    if (value.encoding == Encoding::a8_32 || value.encoding == Encoding::a8_256) {
      decode_activations(from, info(value.encoding).block_size, to);
    } else {
      dequantize(value.encoding, from.data(), to.data(), to.size());
    }
  }
  return out;
}

void ValueStatistics::add(std::span<const float> values) {
  for (const float value : values) {
    if (!std::isfinite(value)) {
      ++not_finite_;
      continue;
    }
    const bool first = count_++ == 0;
    smallest_ = first ? value : std::min(smallest_, value);
    largest_ = first ? value : std::max(largest_, value);
    sum_ += value;
    squares_ += static_cast<double>(value) * value;
  }
}

double ValueStatistics::mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

double ValueStatistics::rms() const {
  return count_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(count_));
}

Probes::Probes(const Program& program, std::span<const std::string> probes, bool keep)
    : program_(program), keep_(keep) {
  std::array<std::vector<bool>, 2> chosen;
  for (const Phase phase : kPhases)
    chosen[static_cast<std::size_t>(phase)].resize(program.phase(phase).instructions.size());
  for (const std::string& probe : probes) choose(probe, chosen);
  for (const Phase which : kPhases) {
    const ProgramPhase& phase = program.phase(which);
    auto& index = index_[static_cast<std::size_t>(which)];
    for (std::size_t i = 0; i < phase.instructions.size(); ++i) {
      index.push_back(-1);
      if (!chosen[static_cast<std::size_t>(which)][i]) continue;
      index.back() = static_cast<std::int32_t>(steps_.size());
      const Instruction& instruction = phase.instructions[i];
      const ProgramValue& value = phase.values[instruction.result];
      ProbedStep& step = steps_.emplace_back();
      step.phase = which;
      step.step = instruction.step;
      step.op = instruction.op;
      step.slot = value.slot;
      step.layer = instruction.layer;
      step.encoding = value.encoding;
      step.cols = value.cols;
    }
  }
}

/// The name is an id, an op, a slot, or the end of an id, whichever comes first in this order; all steps that fit are
/// meant, in the layer given or in all.
void Probes::choose(std::string_view probe, std::array<std::vector<bool>, 2>& chosen) const {
  const auto [name, layer] = split_layer(probe);
  for (std::size_t way = 0; way < kWays; ++way) {
    bool named = false;
    bool found = false;
    std::set<std::int32_t> layers;
    for (const Phase which : kPhases) {
      const ProgramPhase& phase = program_.phase(which);
      for (std::size_t i = 0; i < phase.instructions.size(); ++i) {
        const Instruction& instruction = phase.instructions[i];
        if (!fits(way, name, phase, instruction)) continue;
        named = true;
        if (instruction.layer >= 0) layers.insert(instruction.layer);
        if (layer && instruction.layer != *layer) continue;
        found = true;
        chosen[static_cast<std::size_t>(which)][i] = true;
      }
    }
    if (found) return;
    if (named && layers.empty())
      fail(ErrorCode::usage, "probe \"{}\": it runs outside the layers; leave :{} out", printable(probe), *layer);
    if (named)
      fail(ErrorCode::usage, "probe \"{}\": it does not run in layer {}; it runs in {}", printable(probe), *layer,
           fmt::join(layers, ", "));
  }
  refuse_name(name, program_);
}

void Probes::read(const Backend& backend, Phase phase, std::size_t instruction) {
  const std::int32_t index = index_[static_cast<std::size_t>(phase)][instruction];
  if (index < 0) return;
  ProbedStep& step = steps_[static_cast<std::size_t>(index)];
  const std::vector<float> values = read_result(backend, program_, phase, instruction);
  step.rows += values.size() / std::max(step.cols, 1u);
  step.statistics.add(values);
  if (!values.empty()) {
    const auto last = std::span(values).last(step.cols);
    step.head.assign(last.begin(), last.begin() + static_cast<std::ptrdiff_t>(std::min(kHeadValues, last.size())));
  }
  if (!keep_) return;
  kept_bytes_ += values.size() * sizeof(float);
  if (kept_bytes_ > kProbeBytes)
    fail(ErrorCode::resource, "the probes' values exceed {}; probe fewer steps (STEP:LAYER) or compute fewer tokens",
         format_bytes(kProbeBytes));
  step.values.insert(step.values.end(), values.begin(), values.end());
}

const ProbedStep* Probes::first_not_finite() const {
  const auto found = std::find_if(steps_.begin(), steps_.end(),
                                  [](const ProbedStep& step) { return step.statistics.not_finite() > 0; });
  return found == steps_.end() ? nullptr : &*found;
}

}  // namespace candor::runtime
