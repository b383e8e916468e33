#include "backends/webgpu/packed_weight.h"

#include <array>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"

namespace candor::webgpu {
namespace {

constexpr std::uint64_t kRowElements = 8;

/// A block of a quantized encoding, cut into parts; part p of all blocks lies in plane p.
struct BlockParts {
  struct Part {
    std::uint32_t offset = 0, bytes = 0;
  };
  std::array<Part, 4> parts{};
};

/// Null for encodings whose blocks stay whole.
const BlockParts* parts_of(Encoding encoding) {
  static constexpr BlockParts kQ8{{{{2, 32}, {0, 2}}}};
  static constexpr BlockParts kQ4{{{{2, 16}, {0, 2}}}};
  static constexpr BlockParts kQ6{{{{0, 128}, {128, 64}, {192, 16}, {208, 2}}}};
  switch (encoding) {
    case Encoding::q8_0:
      return &kQ8;
    case Encoding::q4_0:
      return &kQ4;
    case Encoding::q6_k:
      return &kQ6;
    default:
      return nullptr;
  }
}

bool is_plain(Encoding encoding) {
  return info(encoding).block_size == 1;
}

}  // namespace

std::uint32_t encoding_number(Encoding encoding, std::string_view what) {
  switch (encoding) {
    case Encoding::f32:
      return 0;
    case Encoding::f16:
      return 1;
    case Encoding::bf16:
      return 2;
    case Encoding::q8_0:
      return 3;
    case Encoding::q4_0:
      return 4;
    case Encoding::q4_k:
      return 5;
    case Encoding::q5_k:
      return 6;
    case Encoding::q6_k:
      return 7;
    default:
      fail(ErrorCode::plan, "{}: no WebGPU kernel reads {}", what, to_string(encoding));
  }
}

std::uint64_t packed_bytes(Encoding encoding, std::uint64_t rows, std::uint64_t cols, std::string_view what) {
  (void)encoding_number(encoding, what);
  const std::uint64_t padded = is_plain(encoding) ? checked_align(cols, kRowElements, what) : cols;
  const std::uint64_t bytes = checked_mul(encoded_bytes(encoding, padded, what), rows, what);
  return checked_align(bytes, kWeightAlignment, what);
}

bool is_stored_layout(Encoding encoding, std::uint64_t cols) {
  return is_plain(encoding) ? cols % kRowElements == 0 : parts_of(encoding) == nullptr;
}

void pack(Encoding encoding, std::span<const std::byte> stored, std::uint64_t rows, std::uint64_t cols,
          std::span<std::byte> out) {
  if (is_stored_layout(encoding, cols)) {
    std::memcpy(out.data(), stored.data(), stored.size());
    return;
  }
  const EncodingInfo& block = info(encoding);
  if (is_plain(encoding)) {
    const std::uint64_t from = cols * block.block_bytes;
    const std::uint64_t to = checked_align(cols, kRowElements, "weight") * block.block_bytes;
    for (std::uint64_t row = 0; row < rows; ++row) std::memcpy(out.data() + row * to, stored.data() + row * from, from);
    return;
  }
  const std::uint64_t blocks = stored.size() / block.block_bytes;
  std::byte* plane = out.data();
  for (const BlockParts::Part& part : parts_of(encoding)->parts) {
    for (std::uint64_t b = 0; b < blocks; ++b)
      std::memcpy(plane + b * part.bytes, stored.data() + b * block.block_bytes + part.offset, part.bytes);
    plane += blocks * part.bytes;
  }
}

}  // namespace candor::webgpu
