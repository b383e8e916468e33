#include "engine/golden.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/sha256.h"

namespace candor {
namespace {

constexpr std::uint32_t kPositions = 16;
constexpr std::size_t kMostPositions = 4096;

/// Ids spread over the vocabulary: any will do, if they are the same each time.
std::vector<std::uint32_t> golden_tokens(const runtime::CompiledModel& model) {
  constexpr std::uint64_t kStride = 2'654'435'761;  // 2^32 over the golden ratio
  std::vector<std::uint32_t> tokens;
  const std::uint64_t count = std::min<std::uint64_t>(kPositions, model.max_positions);
  for (std::uint64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::uint32_t>((i + 1) * kStride % model.vocabulary));
  return tokens;
}

std::string digest_of(std::span<const float> logits) {
  return "sha256:" + sha256_hex(std::as_bytes(logits));
}

std::span<const float> row_of(std::span<const float> logits, std::size_t row, std::size_t cols) {
  return logits.subspan(row * cols, cols);
}

std::uint32_t largest_of(std::span<const float> row) {
  return static_cast<std::uint32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

[[noreturn]] void refuse(const char* field) {
  fail(ErrorCode::format, "manifest: golden.{} is not as candor convert writes it; remove golden to go without it",
       field);
}

std::vector<std::uint32_t> read_tokens(const Json& golden, std::uint64_t vocabulary) {
  std::vector<std::uint32_t> tokens;
  if (!golden.is_object() || !golden.contains("tokens") || !golden["tokens"].is_array()) refuse("tokens");
  for (const Json& token : golden["tokens"]) {
    const double id = token.is_number() ? token.get<double>() : -1;
    if (!(id >= 0 && id < static_cast<double>(vocabulary))) refuse("tokens");
    tokens.push_back(static_cast<std::uint32_t>(id));
  }
  if (tokens.empty() || tokens.size() > kMostPositions) refuse("tokens");
  return tokens;
}

double number_of(const Json& entry, const char* key) {
  if (!entry.is_object() || !entry.contains(key) || !entry[key].is_number()) refuse("largest");
  return entry[key].get<double>();
}

}  // namespace

Json record_golden(Engine& engine) {
  const runtime::CompiledModel& model = engine.model().compiled();
  const std::vector<std::uint32_t> tokens = golden_tokens(model);
  const std::vector<float> logits = engine.logits(tokens);
  Json largest = Json::array();
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    const auto values = row_of(logits, row, model.vocabulary);
    const std::uint32_t token = largest_of(values);
    largest.push_back({{"token", token}, {"logit", values[token]}});
  }
  return {{"tokens", tokens}, {"largest", std::move(largest)}, {"digest", digest_of(logits)}};
}

GoldenComparison compare_golden(Engine& engine, const Json& golden) {
  const runtime::CompiledModel& model = engine.model().compiled();
  const std::vector<std::uint32_t> tokens = read_tokens(golden, model.vocabulary);
  if (!golden.contains("largest") || !golden["largest"].is_array() || golden["largest"].size() != tokens.size())
    refuse("largest");
  const std::vector<float> logits = engine.logits(tokens);
  GoldenComparison result;
  result.positions = tokens.size();
  result.same_bits = golden.contains("digest") && golden["digest"] == digest_of(logits);
  double scale = 0;
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    const Json& recorded = golden["largest"][row];
    const double token = number_of(recorded, "token");
    const double logit = number_of(recorded, "logit");
    if (!(token >= 0 && token < static_cast<double>(model.vocabulary))) refuse("largest");
    const auto values = row_of(logits, row, model.vocabulary);
    if (static_cast<double>(largest_of(values)) != token) ++result.other_tokens;
    scale = std::max(scale, std::abs(logit));
    result.largest_difference = std::max(
        result.largest_difference, std::abs(static_cast<double>(values[static_cast<std::size_t>(token)]) - logit));
  }
  if (scale > 0) result.largest_difference /= scale;
  return result;
}

}  // namespace candor
