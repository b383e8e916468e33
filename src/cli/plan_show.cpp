#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <vector>

#include "base/error.h"
#include "cli/output.h"
#include "cli/plan_commands.h"
#include "cli/table.h"
#include "kernels/registry.h"

namespace candor::cli {
namespace {

using plan::ResolvedStep;
using runtime::CompiledModel;

/// One line: a step in the phases in which it is the same.
struct Row {
  const ResolvedStep* step = nullptr;
  std::string phase;
};

bool same_dtypes(const ResolvedStep& a, const ResolvedStep& b) {
  const auto kv = [](const ResolvedStep& step) { return step.kv_io.value_or(plan::KvIo{}); };
  return a.precision.input == b.precision.input && a.precision.math == b.precision.math &&
         a.precision.accum == b.precision.accum && a.precision.output == b.precision.output &&
         kv(a).read == kv(b).read && kv(a).write == kv(b).write;
}

bool runs_in_layer(const ResolvedStep& step, std::int32_t layer) {
  if (step.section != "layer") return false;
  const Json& layers = step.raw["layers"];
  return layers.is_string() ||
         std::any_of(layers.begin(), layers.end(), [&](const Json& number) { return number.get<double>() == layer; });
}

std::size_t section_order(const ResolvedStep& step) {
  constexpr std::array<std::string_view, 4> kSections{"preLayer", "layer", "postLayer", "sampling"};
  return static_cast<std::size_t>(std::find(kSections.begin(), kSections.end(), step.section) - kSections.begin());
}

/// In the order of the sections; within one, prefill's before those of decode alone.
std::vector<Row> rows_of(const CompiledModel& model, const PlanCommandArguments& arguments) {
  std::vector<Row> rows;
  const auto& decode = model.plan.decode;
  const auto counterpart = [&](const ResolvedStep& step) {
    const auto found = std::find_if(decode.begin(), decode.end(), [&](auto& other) { return other.id == step.id; });
    return found == decode.end() ? nullptr : &*found;
  };
  if (arguments.phase != "decode")
    for (const ResolvedStep& step : model.plan.prefill) {
      const ResolvedStep* other = arguments.phase.empty() ? counterpart(step) : nullptr;
      rows.push_back({&step, other != nullptr && same_dtypes(step, *other) ? "both" : "prefill"});
    }
  if (arguments.phase != "prefill")
    for (const ResolvedStep& step : decode) {
      const bool shown = std::any_of(rows.begin(), rows.end(),
                                     [&](const Row& row) { return row.phase == "both" && row.step->id == step.id; });
      if (!shown) rows.push_back({&step, "decode"});
    }
  if (arguments.layer) std::erase_if(rows, [&](const Row& row) { return !runs_in_layer(*row.step, *arguments.layer); });
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return section_order(*a.step) < section_order(*b.step); });
  return rows;
}

/// "0-3, 7"
std::string layer_ranges(const ResolvedStep& step) {
  if (step.section != "layer") return {};
  const Json& layers = step.raw["layers"];
  if (layers.is_string()) return layers.get<std::string>();
  std::string out;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i + 1;
    while (end < layers.size() && layers[end].get<double>() == layers[end - 1].get<double>() + 1) ++end;
    if (!out.empty()) out += ", ";
    out += js_number(layers[i].get<double>());
    if (end - i > 1) out += (end - i == 2 ? ", " : "-") + js_number(layers[end - 1].get<double>());
    i = end;
  }
  return out.empty() ? "none" : out;
}

const kernels::KernelVariant* variant_of(const ResolvedStep& step, const CompiledModel& model) {
  return model.registry->find(step.kernel, step.entry);
}

/// "q, k, v → attention": the slots read and the one written.
std::string slots_of(const ResolvedStep& step, const CompiledModel& model) {
  const kernels::KernelVariant* variant = variant_of(step, model);
  const auto operation =
      variant == nullptr ? model.flow.operations.end() : model.flow.operations.find(variant->operation);
  std::vector<std::string> read;
  if (operation == model.flow.operations.end() || operation->second.reads_src) read.push_back(step.src);
  if (step.raw.contains("inputs"))
    for (const auto& [name, slot] : step.raw["inputs"].items()) read.push_back(slot.get<std::string>());
  return fmt::format("{} → {}", fmt::join(read, ", "), step.dst);
}

std::string dtypes_of(const ResolvedStep& step) {
  const plan::Precision& precision = step.precision;
  return fmt::format("{} {} {} {}", precision.input, precision.math, precision.accum, precision.output);
}

std::string kv_of(const ResolvedStep& step) {
  if (!step.kv_io) return {};
  return step.kv_io->read == step.kv_io->write ? step.kv_io->read : step.kv_io->read + "/" + step.kv_io->write;
}

std::string digest_of(const ResolvedStep& step) {
  const Json* ref = step.raw.contains("kernelRef") ? &step.raw["kernelRef"] : nullptr;
  return ref != nullptr && ref->contains("digest") ? (*ref)["digest"].get<std::string>() : std::string();
}

/// The step in this layer as the data flow unrolled it.
const plan::StepInstance* instance_of(const Row& row, std::int32_t layer, const CompiledModel& model) {
  const auto& steps = row.phase == "decode" ? model.flow.decode.steps : model.flow.prefill.steps;
  const auto found = std::find_if(steps.begin(), steps.end(), [&](const plan::StepInstance& instance) {
    return instance.layer == layer && instance.step->id == row.step->id;
  });
  return found == steps.end() ? nullptr : &*found;
}

std::string weights_of(const plan::StepInstance& instance, const CompiledModel& model) {
  std::vector<std::string> out;
  constexpr std::size_t kShown = 4;  // a layer may have a hundred experts
  for (const std::uint32_t index : std::span(instance.weights).first(std::min(kShown, instance.weights.size()))) {
    const std::string& name = model.flow.weights[index].tensor;
    const TensorInfo* tensor = model.source.find(name);
    out.push_back(fmt::format("{} {} {}", name, to_string(tensor->encoding), print_shape(tensor->shape)));
  }
  if (instance.weights.size() > kShown) out.push_back(fmt::format("… ({} in all)", instance.weights.size()));
  return fmt::format("{}", fmt::join(out, ", "));
}

void print_heading(const CompiledModel& model) {
  print(fmt::format("{}  {}, vocabulary {}, kernel path {}\n", bold(model.manifest.value("modelId", "model")),
                    counted(model.layers, "layer"), model.vocabulary,
                    model.manifest.value("kernelPath", "of the manifest")));
  print(fmt::format("plan {}  manifest {}\n\n", model.plan_digest, short_digest(model.manifest_digest)));
}

void print_table(const std::vector<Row>& rows, const CompiledModel& model, std::optional<std::int32_t> layer) {
  Table table(
      {"step", "phase", "op", "kernel", "digest", "in math acc out", "kv", "slots", "layers", "weights", "writes"});
  for (const Row& row : rows) {
    const ResolvedStep& step = *row.step;
    std::vector<std::string> cells{step.id,
                                   row.phase,
                                   step.op,
                                   step.kernel.empty() ? "" : step.kernel + "#" + step.entry,
                                   short_digest(digest_of(step)),
                                   dtypes_of(step),
                                   kv_of(step),
                                   slots_of(step, model),
                                   layer ? "" : layer_ranges(step)};
    if (const auto* instance = layer ? instance_of(row, *layer, model) : nullptr) {
      const auto& flow = row.phase == "decode" ? model.flow.decode : model.flow.prefill;
      const plan::Value& value = flow.values[instance->value];
      cells.push_back(weights_of(*instance, model));
      cells.push_back(fmt::format("{} × {}", to_string(value.encoding), value.shape.cols));
    }
    table.add(std::move(cells));
  }
  table.print();
}

void print_kv(const CompiledModel& model) {
  if (model.flow.kv.empty()) return;
  const plan::KvState& first = model.flow.kv.front();
  print(fmt::format("\nKV cache: {}, {} of {}, {}\n", counted(model.flow.kv.size(), "layer"),
                    counted(first.kv_heads, "head"), first.head_dim, to_string(first.encoding)));
}

Json step_json(const Row& row, const CompiledModel& model, std::optional<std::int32_t> layer) {
  const ResolvedStep& step = *row.step;
  const kernels::KernelVariant* variant = variant_of(step, model);
  Json out{{"id", step.id},
           {"phase", row.phase},
           {"section", step.section},
           {"op", step.op},
           {"operation", variant == nullptr ? Json() : Json(variant->operation)},
           {"kernel", step.kernel},
           {"entry", step.entry},
           {"digest", digest_of(step)},
           {"precision", step.raw["precision"]},
           {"kvIO", step.raw["kvIO"]},
           {"src", step.src},
           {"dst", step.dst}};
  for (const char* key : {"inputs", "weights", "constants", "layers"})
    if (step.raw.contains(key)) out[key] = step.raw[key];
  if (const auto* instance = layer ? instance_of(row, *layer, model) : nullptr) {
    const auto& flow = row.phase == "decode" ? model.flow.decode : model.flow.prefill;
    const plan::Value& value = flow.values[instance->value];
    Json tensors = Json::array();
    for (const std::uint32_t index : instance->weights) {
      const TensorInfo* tensor = model.source.find(model.flow.weights[index].tensor);
      tensors.push_back({{"name", tensor->name}, {"encoding", to_string(tensor->encoding)}, {"shape", tensor->shape}});
    }
    out["tensors"] = std::move(tensors);
    out["result"] = {{"encoding", to_string(value.encoding)}, {"cols", value.shape.cols}};
  }
  return out;
}

}  // namespace

int plan_show(const PlanCommandArguments& arguments) {
  const CompiledModel model = runtime::compile_model(arguments.plan.model, plan_options(arguments.plan));
  if (arguments.layer && (*arguments.layer < 0 || static_cast<std::uint32_t>(*arguments.layer) >= model.layers))
    fail(ErrorCode::usage, "--layer {}: the model has layers 0 to {}", *arguments.layer, model.layers - 1);
  const std::vector<Row> rows = rows_of(model, arguments);
  if (arguments.json) {
    Json steps = Json::array();
    for (const Row& row : rows) steps.push_back(step_json(row, model, arguments.layer));
    print_json({{"modelId", model.manifest.value("modelId", "model")},
                {"manifestDigest", model.manifest_digest},
                {"planDigest", model.plan_digest},
                {"layers", model.layers},
                {"session", model.plan.session},
                {"overlay", model.overlay},
                {"steps", std::move(steps)}});
    return 0;
  }
  print_heading(model);
  print_table(rows, model, arguments.layer);
  print_kv(model);
  return 0;
}

int plan_export(const PlanCommandArguments& arguments) {
  const CompiledModel model = runtime::compile_model(arguments.plan.model, plan_options(arguments.plan));
  if (arguments.json) {
    print_json({{"planDigest", model.plan_digest}, {"plan", model.plan.to_json()}});
    return 0;
  }
  print(to_canonical_json(model.plan.to_json()));  // without a line feed: these bytes are what the digest is of
  flush_output();
  report(model.plan_digest);
  return 0;
}

}  // namespace candor::cli
