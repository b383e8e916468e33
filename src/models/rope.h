// Rotary position embedding as a table. Whatever a configuration says about scaling (Su et al. 2021; linear; Llama 3.1;
// YaRN, Peng et al. 2023; LongRoPE, Ding et al. 2024) ends as inverse frequencies and one factor on cosine and sine,
// and the plan carries just these. Not a goal: frequencies that change with a sequence's length. A position's rotation
// is one value, so that a cached key stays right; a plan takes LongRoPE's long factors when it is to hold more
// positions than the model was first trained on, and otherwise the short ones, and then holds no more than that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace candor::models {

struct RopeTable {
  std::vector<float> inverse_frequencies;  ///< one a rotated pair; angle = position × frequency
  double attention_scale = 1;              ///< multiplies cosine and sine
  // What the table was made from, for manifests.
  double theta = 10000;
  std::string scaling;  ///< linear, llama3, yarn, longrope; empty: none
  std::optional<double> factor, beta_fast, beta_slow;
  std::optional<std::uint64_t> original_positions;
  std::optional<std::uint64_t> holds_only;  ///< positions this table serves at most, where another serves more
};

struct RopeSettings {
  double theta = 10000;
  std::uint64_t rotary_dim = 0;        ///< rotated dimensions of a head, even
  std::uint64_t max_positions = 0;     ///< max_position_embeddings
  std::uint64_t wanted_positions = 0;  ///< DescribeOptions::context
  const Json* scaling = nullptr;       ///< rope_scaling or rope_parameters, null for none
  /// original_max_position_embeddings where it stands outside the scaling.
  std::optional<std::uint64_t> original_positions = std::nullopt;
};

/// Throws Error(unsupported) for an unknown scaling type or an unknown key, Error(format) for a wrong value.
[[nodiscard]] RopeTable rope_table(const RopeSettings& settings, std::string_view label);

}  // namespace candor::models
