// The operation catalogue: for each operation of the registry, the operands and constants a step must give and the
// shape of what it writes. Names and constants are data (registry.json); the shape rules are here, one function an
// operation. Goals: a step that contradicts its operation is an error that names the step, the operand and both
// numbers, before anything is allocated. Not a goal: knowing kernels; variants of an operation share its rules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace candor::kernels {

enum class ConstantType { number, integer, boolean, enumeration, list };

struct ConstantSchema {
  std::string name;
  ConstantType type = ConstantType::number;
  std::vector<std::string> choices;  ///< of an enumeration
};

/// What registry.json says of one operation, apart from its variants.
struct Operation {
  std::string name;
  bool reads_src = true;
  std::vector<std::string> inputs;   ///< named operands after src
  std::vector<std::string> weights;  ///< named weights
  std::vector<ConstantSchema> constants;

  /// The index of a constant. Throws Error(internal) if the operation has none of that name.
  [[nodiscard]] std::size_t constant(std::string_view constant_name) const;
};

/// Reads one entry of the registry's `operations`. Throws Error(format).
[[nodiscard]] Operation parse_operation(const std::string& name, const Json& entry);

/// A step's constants in the operation's order (see cpu::Constants).
struct ConstantBlock {
  std::vector<double> values;
  std::vector<std::uint32_t> begin;

  [[nodiscard]] double number(std::size_t i) const { return values[begin[i]]; }
  [[nodiscard]] std::uint64_t integer(std::size_t i) const { return static_cast<std::uint64_t>(values[begin[i]]); }
  [[nodiscard]] std::size_t count(std::size_t i) const { return begin[i + 1] - begin[i]; }
};

/// Checks and orders a step's `constants`. Every constant must be given and no other may be. `label` names the step.
/// Throws Error(plan).
[[nodiscard]] ConstantBlock flatten_constants(const Operation& operation, const Json& constants,
                                              std::string_view label);

/// How many rows a slot has while a batch runs: one a token, or one a sequence.
enum class RowKind { tokens, sequences };

struct SlotShape {
  RowKind rows = RowKind::tokens;
  std::uint64_t cols = 0;
  bool operator==(const SlotShape&) const = default;
};

/// A weight seen as a matrix [rows, cols]; a vector has one row.
struct WeightShape {
  std::string name;
  std::uint64_t rows = 1;
  std::uint64_t cols = 0;
};

struct ShapeQuery {
  std::string_view label;           ///< names the step in errors
  std::vector<SlotShape> operands;  ///< src first if the operation reads it, then the named inputs
  std::vector<WeightShape> weights;
  const ConstantBlock* constants = nullptr;
};

/// The shape of what the operation writes. Throws Error(plan) if operands, weights and constants do not fit together,
/// or if the operation has no shape rule.
[[nodiscard]] SlotShape infer_shape(const Operation& operation, const ShapeQuery& query);

/// Operations that have a shape rule; the registry may hold no other.
[[nodiscard]] std::span<const std::string_view> known_operations();

}  // namespace candor::kernels
