#include "formats/convert_plan.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "formats/quant/codec.h"

namespace candor {
namespace {

bool is_block_encoding(Encoding encoding) {
  return info(encoding).block_size > 1;
}

void check_encoding(const TensorInfo& from, Encoding to, const TensorEdit& edit, const ConvertOptions& options) {
  const bool moves_stored_rows = !edit.row_order.empty() && from.layout != TensorLayout::rows;
  const bool rearranged = edit.rewrites_values() || moves_stored_rows;
  if (from.encoding == to && !rearranged) return;
  if (!can_quantize(to) && rearranged)
    fail(ErrorCode::unsupported, "tensor \"{}\" must be rearranged, which {} does not allow; choose another --quant",
         printable(from.name), to_string(to));
  if (!can_quantize(to))
    fail(ErrorCode::unsupported, "tensor \"{}\": {} cannot be written", printable(from.name), to_string(to));
  if (is_block_encoding(from.encoding) && !options.requantize)
    fail(ErrorCode::unsupported,
         "tensor \"{}\" is {} already; encoding it as {} loses precision twice: convert the original weights, or allow "
         "it with --requantize",
         printable(from.name), to_string(from.encoding), to_string(to));
}

/// A tensor alone; those of a stack are joined to the first one.
PlannedTensor plan_tensor(const TensorInfo& tensor, Encoding to, TensorEdit edit, const ConvertOptions& options) {
  to = edit.encoding.value_or(to);
  PlannedTensor planned;
  planned.sources = {&tensor};
  planned.output.name = edit.name;
  planned.output.encoding = to;
  planned.output.shape = edited_shape(tensor, edit);
  check_encoding(tensor, to, edit, options);
  if (to == tensor.encoding && !edit.rewrites_values() && edit.row_order.empty() &&
      tensor.layout != TensorLayout::rows) {
    if (options.format != OutputFormat::artifact)
      fail(ErrorCode::unsupported, "tensor \"{}\" has layout {}, which {} does not have; choose a --quant",
           printable(tensor.name), to_string(tensor.layout), to_string(options.format));
    planned.output.layout = tensor.layout;
  }
  if (edit.parts > 0) planned.output.shape.insert(planned.output.shape.begin(), edit.parts);
  planned.output.bytes = padded_bytes(to, planned.output.shape, planned.output.layout, tensor.name);
  planned.edit = std::move(edit);
  return planned;
}

PlannedTensor plan_added(const AddedTensor& tensor) {
  PlannedTensor planned;
  planned.added = &tensor;
  planned.output.name = tensor.name;
  planned.output.shape = {tensor.values.size()};
  planned.output.bytes = tensor.values.size() * sizeof(float);
  return planned;
}

/// Joins the tensors of a stack as they come.
class Stacks {
 public:
  /// True if `tensor` went to a stack that is in `plan`.
  bool take(PlannedTensor& tensor, std::vector<PlannedTensor>& plan) {
    if (tensor.edit.parts == 0) return false;
    const auto [found, added] = by_name_.try_emplace(tensor.output.name, plan.size());
    const TensorInfo* source = tensor.sources.front();
    if (added) {
      tensor.sources.assign(tensor.edit.parts, nullptr);
      plan.push_back(std::move(tensor));
    }
    PlannedTensor& stack = plan[found->second];
    const bool fits = added || (stack.output.shape == tensor.output.shape && stack.edit.parts == tensor.edit.parts);
    const std::uint32_t part = added ? stack.edit.part : tensor.edit.part;
    if (!fits || part >= stack.sources.size() || stack.sources[part])
      fail(ErrorCode::format, "tensor \"{}\" does not fit the others that are to be stacked as {}",
           printable(source->name), printable(stack.output.name));
    if (!added && (stack.output.encoding != tensor.output.encoding || source->encoding != first_of(stack).encoding))
      fail(ErrorCode::unsupported,
           "tensor \"{}\" is to be stacked with others of another encoding as {}; choose one --quant for them",
           printable(source->name), printable(stack.output.name));
    stack.sources[part] = source;
    return true;
  }

  void check_complete(const std::vector<PlannedTensor>& plan) const {
    for (const auto& [name, index] : by_name_)
      if (const auto& sources = plan[index].sources;
          std::find(sources.begin(), sources.end(), nullptr) != sources.end())
        fail(ErrorCode::format, "of the {} tensors that are to be stacked as {} some are missing", sources.size(),
             printable(name));
  }

 private:
  static const TensorInfo& first_of(const PlannedTensor& stack) {
    return **std::find_if(stack.sources.begin(), stack.sources.end(), [](const TensorInfo* one) { return one; });
  }

  std::unordered_map<std::string, std::size_t> by_name_;
};

/// Each tensor's edit; the name alone where the caller has none.
std::vector<TensorEdit> edits_of(const ModelSource& source, const ConvertOptions& options) {
  std::vector<TensorEdit> edits;
  edits.reserve(source.tensors().size());
  for (const TensorInfo& tensor : source.tensors()) {
    std::optional<TensorEdit> given;
    if (options.edit) given = options.edit(tensor);
    edits.push_back(given ? std::move(*given) : TensorEdit{tensor.name});
  }
  return edits;
}

/// The mix's choices. They depend on a tensor's place in the model, which its own name says, and on its final rows.
std::vector<Encoding> encodings_of(const ModelSource& source, const std::vector<TensorEdit>& edits, QuantMix mix) {
  std::vector<TensorInfo> shaped = source.tensors();
  for (std::size_t i = 0; i < shaped.size(); ++i)
    if (!edits[i].left_out) shaped[i].shape = edited_shape(shaped[i], edits[i]);
  return choose_encodings(mix, shaped);
}

}  // namespace

bool PlannedTensor::keeps_bytes() const {
  const TensorInfo& first = *sources.front();
  return !edit.rewrites_values() && output.encoding == first.encoding && output.layout == first.layout;
}

std::vector<PlannedTensor> plan_conversion(const ModelSource& source, const ConvertOptions& options,
                                           std::vector<std::string>& left_out) {
  const std::vector<TensorInfo>& tensors = source.tensors();
  std::vector<TensorEdit> edits = edits_of(source, options);
  const std::vector<Encoding> encodings = encodings_of(source, edits, options.mix);
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < tensors.size(); ++i) names.insert(names.end(), {tensors[i].name, edits[i].name});
  options.map.check_used(names);
  std::vector<PlannedTensor> plan;
  plan.reserve(tensors.size() + options.added.size());
  Stacks stacks;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TensorEdit& edit = edits[i];
    if (edit.left_out) {
      left_out.push_back(tensors[i].name);
      continue;
    }
    auto mapped = options.map.find(tensors[i].name);
    if (!mapped) mapped = options.map.find(edit.name);
    if (mapped) edit.encoding = mapped;
    PlannedTensor planned = plan_tensor(tensors[i], encodings[i], std::move(edit), options);
    if (!stacks.take(planned, plan)) plan.push_back(std::move(planned));
  }
  stacks.check_complete(plan);
  for (const AddedTensor& tensor : options.added) plan.push_back(plan_added(tensor));
  return plan;
}

std::vector<TensorInfo> outputs_of(const std::vector<PlannedTensor>& plan) {
  std::vector<TensorInfo> outputs;
  outputs.reserve(plan.size());
  for (const PlannedTensor& tensor : plan) outputs.push_back(tensor.output);
  return outputs;
}

std::vector<std::string> keep_listed(std::vector<PlannedTensor>& plan, const Json& header) {
  const auto listed = header.find("tensors");
  if (listed == header.end() || !listed->is_object()) return {};
  std::unordered_set<std::string> names;
  for (const auto& [name, entry] : listed->items()) names.insert(name);
  std::vector<std::string> left_out;
  std::erase_if(plan, [&](const PlannedTensor& tensor) {
    if (names.contains(tensor.output.name)) return false;
    left_out.push_back(tensor.output.name);
    return true;
  });
  return left_out;
}

}  // namespace candor
