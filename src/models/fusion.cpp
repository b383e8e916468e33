#include "models/fusion.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "plan/schema.h"

namespace candor::models {
namespace {

constexpr std::array<std::string_view, 2> kPhases{"prefill", "decode"};

/// The steps of one layer in one phase, in order; or those of a section outside the layers.
using Sequence = std::vector<const LoweredStep*>;
using Run = std::span<const LoweredStep* const>;

/// A step in place of a run of others, still without its kernel.
struct Fused {
  StepDraft draft;
  std::string encoding;
};

/// One way to fuse: the operations that must follow each other, the slots between them (which must be read by nobody
/// else), and what comes of a run of them. `join` gives nothing where operands do not connect.
struct Pattern {
  std::vector<std::string_view> operations;
  std::vector<Fused> (*join)(Run run) = nullptr;
};

const StepDraft& draft(Run run, std::size_t i) {
  return run[i]->draft;
}

std::string input_of(const StepDraft& step, const char* name) {
  return step.inputs.value(name, std::string());
}

StepDraft begin_fused(const StepDraft& first, std::string op, std::string operation, std::string dst) {
  StepDraft out;
  out.section = first.section;
  out.op = std::move(op);
  out.operation = std::move(operation);
  out.src = first.src;
  out.dst = std::move(dst);
  return out;
}

/// rmsnorm, quantize → rmsnorm_quantize.
std::vector<Fused> join_norm(Run run) {
  const StepDraft& norm = draft(run, 0);
  const StepDraft& quantize = draft(run, 1);
  if (quantize.src != norm.dst) return {};
  StepDraft out = begin_fused(norm, norm.op, "rmsnorm_quantize", quantize.dst);
  out.weights = norm.weights;
  out.constants = norm.constants;
  return {{std::move(out), run[1]->encoding}};
}

/// matmul, residual_add → matmul_residual.
std::vector<Fused> join_residual(Run run) {
  const StepDraft& product = draft(run, 0);
  const StepDraft& sum = draft(run, 1);
  std::string other = input_of(sum, "residual");
  if (other == product.dst) {
    other = sum.src;
  } else if (sum.src != product.dst) {
    return {};
  }
  if (other == product.dst) return {};
  StepDraft out = begin_fused(product, product.op + "_residual", "matmul_residual", sum.dst);
  out.inputs["residual"] = other;
  out.weights = product.weights;
  return {{std::move(out), run[0]->encoding}};
}

bool same_source(Run run, std::size_t count) {
  return std::all_of(run.begin(), run.begin() + static_cast<std::ptrdiff_t>(count), [&](const LoweredStep* step) {
    return step->draft.src == draft(run, 0).src && step->encoding == run[0]->encoding;
  });
}

/// matmul, matmul, gated_activation → gated_matmul.
std::vector<Fused> join_gated(Run run) {
  const StepDraft& gate = draft(run, 0);
  const StepDraft& up = draft(run, 1);
  const StepDraft& activation = draft(run, 2);
  if (!same_source(run, 2) || activation.src != gate.dst || input_of(activation, "up") != up.dst) return {};
  StepDraft out = begin_fused(gate, "gate_up_proj", "gated_matmul", activation.dst);
  out.weights = {{"gate", gate.weights}, {"up", up.weights}};
  out.constants = activation.constants;
  return {{std::move(out), run[0]->encoding}};
}

/// matmul, matmul, matmul, rope, rope, attention → qkv_matmul, rope_attention.
std::vector<Fused> join_attention(Run run) {
  const StepDraft& q = draft(run, 0);
  const StepDraft& k = draft(run, 1);
  const StepDraft& v = draft(run, 2);
  const StepDraft& attention = draft(run, 5);
  const auto rotates = [&](const StepDraft& rope, const StepDraft& of) {
    return rope.src == of.dst && rope.dst == of.dst && rope.inputs == draft(run, 3).inputs &&
           rope.constants == draft(run, 3).constants;
  };
  if (!same_source(run, 3) || !rotates(draft(run, 3), q) || !rotates(draft(run, 4), k)) return {};
  if (attention.src != q.dst || input_of(attention, "k") != k.dst || input_of(attention, "v") != v.dst) return {};
  const std::string packed = "qkv";
  StepDraft projection = begin_fused(q, "qkv_proj", "qkv_matmul", packed);
  projection.weights = {{"q", q.weights}, {"k", k.weights}, {"v", v.weights}};
  StepDraft attend = begin_fused(q, attention.op, "rope_attention", attention.dst);
  attend.src = packed;
  attend.inputs = draft(run, 3).inputs;
  attend.constants = draft(run, 3).constants;
  for (const auto& [name, value] : attention.constants.items()) attend.constants[name] = value;
  return {{std::move(projection), run[0]->encoding}, {std::move(attend), {}}};
}

const std::vector<Pattern>& patterns() {
  static const std::vector<Pattern> kPatterns{
      {{"rmsnorm", "quantize"}, join_norm},
      {{"matmul", "matmul", "matmul", "rope", "rope", "attention"}, join_attention},
      {{"matmul", "matmul", "gated_activation"}, join_gated},
      {{"matmul", "residual_add"}, join_residual},
  };
  return kPatterns;
}

bool reads(const StepDraft& step, const std::string& slot) {
  return step.src == slot || std::any_of(step.inputs.begin(), step.inputs.end(),
                                         [&](const Json& input) { return input.get<std::string>() == slot; });
}

std::ptrdiff_t section_index(std::string_view section) {
  return std::find(plan::kSections.begin(), plan::kSections.end(), section) - plan::kSections.begin();
}

class Fusion {
 public:
  Fusion(std::vector<LoweredStep> steps, const kernels::KernelRules& rules, std::uint32_t layers)
      : steps_(std::move(steps)), rules_(rules), layers_(layers), taken_(steps_.size()) {}

  std::vector<LoweredStep> run() {
    for (const std::string_view phase : kPhases) {
      for (std::uint32_t layer = 0; layer < layers_; ++layer)
        fuse_sequence(sequence(phase, "layer", layer), phase, layer);
      for (const std::string_view section : {"preLayer", "postLayer"})
        fuse_sequence(sequence(phase, section, 0), phase, 0);
    }
    std::vector<LoweredStep> out;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      for (const auto& [step, where] : fused_[i]) append(out, step, where);
      if (taken_[i].empty()) {
        out.push_back(steps_[i]);
      } else {
        append_rest(out, i);
      }
    }
    return out;
  }

 private:
  /// The layers in which a step holds, by phase; outside the layers, layer 0 stands for the section.
  using Where = std::map<std::string_view, Layers>;

  static bool is_in(const LoweredStep& step, std::string_view phase) {
    return step.phase == "both" || step.phase == phase;
  }

  [[nodiscard]] Sequence sequence(std::string_view phase, std::string_view section, std::uint32_t layer) const {
    Sequence out;
    for (const LoweredStep& step : steps_)
      if (step.draft.section == section && is_in(step, phase) && (section != "layer" || step.layers.contains(layer)))
        out.push_back(&step);
    return out;
  }

  void fuse_sequence(const Sequence& sequence, std::string_view phase, std::uint32_t layer) {
    for (std::size_t at = 0; at < sequence.size();) {
      const std::size_t fused = fuse_at(sequence, at, phase, layer);
      at += fused == 0 ? 1 : fused;
    }
  }

  /// How many steps at `at` became fused ones; 0 for none.
  std::size_t fuse_at(const Sequence& sequence, std::size_t at, std::string_view phase, std::uint32_t layer) {
    for (const Pattern& pattern : patterns()) {
      const std::size_t count = pattern.operations.size();
      if (sequence.size() - at < count) continue;
      const Run run = std::span(sequence).subspan(at, count);
      if (!std::equal(run.begin(), run.end(), pattern.operations.begin(),
                      [](const LoweredStep* step, std::string_view name) { return step->draft.operation == name; }))
        continue;
      std::vector<LoweredStep> joined = with_kernels(pattern.join(run), phase);
      if (joined.empty() || !is_private(sequence, at, count)) continue;
      const std::size_t anchor = index_of(run.back());
      for (LoweredStep& step : joined) add_fused(anchor, std::move(step), phase, layer);
      for (const LoweredStep* step : run) taken_[index_of(step)][phase].insert(layer);
      return count;
    }
    return 0;
  }

  /// The fused steps with their kernels; none where the path lacks one for any of them.
  std::vector<LoweredStep> with_kernels(std::vector<Fused> fused, std::string_view phase) const {
    std::vector<LoweredStep> out;
    for (Fused& step : fused) {
      auto choice = rules_.find({step.draft.op, step.draft.operation, step.encoding, phase});
      if (!choice) return {};
      out.push_back({std::move(step.draft), std::move(step.encoding), std::move(*choice), {}, {}});
    }
    return out;
  }

  /// Whether nobody else reads what the run writes before its last step.
  [[nodiscard]] bool is_private(const Sequence& sequence, std::size_t at, std::size_t count) const {
    const LoweredStep& last = *sequence[at + count - 1];
    for (std::size_t i = at; i + 1 < at + count; ++i) {
      const std::string& slot = sequence[i]->draft.dst;
      if (slot == "state" || (slot != last.draft.dst && is_read_later(sequence, at + count, slot))) return false;
    }
    return true;
  }

  /// Slots other than the state end with their layer; what another section writes may be read by any after it.
  [[nodiscard]] bool is_read_later(const Sequence& sequence, std::size_t from, const std::string& slot) const {
    for (std::size_t i = from; i < sequence.size(); ++i) {
      if (reads(sequence[i]->draft, slot)) return true;
      if (sequence[i]->draft.dst == slot) return false;
    }
    const std::string& section = sequence.front()->draft.section;
    return section != "layer" && std::any_of(steps_.begin(), steps_.end(), [&](const LoweredStep& step) {
             return section_index(step.draft.section) > section_index(section) && reads(step.draft, slot);
           });
  }

  [[nodiscard]] std::size_t index_of(const LoweredStep* step) const {
    return static_cast<std::size_t>(step - steps_.data());
  }

  void add_fused(std::size_t anchor, LoweredStep step, std::string_view phase, std::uint32_t layer) {
    auto& here = fused_[anchor];
    const auto same = std::find_if(here.begin(), here.end(), [&](const auto& entry) {
      const StepDraft& a = entry.first.draft;
      const StepDraft& b = step.draft;
      return a.operation == b.operation && a.op == b.op && a.src == b.src && a.dst == b.dst && a.inputs == b.inputs &&
             a.weights == b.weights && a.constants == b.constants && entry.first.choice == step.choice;
    });
    if (same != here.end()) {
      same->second[phase].insert(layer);
    } else {
      here.emplace_back(std::move(step), Where{{phase, {layer}}});
    }
  }

  /// One step for both phases where they agree, else one each.
  void append(std::vector<LoweredStep>& out, LoweredStep step, const Where& where) const {
    const bool in_layers = step.draft.section == "layer";
    const auto add = [&](std::string_view phase, const Layers& layers) {
      step.phase = phase;
      step.layers = in_layers ? layers : Layers{};
      out.push_back(step);
    };
    if (where.size() == 2 && where.begin()->second == where.rbegin()->second) return add("both", where.begin()->second);
    for (const std::string_view phase : kPhases)
      if (const auto found = where.find(phase); found != where.end()) add(phase, found->second);
  }

  /// What of a step was not fused.
  void append_rest(std::vector<LoweredStep>& out, std::size_t index) const {
    const LoweredStep& step = steps_[index];
    const Layers all = step.draft.section == "layer" ? step.layers : Layers{0};
    Where rest;
    for (const std::string_view phase : kPhases) {
      if (!is_in(step, phase)) continue;
      Layers left = all;
      if (const auto found = taken_[index].find(phase); found != taken_[index].end())
        for (const std::uint32_t layer : found->second) left.erase(layer);
      if (!left.empty()) rest.emplace(phase, std::move(left));
    }
    append(out, step, rest);
  }

  std::vector<LoweredStep> steps_;
  const kernels::KernelRules& rules_;
  std::uint32_t layers_;
  std::vector<Where> taken_;                                                 // by step: where it was fused
  std::map<std::size_t, std::vector<std::pair<LoweredStep, Where>>> fused_;  // by the last step of their runs
};

}  // namespace

std::vector<LoweredStep> fuse_steps(std::vector<LoweredStep> steps, const kernels::KernelRules& rules,
                                    std::uint32_t layers) {
  return Fusion(std::move(steps), rules, layers).run();
}

}  // namespace candor::models
