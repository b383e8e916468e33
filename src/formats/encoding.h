// Encodings: which bytes hold a value. A precision (f16, f32) is the logical dtype of the execution schema; an encoding
// is the layout of a weight, a slot or a cache. Sizes and names are ggml's where a type is ggml's
// (gguf-py/gguf/constants.py).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace candor {

enum class Encoding : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
  f8_e4m3,
  f8_e5m2,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q8_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  q8_k,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  iq1_s,
  iq1_m,
  iq4_nl,
  iq4_xs,
  tq1_0,
  tq2_0,
  mxfp4,
  a8_32,  ///< activations, never a file's: written by the quantize kernels. A row is all its int8 values, then for each
          ///< block of 32 a float32 scale, then for each block an int32 sum of its values
  a8_256,  ///< the same with blocks of 256: values, float32 scales, then an int16 sum for every 16 values
};

struct EncodingInfo {
  Encoding encoding;
  std::string_view name;      ///< lower case, as manifests and messages write it: "q8_0"
  std::uint32_t block_size;   ///< elements in a block; 1 for plain types
  std::uint32_t block_bytes;  ///< bytes of a block
};

[[nodiscard]] const EncodingInfo& info(Encoding encoding);
[[nodiscard]] std::string_view to_string(Encoding encoding);
[[nodiscard]] std::optional<Encoding> parse_encoding(std::string_view name);

/// Bytes of `elements` elements in one row. Throws Error(format), naming `what`, if they are not whole blocks or
/// overflow.
[[nodiscard]] std::uint64_t encoded_bytes(Encoding encoding, std::uint64_t elements, std::string_view what);

}  // namespace candor
