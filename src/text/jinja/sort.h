// Sorting as Python's sorted() does: stable, by "less than" alone, with an error for values that have no order.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "text/jinja/operators.h"

namespace candor::jinja {

/// a < b.
[[nodiscard]] inline bool less(Runtime& runtime, const Value& a, const Value& b) {
  return ordered(runtime, CompareOp::less, a, b);
}

/// A merge sort. Unlike std::stable_sort it stays within the elements whatever `less` answers (NaN has no order).
template <typename T, typename Less>
void stable_sort(std::vector<T>& items, const Less& less) {
  std::vector<T> from = std::move(items);
  std::vector<T> to(from.size());
  for (std::size_t width = 1; width < from.size(); width *= 2) {
    for (std::size_t start = 0; start < from.size(); start += 2 * width) {
      const std::size_t middle = std::min(start + width, from.size());
      const std::size_t end = std::min(start + 2 * width, from.size());
      std::size_t left = start;
      std::size_t right = middle;
      for (std::size_t at = start; at < end; ++at) {
        const bool take_right = left == middle || (right < end && less(from[right], from[left]));
        to[at] = std::move(take_right ? from[right++] : from[left++]);
      }
    }
    std::swap(from, to);
  }
  items = std::move(from);
}

}  // namespace candor::jinja
