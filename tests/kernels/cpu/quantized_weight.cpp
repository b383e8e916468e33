#include "kernels/cpu/quantized_weight.h"

#include <cstring>
#include <stdexcept>

#include "formats/half.h"

namespace candor::cpu::testing {
namespace {

unsigned u8(std::span<const std::byte> block, std::size_t i) {
  return std::to_integer<unsigned>(block[i]);
}
double f16(std::span<const std::byte> block, std::size_t i) {
  return double{f16_to_f32(static_cast<std::uint16_t>(u8(block, i) | u8(block, i + 1) << 8))};
}

double q8_0(std::span<const std::byte> block, std::size_t k) {
  return f16(block, 0) * static_cast<std::int8_t>(u8(block, 2 + k));
}

double q4_0(std::span<const std::byte> block, std::size_t k) {
  const unsigned byte = u8(block, 2 + k % 16);
  return f16(block, 0) * (static_cast<int>(k < 16 ? byte & 15 : byte >> 4) - 8);
}

/// The 6-bit scale and minimum of sub-block j, as Q4_K and Q5_K pack them.
std::pair<double, double> scale_and_min(std::span<const std::byte> block, std::size_t j) {
  const auto s = [&](std::size_t i) { return u8(block, 4 + i); };
  if (j < 4) return {s(j) & 63, s(j + 4) & 63};
  return {(s(j + 4) & 15) | (s(j - 4) >> 6) << 4, s(j + 4) >> 4 | (s(j) >> 6) << 4};
}

double q4_k(std::span<const std::byte> block, std::size_t k) {
  const unsigned byte = u8(block, 16 + k / 64 * 32 + k % 32);
  const auto [scale, min] = scale_and_min(block, k / 32);
  return f16(block, 0) * scale * (k % 64 < 32 ? byte & 15 : byte >> 4) - f16(block, 2) * min;
}

double q5_k(std::span<const std::byte> block, std::size_t k) {
  const unsigned byte = u8(block, 48 + k / 64 * 32 + k % 32);
  const unsigned high = u8(block, 16 + k % 32) >> (k / 32) & 1;
  const auto [scale, min] = scale_and_min(block, k / 32);
  return f16(block, 0) * scale * ((k % 64 < 32 ? byte & 15 : byte >> 4) + 16 * high) - f16(block, 2) * min;
}

double q6_k(std::span<const std::byte> block, std::size_t k) {
  const std::size_t half = k / 128, in_half = k % 128;
  const unsigned low = u8(block, half * 64 + in_half % 64) >> (in_half < 64 ? 0 : 4) & 15;
  const unsigned high = u8(block, 128 + half * 32 + in_half % 32) >> (in_half / 32 * 2) & 3;
  const auto scale = static_cast<std::int8_t>(u8(block, 192 + k / 16));
  return f16(block, 208) * scale * (static_cast<int>(low | high << 4) - 32);
}

struct Format {
  Encoding encoding;
  double (*value)(std::span<const std::byte> block, std::size_t k);
  std::vector<std::size_t> factors;  ///< where a block's f16 factors lie
};

const Format& format_of(Encoding encoding) {
  static const std::vector<Format> formats{{Encoding::q8_0, q8_0, {0}},
                                           {Encoding::q4_0, q4_0, {0}},
                                           {Encoding::q4_k, q4_k, {0, 2}},
                                           {Encoding::q5_k, q5_k, {0, 2}},
                                           {Encoding::q6_k, q6_k, {208}}};
  for (const Format& format : formats)
    if (format.encoding == encoding) return format;
  throw std::logic_error("no such format here");
}

}  // namespace

std::vector<double> dequantize(Encoding encoding, std::span<const std::byte> row) {
  const EncodingInfo& layout = info(encoding);
  std::vector<double> out;
  for (std::size_t at = 0; at < row.size(); at += layout.block_bytes)
    for (std::size_t k = 0; k < layout.block_size; ++k)
      out.push_back(format_of(encoding).value(row.subspan(at, layout.block_bytes), k));
  return out;
}

StoredWeight quantized_weight(std::mt19937_64& random, std::uint64_t rows, std::uint64_t cols, Encoding encoding,
                              bool hostile) {
  const EncodingInfo& layout = info(encoding);
  StoredWeight weight;
  weight.rows = rows;
  weight.cols = cols;
  weight.encoding = encoding;
  weight.bytes.resize(rows * (cols / layout.block_size) * layout.block_bytes);
  for (std::byte& byte : weight.bytes)
    byte = static_cast<std::byte>(hostile ? (random() % 4 == 0 ? 0xff : 0x80) : random() & 0xff);
  std::uniform_real_distribution<float> factor(-0.02f, 0.02f);
  for (std::size_t block = 0; block < weight.bytes.size(); block += layout.block_bytes) {
    for (const std::size_t at : format_of(encoding).factors) {
      const std::uint16_t bits = f32_to_f16(factor(random));
      std::memcpy(weight.bytes.data() + block + at, &bits, sizeof bits);
    }
  }
  weight.values = dequantize(encoding, weight.bytes);
  return weight;
}

}  // namespace candor::cpu::testing
