#include "formats/encoding.h"

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/error.h"

namespace candor {
namespace {

constexpr std::array kEncodings = std::to_array<EncodingInfo>({
    {Encoding::f64, "f64", 1, 8},
    {Encoding::f32, "f32", 1, 4},
    {Encoding::f16, "f16", 1, 2},
    {Encoding::bf16, "bf16", 1, 2},
    {Encoding::i64, "i64", 1, 8},
    {Encoding::i32, "i32", 1, 4},
    {Encoding::i16, "i16", 1, 2},
    {Encoding::i8, "i8", 1, 1},
    {Encoding::u64, "u64", 1, 8},
    {Encoding::u32, "u32", 1, 4},
    {Encoding::u16, "u16", 1, 2},
    {Encoding::u8, "u8", 1, 1},
    {Encoding::boolean, "bool", 1, 1},
    {Encoding::f8_e4m3, "f8_e4m3", 1, 1},
    {Encoding::f8_e5m2, "f8_e5m2", 1, 1},
    {Encoding::q4_0, "q4_0", 32, 18},
    {Encoding::q4_1, "q4_1", 32, 20},
    {Encoding::q5_0, "q5_0", 32, 22},
    {Encoding::q5_1, "q5_1", 32, 24},
    {Encoding::q8_0, "q8_0", 32, 34},
    {Encoding::q8_1, "q8_1", 32, 36},
    {Encoding::q2_k, "q2_k", 256, 84},
    {Encoding::q3_k, "q3_k", 256, 110},
    {Encoding::q4_k, "q4_k", 256, 144},
    {Encoding::q5_k, "q5_k", 256, 176},
    {Encoding::q6_k, "q6_k", 256, 210},
    {Encoding::q8_k, "q8_k", 256, 292},
    {Encoding::iq2_xxs, "iq2_xxs", 256, 66},
    {Encoding::iq2_xs, "iq2_xs", 256, 74},
    {Encoding::iq2_s, "iq2_s", 256, 82},
    {Encoding::iq3_xxs, "iq3_xxs", 256, 98},
    {Encoding::iq3_s, "iq3_s", 256, 110},
    {Encoding::iq1_s, "iq1_s", 256, 50},
    {Encoding::iq1_m, "iq1_m", 256, 56},
    {Encoding::iq4_nl, "iq4_nl", 32, 18},
    {Encoding::iq4_xs, "iq4_xs", 256, 136},
    {Encoding::tq1_0, "tq1_0", 256, 54},
    {Encoding::tq2_0, "tq2_0", 256, 66},
    {Encoding::mxfp4, "mxfp4", 32, 17},
    {Encoding::a8_32, "a8_32", 32, 40},
    {Encoding::a8_256, "a8_256", 256, 292},
});

constexpr bool in_enum_order() {
  for (std::size_t i = 0; i < kEncodings.size(); ++i)
    if (static_cast<std::size_t>(kEncodings[i].encoding) != i) return false;
  return true;
}
static_assert(in_enum_order());

}  // namespace

const EncodingInfo& info(Encoding encoding) {
  return kEncodings[static_cast<std::size_t>(encoding)];
}

std::string_view to_string(Encoding encoding) {
  return info(encoding).name;
}

std::optional<Encoding> parse_encoding(std::string_view name) {
  const auto found =
      std::find_if(kEncodings.begin(), kEncodings.end(), [&](const EncodingInfo& entry) { return entry.name == name; });
  if (found == kEncodings.end()) return std::nullopt;
  return found->encoding;
}

std::uint64_t encoded_bytes(Encoding encoding, std::uint64_t elements, std::string_view what) {
  const EncodingInfo& entry = info(encoding);
  if (elements % entry.block_size != 0)
    fail(ErrorCode::format, "{}: {} elements are not whole {} blocks of {}", what, elements, entry.name,
         entry.block_size);
  return checked_mul(elements / entry.block_size, entry.block_bytes, what);
}

}  // namespace candor
