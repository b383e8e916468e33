// Safetensors' dtype names and the encodings that they are. Private to src/formats.
#pragma once

#include <array>
#include <string_view>

#include "formats/encoding.h"

namespace candor {

struct SafetensorsDtype {
  std::string_view name;
  Encoding encoding;
};

inline constexpr std::array kSafetensorsDtypes = std::to_array<SafetensorsDtype>({{"F64", Encoding::f64},
                                                                                  {"F32", Encoding::f32},
                                                                                  {"F16", Encoding::f16},
                                                                                  {"BF16", Encoding::bf16},
                                                                                  {"I64", Encoding::i64},
                                                                                  {"I32", Encoding::i32},
                                                                                  {"I16", Encoding::i16},
                                                                                  {"I8", Encoding::i8},
                                                                                  {"U64", Encoding::u64},
                                                                                  {"U32", Encoding::u32},
                                                                                  {"U16", Encoding::u16},
                                                                                  {"U8", Encoding::u8},
                                                                                  {"BOOL", Encoding::boolean},
                                                                                  {"F8_E4M3", Encoding::f8_e4m3},
                                                                                  {"F8_E5M2", Encoding::f8_e5m2}});

}  // namespace candor
