// Where keys and values lie in a KV page. For each key/value head: keys as [positions / 16][headDim][16], a lane a
// position, so that scores are products with panels of 16; then values as [headDim / 16][positions][16], a lane a
// column (the last panel padded), so that weighted sums are. Elements are f32 or f16.
// q8_0: int8 values with an f16 scale for every 32 columns of a position (the last block may be shorter). The two inner
// dimensions are cut into words of four bytes, columns of a key and positions of a value, so that a word is a lane's:
// keys as [positions / 16]([headDim / 4][16][4], then scales [headDim / 32][16]); values as
// [headDim / 16][positions / 4][16][4], then scales [headDim / 32][positions].
#pragma once

#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA {

inline constexpr std::uint32_t kKeyBlock = kLanes;  ///< positions in a key panel; a page holds whole ones
inline constexpr std::uint32_t kScaleBlock = 32;    ///< columns that share a scale in q8_0
inline constexpr std::uint32_t kScaleBytes = 2;
inline constexpr std::uint32_t kWordBytes = 4;
inline constexpr std::uint32_t kWordsBytes = kLanes * kWordBytes;  ///< a word for each lane

struct KvLayout {
  std::uint32_t kv_heads;
  std::uint32_t head_dim;
  std::uint32_t positions;  ///< of a page
  std::uint32_t element_bytes;

  [[nodiscard]] std::uint32_t value_panels() const { return (head_dim + kLanes - 1) / kLanes; }
  [[nodiscard]] std::uint32_t scale_blocks() const {
    return element_bytes == 1 ? (head_dim + kScaleBlock - 1) / kScaleBlock : 0;
  }
  [[nodiscard]] std::uint64_t key_block_elements() const {
    const std::uint32_t columns = element_bytes == 1 ? (head_dim + kWordBytes - 1) / kWordBytes * kWordBytes : head_dim;
    return std::uint64_t{columns} * kKeyBlock;
  }
  [[nodiscard]] std::uint64_t key_block_bytes() const {
    return key_block_elements() * element_bytes + std::uint64_t{scale_blocks()} * kKeyBlock * kScaleBytes;
  }
  [[nodiscard]] std::uint64_t key_bytes() const { return positions / kKeyBlock * key_block_bytes(); }
  [[nodiscard]] std::uint64_t value_panel_bytes() const { return std::uint64_t{positions} * kLanes * element_bytes; }
  [[nodiscard]] std::uint64_t head_bytes() const {
    return key_bytes() + value_panels() * value_panel_bytes() + std::uint64_t{scale_blocks()} * positions * kScaleBytes;
  }
  [[nodiscard]] std::uint64_t page_bytes() const { return (kv_heads * head_bytes() + 63) / 64 * 64; }
};

/// One sequence's pages in one layer's cache.
struct KvView {
  KvLayout layout;
  std::byte* data;
  std::uint64_t page_bytes;
  const std::uint32_t* pages;

  /// The panel of 16 keys that holds `position`: [headDim][16], or for q8_0 words and scales.
  [[nodiscard]] std::byte* key_block(std::uint32_t head, std::uint32_t position) const {
    return head_data(head, position) + in_page(position) / kKeyBlock * layout.key_block_bytes();
  }
  /// Sixteen columns of the value at `position`, or for q8_0 of the four positions that it is one of; those of the
  /// page's next positions follow.
  [[nodiscard]] std::byte* value_panel(std::uint32_t head, std::uint32_t panel, std::uint32_t position) const {
    const std::uint32_t first =
        layout.element_bytes == 1 ? in_page(position) / kWordBytes * kWordBytes : in_page(position);
    return values(head, position) + panel * layout.value_panel_bytes() +
           std::uint64_t{first} * kLanes * layout.element_bytes;
  }
  /// The scale of 32 columns of the value at `position`; those of the page's next positions follow.
  [[nodiscard]] std::byte* value_scale(std::uint32_t head, std::uint32_t block, std::uint32_t position) const {
    const std::uint64_t scale = std::uint64_t{block} * layout.positions + in_page(position);
    return values(head, position) + layout.value_panels() * layout.value_panel_bytes() + scale * kScaleBytes;
  }
  [[nodiscard]] std::uint32_t in_page(std::uint32_t position) const { return position % layout.positions; }
  /// The first position of the page after the one that holds `position`.
  [[nodiscard]] std::uint32_t page_end(std::uint32_t position) const {
    return (position / layout.positions + 1) * layout.positions;
  }

 private:
  [[nodiscard]] std::byte* head_data(std::uint32_t head, std::uint32_t position) const {
    return data + pages[position / layout.positions] * page_bytes + head * layout.head_bytes();
  }
  [[nodiscard]] std::byte* values(std::uint32_t head, std::uint32_t position) const {
    return head_data(head, position) + layout.key_bytes();
  }
};

CANDOR_INLINE void store_elements(F32Element, std::byte* p, F32x16 v) {
  store(reinterpret_cast<float*>(p), v);
}
CANDOR_INLINE void store_elements(F16Element, std::byte* p, F32x16 v) {
  store_f16(p, v);
}

/// f32 and f16: elements as they are, rounded to nearest.
template <typename Element>
struct PlainKv {
  static constexpr std::uint32_t kElementBytes = Element::kBytes;

  /// Writes one position's key and value of one head.
  CANDOR_INLINE static void write(const KvView& kv, std::uint32_t head, std::uint32_t position, const float* key,
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

  /// Keys of one panel as f32: [headDim][16], where they lie or in `scratch`.
  CANDOR_INLINE static const float* read_keys(const KvView& kv, std::uint32_t head, std::uint32_t position,
                                              float* scratch) {
    const std::byte* keys = kv.key_block(head, position);
    if constexpr (kElementBytes == sizeof(float)) return reinterpret_cast<const float*>(keys);
    for (std::uint32_t d = 0; d < kv.layout.head_dim; ++d)
      store(scratch + std::size_t{d} * kLanes, Element::load16(keys + std::size_t{d} * kLanes * Element::kBytes));
    return scratch;
  }

  /// Sixteen columns of the values at positions first … last - 1 as f32: [position][16], where they lie or in
  /// `scratch`.
  CANDOR_INLINE static const float* read_values(const KvView& kv, std::uint32_t head, std::uint32_t panel,
                                                std::uint32_t first, std::uint32_t last, float* scratch) {
    if constexpr (kElementBytes == sizeof(float))
      if (last <= kv.page_end(first)) return reinterpret_cast<const float*>(kv.value_panel(head, panel, first));
    float* out = scratch;
    for (std::uint32_t position = first; position < last;) {
      const std::uint32_t page_end = kv.page_end(position);
      const std::byte* values = kv.value_panel(head, panel, position);
      for (; position < last && position < page_end; ++position, values += kLanes * Element::kBytes, out += kLanes)
        store(out, Element::load16(values));
    }
    return scratch;
  }
};

/// q8_0. For a block with largest magnitude m the scale s is m / 127 rounded to f16, and each value round-to-even(x /
/// s), at most 127 in magnitude. A block whose s is 0 becomes zeros; one that holds an infinity or NaN, or whose s is
/// no f16, reads as NaN.
struct Q8Kv {
  static constexpr std::uint32_t kElementBytes = 1;

  CANDOR_INLINE static void write(const KvView& kv, std::uint32_t head, std::uint32_t position, const float* key,
                                  const float* value) {
    const std::uint32_t head_dim = kv.layout.head_dim;
    std::byte* keys = kv.key_block(head, position);
    std::byte* key_scales = keys + kv.layout.key_block_elements();
    const std::uint32_t lane = position % kKeyBlock;
    for (std::uint32_t first = 0; first < head_dim; first += kScaleBlock) {
      const std::uint32_t count = head_dim - first < kScaleBlock ? head_dim - first : kScaleBlock;
      const std::uint32_t block = first / kScaleBlock;
      std::int8_t q[kScaleBlock];
      quantize(key + first, count, q, key_scales + (block * kKeyBlock + lane) * kScaleBytes);
      for (std::uint32_t i = 0; i < count; i += kWordBytes)
        __builtin_memcpy(keys + std::size_t{first + i} / kWordBytes * kWordsBytes + lane * kWordBytes, q + i,
                         kWordBytes);
      quantize(value + first, count, q, kv.value_scale(head, block, position));
      for (std::uint32_t i = 0; i < count; ++i) {
        std::byte* words = kv.value_panel(head, (first + i) / kLanes, position);
        words[(first + i) % kLanes * kWordBytes + position % kWordBytes] = static_cast<std::byte>(q[i]);
      }
    }
  }

  CANDOR_INLINE static const float* read_keys(const KvView& kv, std::uint32_t head, std::uint32_t position,
                                              float* scratch) {
    const std::byte* keys = kv.key_block(head, position);
    const std::byte* scales = keys + kv.layout.key_block_elements();
    for (std::uint32_t d = 0; d < kv.layout.head_dim; d += kWordBytes) {
      const F32x16 scale = load_f16(scales + d / kScaleBlock * kKeyBlock * kScaleBytes);
      const I32x16 words = load_words(keys + std::size_t{d} / kWordBytes * kWordsBytes);
      unroll<kWordBytes>([&](auto i) CANDOR_INLINE_LAMBDA {
        store(scratch + std::size_t{d + i} * kLanes, byte_of_words<i>(words) * scale);
      });
    }
    return scratch;
  }

  CANDOR_INLINE static const float* read_values(const KvView& kv, std::uint32_t head, std::uint32_t panel,
                                                std::uint32_t first, std::uint32_t last, float* scratch) {
    const std::uint32_t block = panel * kLanes / kScaleBlock;
    for (std::uint32_t position = first / kLanes * kLanes; position < last; position += kLanes) {
      alignas(64) float scales[kLanes];
      store(scales, load_f16(kv.value_scale(head, block, position)));
      const std::byte* values = kv.value_panel(head, panel, position);
      for (std::uint32_t group = 0; group < kLanes; group += kWordBytes, values += kWordsBytes) {
        const I32x16 words = load_words(values);
        unroll<kWordBytes>([&](auto i) CANDOR_INLINE_LAMBDA {
          const std::uint32_t at = position + group + i;
          if (at < first || at >= last) return;
          store(scratch + std::size_t{at - first} * kLanes, byte_of_words<i>(words) * broadcast(scales[group + i]));
        });
      }
    }
    return scratch;
  }

 private:
  CANDOR_INLINE static I32x16 load_words(const std::byte* p) { return load(reinterpret_cast<const std::int32_t*>(p)); }
  /// Byte I of each word, with its sign. Times an f16 scale it is exact.
  template <int I>
  CANDOR_INLINE static F32x16 byte_of_words(I32x16 words) {
    return to_f32(shift_right<24>(shift_left<24 - 8 * I>(words)));
  }

  /// `count` values, at most 32, as int8, those beyond as 0; and their scale as f16.
  CANDOR_INLINE static void quantize(const float* x, std::uint32_t count, std::int8_t* q, std::byte* scale) {
    alignas(64) float values[kScaleBlock] = {};
    __builtin_memcpy(values, x, count * sizeof(float));
    // Magnitudes compare as integers, NaNs above infinities: the same everywhere, which float maxima of NaNs are not.
    I32x16 largest = broadcast(std::int32_t{0});
    for (std::uint32_t i = 0; i < kScaleBlock; i += kLanes)
      largest = max(largest, bits(load(values + i)) & broadcast(std::int32_t{0x7fffffff}));
    const float magnitude = bit_cast_to<float>(reduce_max(largest));
    alignas(64) std::byte halves[kLanes * kScaleBytes];
    store_f16(halves, broadcast(magnitude / 127.0f));
    alignas(64) float rounded[kLanes];
    store(rounded, load_f16(halves));
    const bool finite = rounded[0] < __builtin_inff();  // false for NaN
    if (!finite) store_f16(halves, broadcast(__builtin_nanf("")));
    __builtin_memcpy(scale, halves, kScaleBytes);
    const float inverse = finite && rounded[0] > 0 ? 1.0f / rounded[0] : 0.0f;
    for (std::uint32_t i = 0; i < kScaleBlock; i += kLanes) {
      const F32x16 shift = broadcast(0x1.8p23f);
      F32x16 scaled = load(values + i) * broadcast(inverse);
      if (inverse == 0) scaled = broadcast(0.0f);  // not infinity · 0
      scaled = min(max(scaled, broadcast(-127.0f)), broadcast(127.0f));
      store_i8(q + i, to_i32((scaled + shift) - shift));
    }
  }
};

}  // namespace candor::cpu::CANDOR_ISA
