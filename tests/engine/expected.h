// What another implementation computes of a model: expected.safetensors of a reference folder
// (scripts/reference_logits.py says what is in it), and the comparison of logits and greedy tokens.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/safetensors.h"

namespace candor {

class Expected {
 public:
  explicit Expected(const std::filesystem::path& folder) : file_(folder / "expected.safetensors") {
    for (const TensorInfo& tensor : parse_safetensors(file_.bytes(), folder.string()).tensors)
      tensors_.emplace(tensor.name, tensor);
  }

  [[nodiscard]] bool has(const std::string& name) const { return tensors_.contains(name); }
  [[nodiscard]] const std::vector<std::uint64_t>& shape(const std::string& name) const {
    return tensors_.at(name).shape;
  }
  template <typename T>
  [[nodiscard]] std::vector<T> get(const std::string& name) const {
    const TensorInfo& tensor = tensors_.at(name);
    std::vector<T> out(tensor.elements());
    EXPECT_EQ(tensor.bytes, out.size() * sizeof(T)) << name;
    std::memcpy(out.data(), file_.bytes().data() + tensor.extents[0].offset, tensor.bytes);
    return out;
  }
  [[nodiscard]] std::vector<std::uint32_t> tokens(const std::string& name) const {
    const auto ids = get<std::int32_t>(name);
    return {ids.begin(), ids.end()};
  }

 private:
  MappedFile file_;
  std::map<std::string, TensorInfo> tensors_;
};

/// The largest difference, as a share of the largest value wanted.
inline double largest_error(std::span<const float> got, std::span<const float> wanted) {
  EXPECT_EQ(got.size(), wanted.size());
  double largest = 0;
  double scale = 0;
  for (std::size_t i = 0; i < std::min(got.size(), wanted.size()); ++i) {
    largest = std::max(largest, std::abs(double{got[i]} - double{wanted[i]}));
    scale = std::max(scale, std::abs(double{wanted[i]}));
  }
  return largest / scale;
}

/// input_ids and the greedy tokens after them, which are forced so that one tie does not spoil the rest.
inline std::vector<std::uint32_t> forced_tokens(const Expected& expected) {
  std::vector<std::uint32_t> tokens = expected.tokens("input_ids");
  for (const std::uint32_t token : expected.tokens("greedy_ids")) tokens.push_back(token);
  return tokens;
}

/// How `logits`, a row for each of forced_tokens(), differ.
struct Parity {
  double error = 0;                      ///< of the rows whose logits are known
  std::vector<std::size_t> other_token;  ///< steps whose best token is another, ties apart
  std::size_t ties = 0;                  ///< such steps where the best two are closer than 0.002
};

inline Parity parity(const Expected& expected, std::span<const float> logits) {
  const std::vector<float> wanted = expected.get<float>("logits");
  const std::size_t vocabulary = expected.shape("logits").at(1);
  const std::size_t prompt = expected.shape("input_ids").at(0);
  const auto greedy = expected.tokens("greedy_ids");
  const auto gap = expected.get<float>("greedy_gap");
  Parity out;
  EXPECT_EQ(logits.size(), (prompt + greedy.size()) * vocabulary);
  if (logits.size() != (prompt + greedy.size()) * vocabulary) return out;
  out.error = largest_error(logits.first(wanted.size()), wanted);
  for (std::size_t i = 0; i < greedy.size(); ++i) {
    const auto row = logits.subspan((prompt - 1 + i) * vocabulary, vocabulary);
    if (std::max_element(row.begin(), row.end()) - row.begin() == static_cast<std::ptrdiff_t>(greedy[i])) continue;
    if (gap[i] < 0.002F) {
      ++out.ties;
    } else {
      out.other_token.push_back(i);
    }
  }
  return out;
}

/// Float32 plans: logits within 2e-5 of the largest, every greedy token but ties.
inline void expect_parity(const Expected& expected, std::span<const float> logits) {
  const Parity found = parity(expected, logits);
  ::testing::Test::RecordProperty("largest_error", std::to_string(found.error * 1e6) + "e-6");
  EXPECT_LE(found.error, 2e-5);
  EXPECT_TRUE(found.other_token.empty()) << found.other_token.size() << " greedy tokens differ, the first at step "
                                         << found.other_token.front();
}

}  // namespace candor
