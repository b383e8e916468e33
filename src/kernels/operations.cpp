#include "kernels/operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/error.h"

namespace candor::kernels {
namespace {

std::vector<std::string> string_list(const Json& entry, const char* key, const std::string& label) {
  std::vector<std::string> out;
  if (!entry.contains(key)) return out;
  if (!entry[key].is_array()) fail(ErrorCode::format, "{}.{} must be an array of names", label, key);
  for (const Json& item : entry[key]) {
    if (!item.is_string()) fail(ErrorCode::format, "{}.{} must be an array of names", label, key);
    out.push_back(item.get<std::string>());
  }
  return out;
}

ConstantType parse_type(const std::string& type, const std::string& label) {
  if (type == "f32") return ConstantType::number;
  if (type == "u32") return ConstantType::integer;
  if (type == "bool") return ConstantType::boolean;
  if (type == "enum") return ConstantType::enumeration;
  if (type == "f32[]") return ConstantType::list;
  fail(ErrorCode::format, "{}: constant type \"{}\" is none of f32, u32, bool, enum, f32[]", label, printable(type));
}

double number_of(const Json& value, std::string_view label, const std::string& name) {
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    fail(ErrorCode::plan, "{}: constant {} must be a finite number; got {}", label, name, printable(to_js_json(value)));
  return value.get<double>();
}

void append_constant(const ConstantSchema& schema, const Json& value, std::string_view label, ConstantBlock& block) {
  const auto refuse = [&](const char* wanted) {
    fail(ErrorCode::plan, "{}: constant {} must be {}; got {}", label, schema.name, wanted,
         printable(to_js_json(value)));
  };
  switch (schema.type) {
    case ConstantType::number:
      block.values.push_back(number_of(value, label, schema.name));
      break;
    case ConstantType::integer: {
      const double number = number_of(value, label, schema.name);
      if (number < 0 || number > 4294967295.0 || number != std::floor(number)) refuse("an integer from 0 to 2^32 - 1");
      block.values.push_back(number);
      break;
    }
    case ConstantType::boolean:
      if (!value.is_boolean()) refuse("true or false");
      block.values.push_back(value.get<bool>() ? 1 : 0);
      break;
    case ConstantType::enumeration: {
      const auto found = value.is_string() ? std::find(schema.choices.begin(), schema.choices.end(),
                                                       value.get_ref<const std::string&>())
                                           : schema.choices.end();
      if (found == schema.choices.end()) refuse(fmt::format("one of {}", fmt::join(schema.choices, ", ")).c_str());
      block.values.push_back(static_cast<double>(found - schema.choices.begin()));
      break;
    }
    case ConstantType::list:
      if (!value.is_array()) refuse("an array of numbers");
      for (const Json& element : value) block.values.push_back(number_of(element, label, schema.name));
      break;
  }
}

// Shape rules. Each checks what its operation needs and returns the shape of dst.

using Rule = SlotShape (*)(const Operation&, const ShapeQuery&);

void require_cols(const ShapeQuery& query, std::string_view operand, std::uint64_t cols, std::uint64_t wanted) {
  if (cols != wanted)
    fail(ErrorCode::plan, "{}: operand {} has {} columns where {} are needed", query.label, operand, cols, wanted);
}

void require_vector(const ShapeQuery& query, const WeightShape& weight, std::uint64_t length) {
  if (weight.rows != 1 || weight.cols != length)
    fail(ErrorCode::plan, "{}: weight {} is [{}, {}] where a vector of {} is needed", query.label, weight.name,
         weight.rows, weight.cols, length);
}

void require_same_rows(const ShapeQuery& query, std::string_view operand, const SlotShape& shape) {
  if (shape.rows != query.operands[0].rows)
    fail(ErrorCode::plan, "{}: operand {} has one row a {} but src one a {}", query.label, operand,
         shape.rows == RowKind::tokens ? "token" : "sequence",
         query.operands[0].rows == RowKind::tokens ? "token" : "sequence");
}

void require_same(const ShapeQuery& query, std::string_view operand, const SlotShape& shape) {
  require_cols(query, operand, shape.cols, query.operands[0].cols);
  require_same_rows(query, operand, shape);
}

SlotShape same_as_src(const Operation&, const ShapeQuery& query) {
  return query.operands[0];
}

SlotShape elementwise_pair(const Operation& operation, const ShapeQuery& query) {
  require_same(query, operation.inputs[0], query.operands[1]);
  return query.operands[0];
}

SlotShape gather(const Operation&, const ShapeQuery& query) {
  return {RowKind::tokens, query.weights[0].cols};
}

SlotShape rmsnorm(const Operation& operation, const ShapeQuery& query) {
  const std::uint64_t width = query.constants->integer(operation.constant("width"));
  if (width == 0 || query.operands[0].cols % width != 0)
    fail(ErrorCode::plan, "{}: width {} does not divide the {} columns of src", query.label, width,
         query.operands[0].cols);
  require_vector(query, query.weights[0], width);
  return query.operands[0];
}

SlotShape vector_weights(const Operation&, const ShapeQuery& query) {
  for (const WeightShape& weight : query.weights) require_vector(query, weight, query.operands[0].cols);
  return query.operands[0];
}

void require_input_cols(const ShapeQuery& query) {
  for (const WeightShape& weight : query.weights)
    if (weight.cols != query.operands[0].cols)
      fail(ErrorCode::plan, "{}: weight {} is [{}, {}] but src has {} columns", query.label, weight.name, weight.rows,
           weight.cols, query.operands[0].cols);
}

SlotShape matmul(const Operation&, const ShapeQuery& query) {
  require_input_cols(query);
  return {query.operands[0].rows, query.weights[0].rows};
}

SlotShape matmul_transposed(const Operation&, const ShapeQuery& query) {
  if (query.weights[0].rows != query.operands[0].cols)
    fail(ErrorCode::plan, "{}: weight {} is [{}, {}] but src has {} columns", query.label, query.weights[0].name,
         query.weights[0].rows, query.weights[0].cols, query.operands[0].cols);
  return {query.operands[0].rows, query.weights[0].cols};
}

SlotShape rope(const Operation& operation, const ShapeQuery& query) {
  const std::uint64_t head_dim = query.constants->integer(operation.constant("headDim"));
  const std::uint64_t rotary = 2 * query.constants->count(operation.constant("inverseFrequencies"));
  if (head_dim == 0 || query.operands[0].cols % head_dim != 0)
    fail(ErrorCode::plan, "{}: headDim {} does not divide the {} columns of src", query.label, head_dim,
         query.operands[0].cols);
  if (rotary == 0 || rotary > head_dim)
    fail(ErrorCode::plan, "{}: {} inverse frequencies rotate {} of {} dimensions of a head", query.label, rotary / 2,
         rotary, head_dim);
  return query.operands[0];
}

void require_heads(const ShapeQuery& query, std::uint64_t heads, std::uint64_t kv_heads, std::uint64_t head_dim) {
  if (heads == 0 || kv_heads == 0 || head_dim == 0 || heads % kv_heads != 0)
    fail(ErrorCode::plan, "{}: {} heads, {} kvHeads and headDim {} do not fit together", query.label, heads, kv_heads,
         head_dim);
}

SlotShape attention(const Operation& operation, const ShapeQuery& query) {
  const ConstantBlock& constants = *query.constants;
  const std::uint64_t heads = constants.integer(operation.constant("heads"));
  const std::uint64_t kv_heads = constants.integer(operation.constant("kvHeads"));
  const std::uint64_t head_dim = constants.integer(operation.constant("headDim"));
  require_heads(query, heads, kv_heads, head_dim);
  require_cols(query, "src", query.operands[0].cols, heads * head_dim);
  require_cols(query, "k", query.operands[1].cols, kv_heads * head_dim);
  require_cols(query, "v", query.operands[2].cols, kv_heads * head_dim);
  for (const SlotShape& operand : query.operands)
    if (operand.rows != RowKind::tokens)
      fail(ErrorCode::plan, "{}: attention needs one row a token; row_slice must come later", query.label);
  return query.operands[0];
}

// Fused operations: the rules of those they stand for.

SlotShape matmul_residual(const Operation& operation, const ShapeQuery& query) {
  const SlotShape product = matmul(operation, query);
  require_cols(query, "residual", query.operands[1].cols, product.cols);
  require_same_rows(query, "residual", query.operands[1]);
  return product;
}

SlotShape qkv_matmul(const Operation&, const ShapeQuery& query) {
  require_input_cols(query);
  std::uint64_t cols = 0;
  for (const WeightShape& weight : query.weights) cols += weight.rows;
  return {query.operands[0].rows, cols};
}

SlotShape gated_matmul(const Operation&, const ShapeQuery& query) {
  require_input_cols(query);
  if (query.weights[0].rows != query.weights[1].rows)
    fail(ErrorCode::plan, "{}: gate has {} outputs and up {}; they must be as many", query.label, query.weights[0].rows,
         query.weights[1].rows);
  return {query.operands[0].rows, query.weights[0].rows};
}

SlotShape rope_attention(const Operation& operation, const ShapeQuery& query) {
  const ConstantBlock& constants = *query.constants;
  const std::uint64_t head_dim = constants.integer(operation.constant("headDim"));
  const std::uint64_t heads = constants.integer(operation.constant("heads"));
  const std::uint64_t kv_heads = constants.integer(operation.constant("kvHeads"));
  require_heads(query, heads, kv_heads, head_dim);
  require_cols(query, "src", query.operands[0].cols, (heads + 2 * kv_heads) * head_dim);
  (void)rope(operation, query);
  if (query.operands[0].rows != RowKind::tokens)
    fail(ErrorCode::plan, "{}: attention needs one row a token; row_slice must come later", query.label);
  return {query.operands[0].rows, heads * head_dim};
}

SlotShape rmsnorm_quantize(const Operation& operation, const ShapeQuery& query) {
  const std::uint64_t width = query.constants->integer(operation.constant("width"));
  if (width != query.operands[0].cols)
    fail(ErrorCode::plan, "{}: width is {}; rows of {} columns are normalised whole", query.label, width,
         query.operands[0].cols);
  return rmsnorm(operation, query);
}

SlotShape row_slice(const Operation& operation, const ShapeQuery& query) {
  const auto& choices = operation.constants[operation.constant("rows")].choices;
  const bool last = choices[query.constants->integer(operation.constant("rows"))] == "last";
  if (query.operands[0].rows != RowKind::tokens)
    fail(ErrorCode::plan, "{}: src was already reduced to one row a sequence", query.label);
  return {last ? RowKind::sequences : RowKind::tokens, query.operands[0].cols};
}

SlotShape slice_columns(const Operation& operation, const ShapeQuery& query) {
  const std::uint64_t offset = query.constants->integer(operation.constant("offset"));
  const std::uint64_t width = query.constants->integer(operation.constant("width"));
  if (width == 0 || offset + width > query.operands[0].cols)
    fail(ErrorCode::plan, "{}: columns {} to {} lie outside the {} of src", query.label, offset, offset + width,
         query.operands[0].cols);
  return {query.operands[0].rows, width};
}

SlotShape top_k(const Operation& operation, const ShapeQuery& query) {
  const std::uint64_t count = query.constants->integer(operation.constant("count"));
  if (count == 0 || count > query.operands[0].cols)
    fail(ErrorCode::plan, "{}: {} of {} columns cannot be chosen", query.label, count, query.operands[0].cols);
  return {query.operands[0].rows, count};
}

SlotShape routing_weights(const Operation&, const ShapeQuery& query) {
  require_same_rows(query, "experts", query.operands[1]);
  return {query.operands[0].rows, query.operands[1].cols};
}

SlotShape expert_matmul(const Operation& operation, const ShapeQuery& query) {
  const std::uint64_t per_token = query.constants->integer(operation.constant("perToken"));
  const std::uint64_t groups = query.constants->integer(operation.constant("inputGroups"));
  require_same_rows(query, "experts", query.operands[1]);
  if (per_token == 0 || query.constants->integer(operation.constant("experts")) == 0)
    fail(ErrorCode::plan, "{}: experts and perToken must be positive", query.label);
  require_cols(query, "experts", query.operands[1].cols, per_token);
  if (groups != 1 && groups != per_token)
    fail(ErrorCode::plan, "{}: inputGroups is {}; 1 and perToken ({}) are possible", query.label, groups, per_token);
  const WeightShape& first = query.weights[0];
  for (const WeightShape& weight : query.weights)
    if (weight.rows != first.rows || weight.cols != first.cols)
      fail(ErrorCode::plan, "{}: weight {} is [{}, {}] but {} is [{}, {}]", query.label, weight.name, weight.rows,
           weight.cols, first.name, first.rows, first.cols);
  require_cols(query, "src", query.operands[0].cols, first.cols * groups);
  return {query.operands[0].rows, first.rows * per_token};
}

SlotShape combine_experts(const Operation&, const ShapeQuery& query) {
  require_same_rows(query, "weights", query.operands[1]);
  if (query.operands[0].cols % query.operands[1].cols != 0)
    fail(ErrorCode::plan, "{}: {} weights do not divide the {} columns of src", query.label, query.operands[1].cols,
         query.operands[0].cols);
  return {query.operands[0].rows, query.operands[0].cols / query.operands[1].cols};
}

SlotShape short_conv(const Operation& operation, const ShapeQuery& query) {
  const std::uint64_t channels = query.constants->integer(operation.constant("channels"));
  const std::uint64_t taps = query.constants->integer(operation.constant("taps"));
  require_cols(query, "src", query.operands[0].cols, channels);
  if (query.operands[0].rows != RowKind::tokens)
    fail(ErrorCode::plan, "{}: a convolution needs one row a token; row_slice must come later", query.label);
  if (taps == 0 || query.weights[0].rows != channels || query.weights[0].cols != taps)
    fail(ErrorCode::plan, "{}: weight {} is [{}, {}] where [{}, {}] is needed", query.label, query.weights[0].name,
         query.weights[0].rows, query.weights[0].cols, channels, taps);
  return query.operands[0];
}

SlotShape pool(const Operation&, const ShapeQuery& query) {
  if (query.operands[0].rows != RowKind::tokens)
    fail(ErrorCode::plan, "{}: src was already reduced to one row a sequence", query.label);
  return {RowKind::sequences, query.operands[0].cols};
}

SlotShape sample(const Operation&, const ShapeQuery& query) {
  if (query.operands[0].rows != RowKind::sequences)
    fail(ErrorCode::plan, "{}: src has one row a token; select the last one with row_slice first", query.label);
  return {RowKind::sequences, 1};
}

struct NamedRule {
  std::string_view name;
  Rule rule;
};

constexpr std::array kRules = std::to_array<NamedRule>({
    {"gather", gather},
    {"rmsnorm", rmsnorm},
    {"layernorm", vector_weights},
    {"matmul", matmul},
    {"matmul_transposed", matmul_transposed},
    {"bias_add", vector_weights},
    {"rope", rope},
    {"attention", attention},
    {"gated_activation", elementwise_pair},
    {"activation", same_as_src},
    {"residual_add", elementwise_pair},
    {"row_slice", row_slice},
    {"softcap", same_as_src},
    {"scale", same_as_src},
    {"multiply", elementwise_pair},
    {"softmax", same_as_src},
    {"top_k", top_k},
    {"routing_weights", routing_weights},
    {"expert_matmul", expert_matmul},
    {"combine_experts", combine_experts},
    {"short_conv", short_conv},
    {"pool", pool},
    {"l2_normalize", same_as_src},
    {"quantize", same_as_src},
    {"slice_columns", slice_columns},
    {"matmul_residual", matmul_residual},
    {"qkv_matmul", qkv_matmul},
    {"gated_matmul", gated_matmul},
    {"rope_attention", rope_attention},
    {"rmsnorm_quantize", rmsnorm_quantize},
    {"cast", same_as_src},
    {"sample", sample},
});

constexpr auto kNames = [] {
  std::array<std::string_view, kRules.size()> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kRules[i].name;
  return names;
}();

}  // namespace

std::size_t Operation::constant(std::string_view constant_name) const {
  for (std::size_t i = 0; i < constants.size(); ++i)
    if (constants[i].name == constant_name) return i;
  fail(ErrorCode::internal, "operation {} declares no constant {}", name, constant_name);
}

Operation parse_operation(const std::string& name, const Json& entry) {
  const std::string label = "registry operation \"" + printable(name) + "\"";
  if (!entry.is_object()) fail(ErrorCode::format, "{} must be an object", label);
  Operation operation;
  operation.name = name;
  if (entry.contains("reads_src")) {
    if (!entry["reads_src"].is_boolean()) fail(ErrorCode::format, "{}.reads_src must be true or false", label);
    operation.reads_src = entry["reads_src"].get<bool>();
  }
  operation.inputs = string_list(entry, "inputs", label);
  operation.weights = string_list(entry, "weights", label);
  if (!entry.contains("constants")) return operation;
  if (!entry["constants"].is_array()) fail(ErrorCode::format, "{}.constants must be an array", label);
  for (const Json& item : entry["constants"]) {
    if (!item.is_object() || !item.contains("name") || !item["name"].is_string() || !item.contains("type") ||
        !item["type"].is_string())
      fail(ErrorCode::format, "{}.constants must hold objects with name and type", label);
    ConstantSchema schema;
    schema.name = item["name"].get<std::string>();
    schema.type = parse_type(item["type"].get<std::string>(), label);
    schema.choices = string_list(item, "choices", label);
    if (schema.type == ConstantType::enumeration && schema.choices.empty())
      fail(ErrorCode::format, "{}: enum constant {} has no choices", label, schema.name);
    operation.constants.push_back(std::move(schema));
  }
  return operation;
}

ConstantBlock flatten_constants(const Operation& operation, const Json& constants, std::string_view label) {
  if (!constants.is_object() && !constants.is_null()) fail(ErrorCode::plan, "{}: constants must be an object", label);
  if (constants.is_object()) {
    for (const auto& [key, value] : constants.items()) {
      const bool known = std::any_of(operation.constants.begin(), operation.constants.end(),
                                     [&key = key](const ConstantSchema& schema) { return schema.name == key; });
      if (!known)
        fail(ErrorCode::plan, "{}: unknown constant \"{}\" for operation {}", label, printable(key), operation.name);
    }
  }
  ConstantBlock block;
  for (const ConstantSchema& schema : operation.constants) {
    block.begin.push_back(static_cast<std::uint32_t>(block.values.size()));
    if (!constants.is_object() || !constants.contains(schema.name))
      fail(ErrorCode::plan, "{}: constant {} of operation {} is missing", label, schema.name, operation.name);
    append_constant(schema, constants[schema.name], label, block);
  }
  block.begin.push_back(static_cast<std::uint32_t>(block.values.size()));
  return block;
}

SlotShape infer_shape(const Operation& operation, const ShapeQuery& query) {
  for (const NamedRule& entry : kRules)
    if (entry.name == operation.name) return entry.rule(operation, query);
  fail(ErrorCode::plan, "{}: operation {} has no shape rule", query.label, operation.name);
}

std::span<const std::string_view> known_operations() {
  return kNames;
}

}  // namespace candor::kernels
