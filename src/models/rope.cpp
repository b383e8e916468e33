#include "models/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "base/error.h"
#include "models/config_reader.h"

namespace candor::models {
namespace {

using Frequencies = std::vector<double>;

Frequencies base_frequencies(const RopeSettings& settings) {
  Frequencies out;
  for (std::uint64_t i = 0; i < settings.rotary_dim; i += 2)
    out.push_back(std::pow(settings.theta, -static_cast<double>(i) / static_cast<double>(settings.rotary_dim)));
  return out;
}

/// A scaling's factor, kept in the table.
double read_factor(ConfigReader& scaling, RopeTable& table) {
  const double factor = scaling.number("factor");
  if (!(factor > 0)) fail(ErrorCode::format, "{}: factor must be positive; got {}", scaling.label(), factor);
  table.factor = factor;
  return factor;
}

/// The context a model was first trained on: in the scaling, beside it, or else `otherwise`.
double read_original_positions(ConfigReader& scaling, const RopeSettings& settings, RopeTable& table,
                               std::optional<std::uint64_t> otherwise) {
  auto original = scaling.optional_positive("original_max_position_embeddings");
  if (!original) original = settings.original_positions;
  if (!original) original = otherwise;
  if (!original) fail(ErrorCode::format, "{}: original_max_position_embeddings is missing", scaling.label());
  table.original_positions = original;
  return static_cast<double>(*original);
}

/// Llama 3.1: long wavelengths are divided by the factor, short ones kept, those between blended.
void scale_llama3(Frequencies& frequencies, ConfigReader& scaling, const RopeSettings& settings, RopeTable& table) {
  const double factor = read_factor(scaling, table);
  const double low = scaling.number("low_freq_factor");
  const double high = scaling.number("high_freq_factor");
  const double original = read_original_positions(scaling, settings, table, std::nullopt);
  if (high <= low) fail(ErrorCode::format, "{}: high_freq_factor must exceed low_freq_factor", scaling.label());
  for (double& frequency : frequencies) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength < original / high) continue;
    if (wavelength > original / low) {
      frequency /= factor;
      continue;
    }
    const double smooth = (original / wavelength - low) / (high - low);
    frequency = (1 - smooth) * frequency / factor + smooth * frequency;
  }
}

/// YaRN, section 3.2: dimensions below the ramp keep their frequency, those above it are interpolated.
double scale_yarn(Frequencies& frequencies, ConfigReader& scaling, const RopeSettings& settings, RopeTable& table) {
  const double factor = read_factor(scaling, table);
  const double beta_fast = scaling.optional_number("beta_fast").value_or(32);
  const double beta_slow = scaling.optional_number("beta_slow").value_or(1);
  table.beta_fast = beta_fast;
  table.beta_slow = beta_slow;
  const double original = read_original_positions(scaling, settings, table, settings.max_positions);
  const bool truncate = scaling.boolean("truncate", true);
  const auto dim = static_cast<double>(settings.rotary_dim);
  const auto correction = [&](double rotations) {
    return dim * std::log(original / (rotations * 2 * std::numbers::pi)) / (2 * std::log(settings.theta));
  };
  double low = correction(beta_fast);
  double high = correction(beta_slow);
  if (truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / factor * ramp + frequencies[i] * (1 - ramp);
  }
  const auto magnitude = [&](double multiplier) {
    return factor <= 1 ? 1.0 : 0.1 * multiplier * std::log(factor) + 1.0;
  };
  const auto mscale = scaling.optional_number("mscale");
  const auto mscale_all = scaling.optional_number("mscale_all_dim");
  if (const auto given = scaling.optional_number("attention_factor")) return *given;
  if (mscale.value_or(0) != 0 && mscale_all.value_or(0) != 0) return magnitude(*mscale) / magnitude(*mscale_all);
  return magnitude(1);
}

std::vector<double> read_factors(ConfigReader& scaling, std::string_view key, std::size_t count) {
  const Json* list = scaling.find(key);
  if (!list || !list->is_array() || list->size() != count)
    fail(ErrorCode::format, "{}: {} must be a list of {} numbers, one a rotated pair", scaling.label(), key, count);
  std::vector<double> factors;
  for (const Json& entry : *list) {
    const double factor = entry.is_number() ? entry.get<double>() : 0;
    if (!(factor > 0))
      fail(ErrorCode::format, "{}: {} holds {}; factors are positive numbers", scaling.label(), key,
           printable(to_js_json(entry)));
    factors.push_back(factor);
  }
  return factors;
}

/// LongRoPE: each frequency is divided by a factor of its own, of which there are two lists.
double scale_longrope(Frequencies& frequencies, ConfigReader& scaling, const RopeSettings& settings, RopeTable& table) {
  const auto long_factors = read_factors(scaling, "long_factor", frequencies.size());
  const auto short_factors = read_factors(scaling, "short_factor", frequencies.size());
  const auto given_factor = scaling.optional_number("factor");
  const double original = read_original_positions(scaling, settings, table, std::nullopt);
  const double longest = static_cast<double>(settings.max_positions);
  const double factor = given_factor.value_or(longest / original);
  table.factor = factor;
  const std::uint64_t wanted = settings.wanted_positions == 0 ? settings.max_positions : settings.wanted_positions;
  const bool extended = static_cast<double>(wanted) > original;
  if (!extended) table.holds_only = table.original_positions;
  const auto& factors = extended ? long_factors : short_factors;
  for (std::size_t i = 0; i < frequencies.size(); ++i) frequencies[i] /= factors[i];
  if (const auto given = scaling.optional_number("attention_factor")) return *given;
  return factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(original));
}

}  // namespace

RopeTable rope_table(const RopeSettings& settings, std::string_view label) {
  if (!(settings.theta > 0)) fail(ErrorCode::format, "{}: rope_theta must be positive; got {}", label, settings.theta);
  if (settings.rotary_dim == 0 || settings.rotary_dim % 2 != 0)
    fail(ErrorCode::format, "{}: RoPE rotates an even number of dimensions; got {}", label, settings.rotary_dim);
  Frequencies frequencies = base_frequencies(settings);
  RopeTable table;
  table.theta = settings.theta;
  if (settings.scaling) {
    ConfigReader scaling(*settings.scaling, std::string(label) + ": RoPE scaling");
    scaling.harmless({"rope_theta", "partial_rotary_factor"});  // read by the family, which knows where they stand
    const auto older = scaling.optional_string("type");
    const auto newer = scaling.optional_string("rope_type");
    std::string type = newer ? *newer : older.value_or("default");
    if (type == "linear") {
      const double factor = read_factor(scaling, table);
      for (double& frequency : frequencies) frequency /= factor;
    } else if (type == "llama3") {
      scale_llama3(frequencies, scaling, settings, table);
    } else if (type == "yarn") {
      table.attention_scale = scale_yarn(frequencies, scaling, settings, table);
    } else if (type == "longrope" || type == "su") {  // "su" in the first Phi-3 configurations
      type = "longrope";
      table.attention_scale = scale_longrope(frequencies, scaling, settings, table);
    } else if (type != "default") {
      fail(ErrorCode::unsupported,
           "{}: RoPE scaling type \"{}\" is unknown; known are default, linear, llama3, longrope, yarn", label,
           printable(type));
    }
    if (type != "default") table.scaling = type;
    scaling.finish();
  }
  for (const double frequency : frequencies) table.inverse_frequencies.push_back(static_cast<float>(frequency));
  return table;
}

}  // namespace candor::models
