#include "plan/dataflow.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "kernels/registry.h"
#include "plan/schema.h"

namespace candor::plan {
namespace {

using kernels::KernelVariant;
using kernels::Operation;

constexpr std::string_view kState = "state";

std::size_t section_index(const ResolvedStep& step) {
  return static_cast<std::size_t>(std::find(kSections.begin(), kSections.end(), step.section) - kSections.begin());
}

/// A slot's current value and the scope it was written in.
struct Slot {
  std::uint32_t value;
  std::size_t section;
  std::int32_t layer;
};

/// What both phases add to: the weights, caches and operations of the plan.
class Tables {
 public:
  Tables(const DataflowInput& input, Dataflow& flow) : input_(input), flow_(flow) {}

  const Operation& operation(const std::string& name, const std::string& label) {
    if (const auto found = flow_.operations.find(name); found != flow_.operations.end()) return found->second;
    const kernels::KernelOperation* entry = input_.registry.find_operation(name);
    if (!entry) fail(ErrorCode::plan, "{}: the registry has no operation {}", label, name);
    return flow_.operations.emplace(name, kernels::parse_operation(name, entry->raw)).first->second;
  }

  std::uint32_t weight(const WeightUse& use) {
    const auto [found, added] =
        weight_index_.try_emplace({use.tensor, use.part}, static_cast<std::uint32_t>(flow_.weights.size()));
    if (added) flow_.weights.push_back(use);
    return found->second;
  }

  /// The cache of the `ordinal`-th step of a layer that keeps one; both phases must want the same one.
  std::int32_t kv(const KvState& wanted, std::uint32_t ordinal, const std::string& label) {
    const auto [found, added] =
        kv_index_.try_emplace({wanted.layer, ordinal}, static_cast<std::int32_t>(flow_.kv.size()));
    if (added) {
      flow_.kv.push_back(wanted);
      return found->second;
    }
    const KvState& kept = flow_.kv[static_cast<std::size_t>(found->second)];
    if (kept.kv_heads != wanted.kv_heads || kept.head_dim != wanted.head_dim || kept.window != wanted.window ||
        kept.encoding != wanted.encoding)
      fail(ErrorCode::plan,
           "{}: decode wants a cache of {} × {} in {} with window {}, prefill wrote {} × {} in {} with window {}",
           label, wanted.kv_heads, wanted.head_dim, to_string(wanted.encoding), wanted.window, kept.kv_heads,
           kept.head_dim, to_string(kept.encoding), kept.window);
    return found->second;
  }

 private:
  const DataflowInput& input_;
  Dataflow& flow_;
  std::map<std::pair<std::string, std::uint32_t>, std::uint32_t> weight_index_;  // (tensor, part)
  std::map<std::pair<std::int32_t, std::uint32_t>, std::int32_t> kv_index_;
};

/// Unrolls one phase.
class PhasePass {
 public:
  PhasePass(const DataflowInput& input, Tables& tables, std::string_view phase, PhaseFlow& flow)
      : input_(input), tables_(tables), phase_(phase), flow_(flow) {}

  void run(const std::vector<ResolvedStep>& steps) {
    check_order(steps);
    for (std::size_t section = 0; section < kSections.size(); ++section) {
      if (kSections[section] == "layer") {
        for (std::uint32_t layer = 0; layer < input_.layers; ++layer) run_layer(steps, layer);
        leave_layer();
        continue;
      }
      for (const ResolvedStep& step : steps)
        if (section_index(step) == section) add(step, -1);
    }
  }

 private:
  /// Steps run section by section, so a list in another order would say one thing and do another.
  void check_order(const std::vector<ResolvedStep>& steps) const {
    std::size_t previous = 0;
    for (const ResolvedStep& step : steps) {
      const std::size_t section = section_index(step);
      if (section < previous)
        fail(
            ErrorCode::plan,
            "step \"{}\" of section {} is listed after a step of section {}; list preLayer, layer, postLayer, sampling",
            step.id, step.section, kSections[previous]);
      previous = section;
      check_layers(step);
    }
  }

  void check_layers(const ResolvedStep& step) const {
    const Json& layers = step.raw.contains("layers") ? step.raw["layers"] : Json("all");
    if (!layers.is_array()) return;
    if (step.section != "layer")
      fail(ErrorCode::plan, "step \"{}\" of section {} cannot be limited to layers", step.id, step.section);
    for (const Json& layer : layers)
      if (layer.get<double>() >= input_.layers)
        fail(ErrorCode::plan, "step \"{}\" names layer {}; the model has layers 0 to {}", step.id, layer.get<double>(),
             static_cast<std::int64_t>(input_.layers) - 1);
  }

  static bool applies(const ResolvedStep& step, std::uint32_t layer) {
    if (!step.raw.contains("layers") || !step.raw["layers"].is_array()) return true;
    const Json& layers = step.raw["layers"];
    return std::any_of(layers.begin(), layers.end(), [&](const Json& n) { return n.get<double>() == layer; });
  }

  void run_layer(const std::vector<ResolvedStep>& steps, std::uint32_t layer) {
    leave_layer();
    state_ordinal_ = 0;
    for (const ResolvedStep& step : steps)
      if (step.section == "layer" && applies(step, layer)) add(step, static_cast<std::int32_t>(layer));
  }

  void leave_layer() {
    for (auto& [name, slot] : slots_)
      if (slot.layer >= 0 && name != kState) left_.insert(name);
    std::erase_if(slots_, [](const auto& entry) { return entry.second.layer >= 0 && entry.first != kState; });
  }

  std::string label(const ResolvedStep& step, std::int32_t layer) const {
    return layer < 0 ? fmt::format("{} step \"{}\"", phase_, step.id)
                     : fmt::format("{} step \"{}\" (layer {})", phase_, step.id, layer);
  }

  void add(const ResolvedStep& step, std::int32_t layer) {
    const std::string name = label(step, layer);
    if (step.kernel.empty())
      fail(ErrorCode::plan, "{}: names no kernel; a cast needs a kernel and a kernelRef like any other step", name);
    StepInstance instance;
    instance.step = &step;
    instance.layer = layer;
    instance.variant = input_.registry.find(step.kernel, step.entry);
    if (!instance.variant)
      fail(ErrorCode::plan, "{}: kernel \"{}#{}\" is not in the registry", name, step.kernel, step.entry);
    const Operation& operation = tables_.operation(instance.variant->operation, name);
    check_precision(step, *instance.variant, name);
    instance.constants =
        kernels::flatten_constants(operation, step.raw.contains("constants") ? step.raw["constants"] : Json(), name);

    kernels::ShapeQuery query;
    query.label = name;
    query.constants = &instance.constants;
    resolve_operands(step, operation, name, instance, query);
    resolve_weights(step, operation, name, instance, query);
    const kernels::SlotShape shape = kernels::infer_shape(operation, query);
    if (operation.name == "attention" || operation.name == "rope_attention")
      resolve_kv(step, operation, name, instance);
    if (operation.name == "short_conv") resolve_convolution(operation, name, instance);
    instance.in_place_operand = in_place_operand(operation, instance);
    write(step, name, shape, std::move(instance));
  }

  /// The compiler settled the dtypes; a kernel that declares others computes something else than the plan says.
  static void check_precision(const ResolvedStep& step, const KernelVariant& variant, const std::string& name) {
    const std::array<std::pair<const char*, const std::string*>, 4> fields{{{"inputDtype", &step.precision.input},
                                                                            {"mathDtype", &step.precision.math},
                                                                            {"accumDtype", &step.precision.accum},
                                                                            {"outputDtype", &step.precision.output}}};
    for (const auto& [field, resolved] : fields) {
      if (!variant.raw.contains(field) || !variant.raw[field].is_string()) continue;
      const auto& declared = variant.raw[field].get_ref<const std::string&>();
      if (declared != *resolved)
        fail(ErrorCode::plan, "{}: precision.{} is {} but kernel \"{}#{}\" works in {}", name, field, *resolved,
             step.kernel, step.entry, declared);
    }
  }

  void resolve_operands(const ResolvedStep& step, const Operation& operation, const std::string& name,
                        StepInstance& instance, kernels::ShapeQuery& query) {
    if (operation.reads_src) add_operand(step, "src", step.src, name, instance, query);
    static const Json kNone = Json::object();
    const Json& inputs = step.raw.contains("inputs") ? step.raw["inputs"] : kNone;
    if (!inputs.is_object()) fail(ErrorCode::plan, "{}: inputs must be an object of slot names", name);
    for (const auto& [key, value] : inputs.items()) {
      if (std::find(operation.inputs.begin(), operation.inputs.end(), key) == operation.inputs.end())
        fail(ErrorCode::plan, "{}: operation {} has no input \"{}\"", name, operation.name, printable(key));
      if (!value.is_string()) fail(ErrorCode::plan, "{}: inputs.{} must be a slot's name", name, key);
    }
    for (const std::string& input : operation.inputs) {
      if (!inputs.contains(input))
        fail(ErrorCode::plan, "{}: input \"{}\" of operation {} is missing", name, input, operation.name);
      add_operand(step, input, inputs[input].get<std::string>(), name, instance, query);
    }
  }

  void add_operand(const ResolvedStep& step, const std::string& operand, const std::string& slot,
                   const std::string& name, StepInstance& instance, kernels::ShapeQuery& query) {
    if (slot.starts_with('$')) {
      const External external = parse_external(slot, name);
      check_encoding(*instance.variant, operand, external == External::sampler ? "sampler" : "u32", name);
      instance.operands.push_back({true, external, 0});
      query.operands.push_back(
          {external == External::sampler ? kernels::RowKind::sequences : kernels::RowKind::tokens, 1});
      return;
    }
    const auto found = slots_.find(slot);
    if (found == slots_.end()) {
      if (left_.contains(slot))
        fail(ErrorCode::plan,
             "{}: {} reads slot \"{}\", which belongs to another layer; only \"{}\" is handed from layer to layer",
             name, operand, slot, kState);
      fail(ErrorCode::plan, "{}: {} reads slot \"{}\", which no step before it writes", name, operand, slot);
    }
    Value& value = flow_.values[found->second.value];
    if (value.dtype != step.precision.input)
      fail(ErrorCode::plan, "{}: {} is slot \"{}\" in {}, but the step works on {}; insert a cast step", name, operand,
           slot, value.dtype, step.precision.input);
    check_encoding(*instance.variant, operand, to_string(value.encoding), name);
    value.last_read = static_cast<std::uint32_t>(flow_.steps.size());
    instance.operands.push_back({false, External::tokens, found->second.value});
    query.operands.push_back(value.shape);
  }

  static External parse_external(const std::string& slot, const std::string& name) {
    for (const External external : {External::tokens, External::positions, External::types, External::sampler})
      if (slot == to_string(external)) return external;
    fail(ErrorCode::plan, "{}: \"{}\" is none of $tokens, $positions, $types, $sampler", name, printable(slot));
  }

  static void check_encoding(const KernelVariant& variant, const std::string& operand, std::string_view encoding,
                             const std::string& name) {
    const Json* accepted = accepted_encodings(variant, operand);
    if (!accepted)
      fail(ErrorCode::plan, "{}: kernel \"{}#{}\" declares no encoding for operand {}", name, variant.file,
           variant.entry, operand);
    for (const Json& entry : *accepted)
      if (entry.is_string() && entry.get_ref<const std::string&>() == encoding) return;
    fail(ErrorCode::plan, "{}: operand {} is encoded as {}, kernel \"{}#{}\" reads {}", name, operand, encoding,
         variant.file, variant.entry, to_js_json(*accepted));
  }

  static const Json* accepted_encodings(const KernelVariant& variant, const std::string& operand) {
    if (!variant.raw.contains("encodings")) return nullptr;
    const Json& encodings = variant.raw["encodings"];
    if (!encodings.is_object() || !encodings.contains(operand) || !encodings[operand].is_array()) return nullptr;
    return &encodings[operand];
  }

  void resolve_weights(const ResolvedStep& step, const Operation& operation, const std::string& name,
                       StepInstance& instance, kernels::ShapeQuery& query) {
    const Json given = step.raw.contains("weights") ? step.raw["weights"] : Json();
    if (given.is_object()) {
      for (const auto& [key, value] : given.items())
        if (std::find(operation.weights.begin(), operation.weights.end(), key) == operation.weights.end())
          fail(ErrorCode::plan, "{}: operation {} has no weight \"{}\"", name, operation.name, printable(key));
    } else if (!given.is_null() && operation.weights.empty()) {
      fail(ErrorCode::plan, "{}: operation {} takes no weights", name, operation.name);
    }
    for (const std::string& weight : operation.weights) {
      const Json* entry = nullptr;
      if (given.is_object() && given.contains(weight)) entry = &given[weight];
      if (given.is_string() && operation.weights.size() == 1) entry = &given;
      if (!entry || !entry->is_string())
        fail(ErrorCode::plan, "{}: weight \"{}\" of operation {} is not named", name, weight, operation.name);
      add_weight(weight, entry->get<std::string>(), name, instance, query);
    }
  }

  /// An operation over experts takes one weight an expert: as many tensors, or the parts of one.
  void add_weight(const std::string& weight, const std::string& pattern, const std::string& name,
                  StepInstance& instance, kernels::ShapeQuery& query) {
    constexpr std::string_view kExpert = "{E}";
    const std::string tensor_name = expand_layer(pattern, instance.layer, name);
    const auto at = tensor_name.find(kExpert);
    const std::uint32_t experts = expert_count(tables_.operation(instance.variant->operation, name), instance);
    if (experts == 0) add_tensor(weight, {tensor_name}, name, instance, query);
    for (std::uint32_t expert = 0; expert < experts; ++expert) {
      WeightUse use{tensor_name, expert, experts};
      if (at != std::string::npos) use = {std::string(tensor_name).replace(at, kExpert.size(), std::to_string(expert))};
      add_tensor(weight, use, name, instance, query);
    }
  }

  /// The `experts` constant of the step's operation; 0 if it has none.
  static std::uint32_t expert_count(const Operation& operation, const StepInstance& instance) {
    for (std::size_t i = 0; i < operation.constants.size(); ++i)
      if (operation.constants[i].name == "experts") return static_cast<std::uint32_t>(instance.constants.integer(i));
    return 0;
  }

  void add_tensor(const std::string& weight, const WeightUse& use, const std::string& name, StepInstance& instance,
                  kernels::ShapeQuery& query) {
    const TensorInfo* tensor = input_.find_tensor(use.tensor);
    if (!tensor) fail(ErrorCode::plan, "{}: the model has no tensor \"{}\"", name, printable(use.tensor));
    check_encoding(*instance.variant, weight, to_string(tensor->encoding), name);
    query.weights.push_back(weight_shape(*tensor, use, name));
    instance.weights.push_back(tables_.weight(use));
  }

  static std::string expand_layer(const std::string& pattern, std::int32_t layer, const std::string& name) {
    constexpr std::string_view kPlaceholder = "{L}";
    std::string out = pattern;
    for (std::size_t at = out.find(kPlaceholder); at != std::string::npos; at = out.find(kPlaceholder, at)) {
      if (layer < 0) fail(ErrorCode::plan, "{}: weight \"{}\" asks for a layer outside the layers", name, pattern);
      out.replace(at, kPlaceholder.size(), std::to_string(layer));
    }
    return out;
  }

  void resolve_kv(const ResolvedStep& step, const Operation& operation, const std::string& name,
                  StepInstance& instance) {
    if (!step.kv_io)
      fail(ErrorCode::plan, "{}: kernel \"{}#{}\" keeps a KV cache, so the step's op must be \"attention\"", name,
           step.kernel, step.entry);
    if (step.kv_io->read != step.kv_io->write)
      fail(ErrorCode::plan, "{}: the KV cache is written as {} and read as {}", name, step.kv_io->write,
           step.kv_io->read);
    KvState state;
    state.layer = instance.layer;
    state.kv_heads = instance.constants.integer(operation.constant("kvHeads"));
    state.head_dim = instance.constants.integer(operation.constant("headDim"));
    state.window = instance.constants.integer(operation.constant("window"));
    state.encoding = kv_encoding(step.kv_io->read, name);
    check_encoding(*instance.variant, "kv", to_string(state.encoding), name);
    instance.kv = tables_.kv(state, state_ordinal_++, name);
  }

  /// A convolution's state is kept as it was computed, whatever the dtype of the KV cache.
  void resolve_convolution(const Operation& operation, const std::string& name, StepInstance& instance) {
    KvState state;
    state.layer = instance.layer;
    state.kv_heads = 1;
    state.head_dim = instance.constants.integer(operation.constant("channels"));
    state.window = instance.constants.integer(operation.constant("taps"));
    state.encoding = Encoding::f32;
    check_encoding(*instance.variant, "kv", to_string(state.encoding), name);
    instance.kv = tables_.kv(state, state_ordinal_++, name);
  }

  /// `kvcache.encoding` where the session gives one, else the dtype itself.
  Encoding kv_encoding(const std::string& dtype, const std::string& name) const {
    std::string wanted = dtype;
    const Json& session = input_.plan.session;
    if (session.contains("kvcache") && session["kvcache"].is_object() && session["kvcache"].contains("encoding") &&
        session["kvcache"]["encoding"].is_string())
      wanted = session["kvcache"]["encoding"].get<std::string>();
    const auto encoding = parse_encoding(wanted);
    if (!encoding) fail(ErrorCode::plan, "{}: kvcache.encoding \"{}\" is unknown", name, printable(wanted));
    return *encoding;
  }

  static std::int32_t in_place_operand(const Operation& operation, const StepInstance& instance) {
    const Json& raw = instance.variant->raw;
    if (!raw.contains("inPlace") || !raw["inPlace"].is_string()) return -1;
    const auto& wanted = raw["inPlace"].get_ref<const std::string&>();
    std::int32_t index = 0;
    if (operation.reads_src) {
      if (wanted == "src") return 0;
      index = 1;
    }
    const auto found = std::find(operation.inputs.begin(), operation.inputs.end(), wanted);
    if (found == operation.inputs.end()) return -1;
    return index + static_cast<std::int32_t>(found - operation.inputs.begin());
  }

  void write(const ResolvedStep& step, const std::string& name, const kernels::SlotShape& shape,
             StepInstance instance) {
    if (step.dst.starts_with('$')) fail(ErrorCode::plan, "{}: dst \"{}\" is an external input", name, step.dst);
    const auto index = static_cast<std::uint32_t>(flow_.steps.size());
    Value value;
    value.slot = step.dst;
    value.dtype = step.precision.output;
    value.encoding = dst_encoding(*instance.variant, name);
    value.shape = shape;
    value.producer = index;
    value.last_read = index;
    (void)encoded_bytes(value.encoding, shape.cols, name + ": dst");
    instance.value = static_cast<std::uint32_t>(flow_.values.size());
    flow_.values.push_back(std::move(value));
    slots_.insert_or_assign(step.dst, Slot{instance.value, section_index(step), instance.layer});
    left_.erase(step.dst);
    flow_.steps.push_back(std::move(instance));
  }

  static Encoding dst_encoding(const KernelVariant& variant, const std::string& name) {
    if (variant.raw.contains("encodings") && variant.raw["encodings"].contains("dst") &&
        variant.raw["encodings"]["dst"].is_string()) {
      const auto encoding = parse_encoding(variant.raw["encodings"]["dst"].get_ref<const std::string&>());
      if (encoding) return *encoding;
    }
    fail(ErrorCode::plan, "{}: kernel \"{}#{}\" declares no dst encoding", name, variant.file, variant.entry);
  }

  const DataflowInput& input_;
  Tables& tables_;
  std::string_view phase_;
  PhaseFlow& flow_;
  std::unordered_map<std::string, Slot> slots_;
  std::set<std::string> left_;       // slots written in a layer that has been left
  std::uint32_t state_ordinal_ = 0;  // steps of this layer that keep a state
};

}  // namespace

kernels::WeightShape weight_shape(const TensorInfo& tensor, const WeightUse& use, std::string_view label) {
  std::vector<std::uint64_t> shape = tensor.shape;
  if (use.parts > 1) {
    if (shape.size() != 3 || shape[0] != use.parts)
      fail(ErrorCode::plan, "{}: tensor \"{}\" is no stack of {} matrices, one an expert", label, printable(use.tensor),
           use.parts);
    shape.erase(shape.begin());
  }
  if (shape.size() > 2) std::erase(shape, std::uint64_t{1});
  if (shape.size() > 2)
    fail(ErrorCode::plan, "{}: tensor \"{}\" has {} dimensions; kernels take vectors and matrices", label,
         printable(use.tensor), tensor.shape.size());
  kernels::WeightShape out{use.tensor, 1, 1};
  if (shape.size() == 2) out.rows = shape[0];
  if (!shape.empty()) out.cols = shape.back();
  return out;
}

std::string_view to_string(External external) {
  switch (external) {
    case External::tokens:
      return "$tokens";
    case External::positions:
      return "$positions";
    case External::types:
      return "$types";
    case External::sampler:
      return "$sampler";
  }
  return "$tokens";
}

Dataflow check_dataflow(const DataflowInput& input) {
  Dataflow flow;
  Tables tables(input, flow);
  PhasePass(input, tables, "prefill", flow.prefill).run(input.plan.prefill);
  PhasePass(input, tables, "decode", flow.decode).run(input.plan.decode);
  return flow;
}

}  // namespace candor::plan
