// How weights lie on the device: each row begins at a multiple of 16 bytes, and a block's parts lie where kernels can
// read them 16 bytes at a time. f32, f16, bf16: rows padded with zeros to 8 elements. Q4_K and Q5_K: as they are stored
// (9 and 11 times 16 bytes a block). Q8_0, Q4_0: all quants, then all f16 scales. Q6_K: all low bits, all high bits,
// all sub-block scales, then all f16 scales. src/kernels/webgpu/weights.wgsl reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "formats/encoding.h"

namespace candor::webgpu {

/// Weights of several experts lie one after the other at multiples of this.
inline constexpr std::uint64_t kWeightAlignment = 256;

/// The number that kernels know an encoding by (override weightEncoding and the like). Throws Error(plan) for one that
/// no kernel here reads, naming `what`.
[[nodiscard]] std::uint32_t encoding_number(Encoding encoding, std::string_view what);

/// Bytes of a matrix on the device, a multiple of kWeightAlignment.
[[nodiscard]] std::uint64_t packed_bytes(Encoding encoding, std::uint64_t rows, std::uint64_t cols,
                                         std::string_view what);

/// Writes packed_bytes() bytes to `out`, which is zeroed.
void pack(Encoding encoding, std::span<const std::byte> stored, std::uint64_t rows, std::uint64_t cols,
          std::span<std::byte> out);

/// Whether the stored bytes are the packed ones, but for the alignment at the end.
[[nodiscard]] bool is_stored_layout(Encoding encoding, std::uint64_t cols);

}  // namespace candor::webgpu
