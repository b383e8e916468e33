// Where keys and values lie in a KV page. For each key/value head: keys as [positions / 16][headDim][16], a lane a
// position, so that scores are products with panels of 16; then values as [headDim / 16][positions][16], a lane a
// column (the last panel padded), so that weighted sums are. Elements are f32 or f16.
#pragma once

#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA {

inline constexpr std::uint32_t kKeyBlock = kLanes;  ///< positions in a key panel; a page holds whole ones

struct KvLayout {
  std::uint32_t kv_heads;
  std::uint32_t head_dim;
  std::uint32_t positions;  ///< of a page
  std::uint32_t element_bytes;

  [[nodiscard]] std::uint32_t value_panels() const { return (head_dim + kLanes - 1) / kLanes; }
  [[nodiscard]] std::uint64_t key_elements() const { return std::uint64_t{positions} * head_dim; }
  [[nodiscard]] std::uint64_t value_elements() const { return std::uint64_t{positions} * value_panels() * kLanes; }
  [[nodiscard]] std::uint64_t page_bytes() const {
    const std::uint64_t bytes = kv_heads * (key_elements() + value_elements()) * element_bytes;
    return (bytes + 63) / 64 * 64;
  }
};

/// One sequence's pages in one layer's cache.
struct KvView {
  KvLayout layout;
  std::byte* data;
  std::uint64_t page_bytes;
  const std::uint32_t* pages;

  /// The panel of 16 keys that holds `position`: [headDim][16].
  [[nodiscard]] std::byte* key_block(std::uint32_t head, std::uint32_t position) const {
    const std::uint32_t in_page = position % layout.positions / kKeyBlock * kKeyBlock;
    return head_data(head, position) + std::uint64_t{in_page} * layout.head_dim * layout.element_bytes;
  }
  /// Sixteen columns of the value at `position`; those of the page's next positions follow.
  [[nodiscard]] std::byte* value_panel(std::uint32_t head, std::uint32_t panel, std::uint32_t position) const {
    const std::uint64_t in_panel = std::uint64_t{panel} * layout.positions + position % layout.positions;
    return head_data(head, position) + (layout.key_elements() + in_panel * kLanes) * layout.element_bytes;
  }

 private:
  [[nodiscard]] std::byte* head_data(std::uint32_t head, std::uint32_t position) const {
    const std::uint64_t head_elements = layout.key_elements() + layout.value_elements();
    return data + pages[position / layout.positions] * page_bytes + head * head_elements * layout.element_bytes;
  }
};

CANDOR_INLINE void store_elements(F32Element, std::byte* p, F32x16 v) {
  store(reinterpret_cast<float*>(p), v);
}
CANDOR_INLINE void store_elements(F16Element, std::byte* p, F32x16 v) {
  store_f16(p, v);
}

/// Writes one position's key and value of one head, rounded to the cache's element type.
template <typename Element>
CANDOR_INLINE void write_position(const KvView& kv, std::uint32_t head, std::uint32_t position, const float* key,
                                  const float* value) {
  std::byte* keys = kv.key_block(head, position) + position % kKeyBlock * Element::kBytes;
  for_each_vector(kv.layout.head_dim, [&](std::uint32_t i, auto n) CANDOR_INLINE_LAMBDA {
    std::byte converted[kLanes * Element::kBytes];
    store_elements(Element{}, converted, load_first(key + i, n));
    for (std::uint32_t d = 0; d < static_cast<std::uint32_t>(n); ++d)
      __builtin_memcpy(keys + std::size_t{i + d} * kLanes * Element::kBytes, converted + d * Element::kBytes,
                       Element::kBytes);
    store_elements(Element{}, kv.value_panel(head, i / kLanes, position), load_first(value + i, n));
  });
}

/// Keys of one panel as f32: [headDim][16].
template <typename Element>
CANDOR_INLINE void read_key_block(const KvView& kv, std::uint32_t head, std::uint32_t position, float* out) {
  const std::byte* keys = kv.key_block(head, position);
  for (std::uint32_t d = 0; d < kv.layout.head_dim; ++d)
    store(out + std::size_t{d} * kLanes, Element::load16(keys + std::size_t{d} * kLanes * Element::kBytes));
}

/// Sixteen columns of the values at positions first … last - 1 as f32: [position][16].
template <typename Element>
CANDOR_INLINE void read_values(const KvView& kv, std::uint32_t head, std::uint32_t panel, std::uint32_t first,
                               std::uint32_t last, float* out) {
  for (std::uint32_t position = first; position < last;) {
    const std::uint32_t page_end = (position / kv.layout.positions + 1) * kv.layout.positions;
    const std::byte* values = kv.value_panel(head, panel, position);
    for (; position < last && position < page_end; ++position, values += kLanes * Element::kBytes, out += kLanes)
      store(out, Element::load16(values));
  }
}

}  // namespace candor::cpu::CANDOR_ISA
