#include "formats/quant/codec.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "formats/quant/blocks.h"

namespace candor {
namespace {

using quant::load;
using quant::store;

/// Many blocks at once, so that the short functions of plain types are inlined into a loop.
using Decoder = void (*)(const EncodingInfo& type, const std::uint8_t* blocks, float* out, std::uint64_t count);
using Encoder = void (*)(const EncodingInfo& type, const float* in, std::uint8_t* blocks, std::uint64_t count);

template <void (*Decode)(const std::uint8_t*, float*)>
void decode_run(const EncodingInfo& type, const std::uint8_t* blocks, float* out, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) Decode(blocks + i * type.block_bytes, out + i * type.block_size);
}

template <void (*Encode)(const float*, std::uint8_t*)>
void encode_run(const EncodingInfo& type, const float* in, std::uint8_t* blocks, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) Encode(in + i * type.block_size, blocks + i * type.block_bytes);
}

template <typename T>
void decode_plain(const std::uint8_t* block, float* out) {
  *out = static_cast<float>(load<T>(block));
}

void decode_f16(const std::uint8_t* block, float* out) {
  *out = quant::load_half(block);
}
void decode_bf16(const std::uint8_t* block, float* out) {
  *out = bf16_to_f32(load<std::uint16_t>(block));
}
void decode_boolean(const std::uint8_t* block, float* out) {
  *out = *block != 0 ? 1.0f : 0.0f;
}

/// OCP 8-bit floating point 1.0: E5M2 is the upper half of a binary16.
void decode_f8_e5m2(const std::uint8_t* block, float* out) {
  *out = f16_to_f32(static_cast<std::uint16_t>(*block << 8));
}

/// E4M3: bias 7, no infinities; all ones is NaN.
void decode_f8_e4m3(const std::uint8_t* block, float* out) {
  const unsigned exponent = (*block >> 3) & 15u;
  const unsigned fraction = *block & 7u;
  float magnitude = static_cast<float>(fraction) * 0x1p-9f;
  if (exponent == 15 && fraction == 7) {
    magnitude = std::numeric_limits<float>::quiet_NaN();
  } else if (exponent > 0) {
    magnitude = std::bit_cast<float>((exponent + 120) << 23 | fraction << 20);
  }
  *out = *block & 0x80 ? -magnitude : magnitude;
}

void encode_f64(const float* in, std::uint8_t* block) {
  store(block, static_cast<double>(*in));
}
void encode_f32(const float* in, std::uint8_t* block) {
  store(block, *in);
}
void encode_f16(const float* in, std::uint8_t* block) {
  quant::store_half(block, *in);
}
void encode_bf16(const float* in, std::uint8_t* block) {
  store(block, f32_to_bf16(*in));
}

struct Codec {
  Decoder decode;  ///< nullptr for encodings of activations
  Encoder encode;  ///< nullptr where the type is only read
};

Codec find_codec(Encoding encoding) {
  using namespace quant;
  switch (encoding) {
    case Encoding::f64:
      return {decode_run<decode_plain<double>>, encode_run<encode_f64>};
    case Encoding::f32:
      return {decode_run<decode_plain<float>>, encode_run<encode_f32>};
    case Encoding::f16:
      return {decode_run<decode_f16>, encode_run<encode_f16>};
    case Encoding::bf16:
      return {decode_run<decode_bf16>, encode_run<encode_bf16>};
    case Encoding::i64:
      return {decode_run<decode_plain<std::int64_t>>, nullptr};
    case Encoding::i32:
      return {decode_run<decode_plain<std::int32_t>>, nullptr};
    case Encoding::i16:
      return {decode_run<decode_plain<std::int16_t>>, nullptr};
    case Encoding::i8:
      return {decode_run<decode_plain<std::int8_t>>, nullptr};
    case Encoding::u64:
      return {decode_run<decode_plain<std::uint64_t>>, nullptr};
    case Encoding::u32:
      return {decode_run<decode_plain<std::uint32_t>>, nullptr};
    case Encoding::u16:
      return {decode_run<decode_plain<std::uint16_t>>, nullptr};
    case Encoding::u8:
      return {decode_run<decode_plain<std::uint8_t>>, nullptr};
    case Encoding::boolean:
      return {decode_run<decode_boolean>, nullptr};
    case Encoding::f8_e4m3:
      return {decode_run<decode_f8_e4m3>, nullptr};
    case Encoding::f8_e5m2:
      return {decode_run<decode_f8_e5m2>, nullptr};
    case Encoding::q4_0:
      return {decode_run<decode_q4_0>, encode_run<encode_q4_0>};
    case Encoding::q4_1:
      return {decode_run<decode_q4_1>, encode_run<encode_q4_1>};
    case Encoding::q5_0:
      return {decode_run<decode_q5_0>, encode_run<encode_q5_0>};
    case Encoding::q5_1:
      return {decode_run<decode_q5_1>, encode_run<encode_q5_1>};
    case Encoding::q8_0:
      return {decode_run<decode_q8_0>, encode_run<encode_q8_0>};
    case Encoding::q8_1:
      return {decode_run<decode_q8_1>, nullptr};
    case Encoding::q2_k:
      return {decode_run<decode_q2_k>, nullptr};
    case Encoding::q3_k:
      return {decode_run<decode_q3_k>, nullptr};
    case Encoding::q4_k:
      return {decode_run<decode_q4_k>, encode_run<encode_q4_k>};
    case Encoding::q5_k:
      return {decode_run<decode_q5_k>, encode_run<encode_q5_k>};
    case Encoding::q6_k:
      return {decode_run<decode_q6_k>, encode_run<encode_q6_k>};
    case Encoding::q8_k:
      return {decode_run<decode_q8_k>, nullptr};
    case Encoding::iq2_xxs:
      return {decode_run<decode_iq2_xxs>, nullptr};
    case Encoding::iq2_xs:
      return {decode_run<decode_iq2_xs>, nullptr};
    case Encoding::iq2_s:
      return {decode_run<decode_iq2_s>, nullptr};
    case Encoding::iq3_xxs:
      return {decode_run<decode_iq3_xxs>, nullptr};
    case Encoding::iq3_s:
      return {decode_run<decode_iq3_s>, nullptr};
    case Encoding::iq1_s:
      return {decode_run<decode_iq1_s>, nullptr};
    case Encoding::iq1_m:
      return {decode_run<decode_iq1_m>, nullptr};
    case Encoding::iq4_nl:
      return {decode_run<decode_iq4_nl>, nullptr};
    case Encoding::iq4_xs:
      return {decode_run<decode_iq4_xs>, nullptr};
    case Encoding::tq1_0:
      return {decode_run<decode_tq1_0>, nullptr};
    case Encoding::tq2_0:
      return {decode_run<decode_tq2_0>, nullptr};
    case Encoding::mxfp4:
      return {decode_run<decode_mxfp4>, nullptr};
    case Encoding::a8_32:
    case Encoding::a8_256:
      return {nullptr, nullptr};  // activations: no file holds them
  }
  fail(ErrorCode::internal, "encoding {} has no codec", static_cast<int>(encoding));
}

constexpr std::size_t kLargestBlock = 256;

void quantize_row(const EncodingInfo& type, Encoder encode, const float* src, std::uint8_t* dst, std::uint64_t cols) {
  const std::uint64_t whole = cols / type.block_size;
  encode(type, src, dst, whole);
  const std::uint64_t rest = cols % type.block_size;
  if (rest == 0) return;
  std::array<float, kLargestBlock> padded{};
  std::copy_n(src + whole * type.block_size, rest, padded.begin());
  encode(type, padded.data(), dst + whole * type.block_bytes, 1);
}

}  // namespace

std::uint64_t padded_row_bytes(Encoding encoding, std::uint64_t elements) {
  const EncodingInfo& type = info(encoding);
  return (elements / type.block_size + (elements % type.block_size != 0 ? 1 : 0)) * type.block_bytes;
}

void dequantize(Encoding encoding, const std::byte* src, float* dst, std::uint64_t elements) {
  const EncodingInfo& type = info(encoding);
  const Decoder decode = find_codec(encoding).decode;
  if (!decode) fail(ErrorCode::unsupported, "{} is not an encoding of weights", to_string(encoding));
  const auto* blocks = reinterpret_cast<const std::uint8_t*>(src);
  const std::uint64_t whole = elements / type.block_size;
  decode(type, blocks, dst, whole);
  const std::uint64_t rest = elements % type.block_size;
  if (rest == 0) return;
  std::array<float, kLargestBlock> last{};
  decode(type, blocks + whole * type.block_bytes, last.data(), 1);
  std::copy_n(last.begin(), rest, dst + whole * type.block_size);
}

bool can_quantize(Encoding encoding) {
  return find_codec(encoding).encode != nullptr;
}

void quantize(Encoding encoding, const float* src, std::byte* dst, std::uint64_t rows, std::uint64_t cols) {
  const Encoder encode = find_codec(encoding).encode;
  if (!encode)
    fail(ErrorCode::unsupported,
         "{} cannot be written; choose f32, f16, bf16, q8_0, q6_k, q5_k, q5_1, q5_0, q4_k, q4_1 or q4_0",
         to_string(encoding));
  const EncodingInfo& type = info(encoding);
  const std::uint64_t row_bytes = padded_row_bytes(encoding, cols);
  auto* out = reinterpret_cast<std::uint8_t*>(dst);
  for (std::uint64_t row = 0; row < rows; ++row)
    quantize_row(type, encode, src + row * cols, out + row * row_bytes, cols);
}

bool can_weight(Encoding encoding, std::uint64_t cols) {
  return (encoding == Encoding::q4_k || encoding == Encoding::q5_k) && cols % info(encoding).block_size == 0;
}

void quantize_weighted(Encoding encoding, const float* src, std::byte* dst, std::uint64_t rows, std::uint64_t cols,
                       const float* column_weights) {
  if (!can_weight(encoding, cols))
    fail(ErrorCode::internal, "{} with {} columns takes no weights", to_string(encoding), cols);
  const EncodingInfo& type = info(encoding);
  const auto encode = encoding == Encoding::q4_k ? quant::encode_q4_k_weighted : quant::encode_q5_k_weighted;
  auto* out = reinterpret_cast<std::uint8_t*>(dst);
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t col = 0; col < cols; col += type.block_size) {
      encode(src + row * cols + col, column_weights + col, out);
      out += type.block_bytes;
    }
  }
}

}  // namespace candor
