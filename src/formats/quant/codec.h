// Encoding ↔ float32, for every Encoding that holds numbers. Decoding is bit-equal to ggml's reference for its block
// types. Encoding is byte-equal to it for the plain, Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 types, and has a smaller squared
// error for Q4_K, Q5_K and Q6_K. Everything here is scalar C++ whose result depends on the input alone: it makes files
// and is the oracle of kernels, which have their own vector code. Not a goal: calibration on texts, and writing types
// below four bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/encoding.h"

namespace candor {

/// Bytes of one row of `elements` elements, the last block padded.
[[nodiscard]] std::uint64_t padded_row_bytes(Encoding encoding, std::uint64_t elements);

/// Decodes `elements` elements from whole blocks; of a partial last block only the elements asked for. Integers are
/// converted to the nearest float32. `src` has padded_row_bytes(encoding, elements) bytes at any alignment.
/// Throws Error(unsupported) for the encodings of activations, which no file holds.
void dequantize(Encoding encoding, const std::byte* src, float* dst, std::uint64_t elements);

/// The float types (f64, f32, f16, bf16), q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k and q6_k.
[[nodiscard]] bool can_quantize(Encoding encoding);

/// Encodes a row-major matrix; each row is whole blocks, the last padded with zeros: rows × padded_row_bytes(encoding,
/// cols) bytes. Values that are not finite give some block, never undefined behaviour; count them before (convert
/// does). Throws Error(unsupported) where can_quantize is false.
void quantize(Encoding encoding, const float* src, std::byte* dst, std::uint64_t rows, std::uint64_t cols);

/// Whether quantize_weighted() differs from quantize(): q4_k and q5_k with rows of whole blocks.
[[nodiscard]] bool can_weight(Encoding encoding, std::uint64_t cols);

/// The same where the squared error of an element counts as often as `column_weights` (cols values, not negative) says
/// of its column. Throws Error(internal) where can_weight is false.
void quantize_weighted(Encoding encoding, const float* src, std::byte* dst, std::uint64_t rows, std::uint64_t cols,
                       const float* column_weights);

}  // namespace candor
