#include "models/gguf_export.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "models/description.h"
#include "models/gguf_keys.h"
#include "models/manifest.h"
#include "models/step_builder.h"

namespace candor::models {
namespace {

/// New names, shapes and orders by old name.
using Edits = std::map<std::string, TensorEdit, std::less<>>;
using Shapes = std::map<std::string_view, std::span<const std::uint64_t>>;

const Family& family_of(std::string_view architecture) {
  for (const Family& family : families())
    for (const std::string_view known : family.gguf_architectures)
      if (known == architecture) return family;
  fail(ErrorCode::internal, "no family reads the GGUF architecture {}", architecture);
}

Shapes shapes_of(const ModelDescription& description) {
  Shapes shapes;
  for (const ExpectedTensor& tensor : description.tensors) shapes.emplace(tensor.name, tensor.shape);
  return shapes;
}

/// Constants are float32 to every kernel.
bool same_value(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return static_cast<float>(a.get<double>()) == static_cast<float>(b.get<double>());
  if (!a.is_array() || !b.is_array()) return a == b;
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_value);
}

/// Rows of heads stored for a rotation of halves, in the order for a rotation of neighbours: 0, r/2, 1, r/2 + 1, …
std::vector<std::uint32_t> interleaved_rows(std::uint64_t rows, std::uint64_t head_dim, std::uint64_t rotated) {
  std::vector<std::uint32_t> order;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t i = row % head_dim;
    const std::uint64_t from = i < rotated ? i % 2 * (rotated / 2) + i / 2 : i;
    order.push_back(static_cast<std::uint32_t>(row - i + from));
  }
  return order;
}

/// The weights of a step: operand → pattern.
std::map<std::string, std::string> weights_of(const StepDraft& step) {
  if (step.weights.is_string()) return {{"weight", step.weights.get<std::string>()}};
  std::map<std::string, std::string> out;
  if (step.weights.is_object())
    for (const auto& [operand, pattern] : step.weights.items()) out.emplace(operand, pattern.get<std::string>());
  return out;
}

/// Compares the steps of a model with those that its family reads from the GGUF keys that were made for it. What is
/// named, shaped, ordered or stacked otherwise becomes an edit of the tensor; any other difference is refused, because
/// the file would compute something else.
class Comparison {
 public:
  Comparison(const ModelDescription& model, const ModelDescription& file, std::string what, bool factors_in_tensors)
      : model_(model),
        file_(file),
        what_(std::move(what)),
        factors_in_tensors_(factors_in_tensors),
        model_shapes_(shapes_of(model)),
        file_shapes_(shapes_of(file)) {}

  Edits edits() {
    const std::size_t count = std::max(model_.steps.size(), file_.steps.size());
    for (std::size_t i = 0; i < count; ++i) {
      if (i >= model_.steps.size() || i >= file_.steps.size() || model_.steps[i].op != file_.steps[i].op)
        refuse(i < model_.steps.size() ? model_.steps[i].op : "nothing", "the step in its place",
               i < file_.steps.size() ? file_.steps[i].op : "nothing");
      check_places(model_.steps[i], file_.steps[i]);
      check_constants(model_.steps[i], file_.steps[i]);
    }
    for (std::size_t i = 0; i < count; ++i) add_edits(model_.steps[i], file_.steps[i]);
    return std::move(edits_);
  }

 private:
  struct Rotation {
    std::uint64_t head_dim = 0, rotated = 0;
  };

  [[noreturn]] void refuse(std::string_view step, std::string_view field, std::string_view read) const {
    fail(ErrorCode::unsupported,
         "{}: step {} has no form in GGUF: read back from its keys, {} would be {}; convert to an artifact", what_,
         step, field, read);
  }

  void check_places(const StepDraft& ours, const StepDraft& theirs) const {
    const auto check = [&](std::string_view field, const auto& a, const auto& b) {
      if (a != b) refuse(ours.op, field, to_js_json(Json(b)));
    };
    check("section", ours.section, theirs.section);
    check("src", ours.src, theirs.src);
    check("dst", ours.dst, theirs.dst);
    check("inputs", ours.inputs, theirs.inputs);
    check("layers", layers_of(ours), layers_of(theirs));
    const bool transposed = ours.operation == "matmul_transposed" && theirs.operation == "matmul";
    if (!transposed) check("operation", ours.operation, theirs.operation);
  }

  [[nodiscard]] std::vector<std::uint32_t> layers_of(const StepDraft& step) const {
    std::vector<std::uint32_t> layers = step.layers;
    if (layers.empty() && step.section == "layer")
      for (std::uint32_t layer = 0; layer < model_.layers; ++layer) layers.push_back(layer);
    return layers;
  }

  void check_constants(const StepDraft& ours, const StepDraft& theirs) {
    for (const auto& [name, value] : ours.constants.items()) {
      const Json& read = theirs.constants.contains(name) ? theirs.constants[name] : Json();
      if (name == "weightOffset") continue;  // added to the weights
      if (name == "style" && value == "half" && read == "interleaved") {
        rotations_[ours.src] = {ours.constants["headDim"].get<std::uint64_t>(),
                                2 * ours.constants["inverseFrequencies"].size()};
        continue;
      }
      // Where factors are tensors of the file, its keys alone do not say them.
      if (factors_in_tensors_ && (name == "inverseFrequencies" || name == "attentionScale")) continue;
      if (!same_value(value, read))
        refuse(fmt::format("{} ({} = {})", ours.op, name, printable(to_js_json(value), 60)), name,
               printable(to_js_json(read), 60));
    }
  }

  void add_edits(const StepDraft& ours, const StepDraft& theirs) {
    const auto to = weights_of(theirs);
    for (const auto& [operand, pattern] : weights_of(ours)) {
      const auto found = to.find(operand);
      if (found == to.end()) refuse(ours.op, operand, "absent");
      const bool by_layer = pattern.find(kLayerPlaceholder) != std::string::npos;
      const bool by_expert = pattern.find(kExpertPlaceholder) != std::string::npos;
      const std::uint64_t experts = by_expert ? ours.constants["experts"].get<std::uint64_t>() : 1;
      for (const std::uint32_t layer : by_layer ? layers_of(ours) : std::vector<std::uint32_t>{0})
        for (std::uint64_t expert = 0; expert < experts; ++expert) {
          std::string name = expand_pattern(pattern, layer, expert);
          TensorEdit edit = edit_of(ours, theirs, name, expand_pattern(found->second, layer, expert));
          if (by_expert && found->second.find(kExpertPlaceholder) == std::string::npos) {
            edit.parts = static_cast<std::uint32_t>(experts);
            edit.part = static_cast<std::uint32_t>(expert);
          }
          edits_.emplace(std::move(name), std::move(edit));
        }
    }
  }

  [[nodiscard]] TensorEdit edit_of(const StepDraft& ours, const StepDraft& theirs, std::string_view old_name,
                                   std::string new_name) const {
    const std::span<const std::uint64_t> from = model_shapes_.at(old_name);
    const std::span<const std::uint64_t> to = file_shapes_.at(new_name);
    TensorEdit edit{std::move(new_name)};
    edit.transposed = ours.operation != theirs.operation && from.size() == 2;
    // Tables, convolutions and routers, which readers of GGUF expect in f32 as they do vectors.
    const bool wide = ours.op == "embed_positions" || ours.op == "embed_types" || ours.op == "short_conv" ||
                      ours.op == "router" || from.size() == 1;
    if (wide) edit.encoding = Encoding::f32;
    const bool stacked = to.size() == from.size() + 1;
    if (!edit.transposed && !stacked && !std::equal(from.begin(), from.end(), to.begin(), to.end()))
      edit.shape.assign(to.begin(), to.end());
    if (const auto rotation = rotations_.find(ours.dst); rotation != rotations_.end() && ours.operation != "rope") {
      if (ours.operation != "matmul" && ours.operation != "bias_add")
        refuse(ours.op, "the order of its rows", "another");
      edit.row_order = interleaved_rows(from[0], rotation->second.head_dim, rotation->second.rotated);
    }
    if (ours.operation == "rmsnorm")
      if (const auto offset = static_cast<float>(offset_of(ours) - offset_of(theirs)); offset != 0)
        edit.apply = [offset](std::span<float> values, std::span<const std::uint64_t>) {
          for (float& value : values) value += offset;
        };
    return edit;
  }

  static double offset_of(const StepDraft& norm) { return norm.constants["weightOffset"].get<double>(); }

  const ModelDescription& model_;
  const ModelDescription& file_;
  std::string what_;
  bool factors_in_tensors_;
  Shapes model_shapes_, file_shapes_;
  std::map<std::string, Rotation, std::less<>> rotations_;  // by slot
  Edits edits_;
};

}  // namespace

GgufExport export_gguf(const ModelSource& source, QuantMix mix) {
  const ModelDescription model = describe(source);
  GgufExport out;
  out.vocabulary = model.vocabulary;
  out.pairs.set_string("general.type", "model");
  out.pairs.set_string("general.name", source_name(source));
  const GgufKeys keys = put_gguf_keys(out.pairs, source, model);
  out.added = keys.added;
  out.pairs.set_u32("general.quantization_version", kGgufQuantizationVersion);
  if (const auto type = gguf_file_type(mix, source.tensors())) out.pairs.set_u32("general.file_type", *type);

  const std::string header = layout_gguf("model", out.pairs, {}).files.front().header;
  const ModelSource planned = ModelSource::planned_gguf(source.path(), header, keys.looked_for);
  const ModelDescription file = family_of(keys.architecture).describe(planned, {});
  const std::string what = fmt::format("{}: as GGUF architecture {}", source.path().string(), keys.architecture);
  out.edit = [edits = Comparison(model, file, what, !keys.added.empty()).edits()](const TensorInfo& tensor) {
    const auto found = edits.find(tensor.name);
    TensorEdit edit = found == edits.end() ? TensorEdit{tensor.name} : found->second;
    edit.left_out = found == edits.end();  // the computation does not read it
    return std::optional(std::move(edit));
  };
  return out;
}

}  // namespace candor::models
