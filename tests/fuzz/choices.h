// What generators of perturbed files draw from: the fuzzer's bytes as a stream of choices, and values on which
// arithmetic goes wrong.
#pragma once

#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>

#include "base/json.h"

namespace candor {

/// The fuzzer's bytes as a stream of choices; zeros when they run out.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(next()) << 8 * i;
    return value;
  }
  std::size_t below(std::size_t count) { return number(2) % count; }

  /// Values on which arithmetic goes wrong, or any.
  std::uint64_t value() {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    constexpr std::uint64_t kTelling[] = {0,        1,    2,         31,         32,         33,
                                          255,      256,  257,       1ull << 16, 1ull << 31, 1ull << 32,
                                          kMax / 2, kMax, kMax - 31, 1ull << 40, 1ull << 62, 1ull << 63};
    const std::size_t choice = below(std::size(kTelling) + 4);
    return choice < std::size(kTelling) ? kTelling[choice] : number(8);
  }

 private:
  std::uint8_t next() { return position_ < size_ ? data_[position_++] : 0; }

  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t position_ = 0;
};

inline void poke(std::string& bytes, std::size_t offset, std::uint64_t value, std::size_t width) {
  if (offset + width <= bytes.size()) std::memcpy(bytes.data() + offset, &value, width);
}

/// The nth number, string or flag below `value` in document order, or null if there are fewer.
inline Json* find_leaf(Json& value, std::size_t& n) {
  if (!value.is_structured()) return n-- == 0 ? &value : nullptr;
  for (Json& child : value)
    if (Json* found = find_leaf(child, n)) return found;
  return nullptr;
}

/// Replaces one leaf among the first `leaves` by a value of another kind or size.
inline void perturb_leaf(Json& document, std::size_t leaves, Choices& choices) {
  std::size_t n = choices.below(leaves);
  Json* leaf = find_leaf(document, n);
  if (!leaf) return;
  switch (choices.below(5)) {
    case 0:
      *leaf = nullptr;
      break;
    case 1:
      *leaf = -static_cast<std::int64_t>(choices.number(2));
      break;
    case 2:
      *leaf = std::string(choices.below(70), 'f');
      break;
    default:
      *leaf = choices.value();
  }
}

}  // namespace candor
