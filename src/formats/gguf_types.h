// ggml's tensor type numbers (ggml.h, enum ggml_type) and the encodings that they are. Private to src/formats.
#pragma once

#include <array>
#include <cstdint>

#include "formats/encoding.h"

namespace candor {

struct GgmlType {
  std::uint32_t number;
  Encoding encoding;
};

/// Numbers that are missing were withdrawn (4, 5, 31 to 33, 36 to 38) or are not read here.
inline constexpr std::array kGgmlTypes = std::to_array<GgmlType>({
    {0, Encoding::f32},      {1, Encoding::f16},     {2, Encoding::q4_0},     {3, Encoding::q4_1},
    {6, Encoding::q5_0},     {7, Encoding::q5_1},    {8, Encoding::q8_0},     {9, Encoding::q8_1},
    {10, Encoding::q2_k},    {11, Encoding::q3_k},   {12, Encoding::q4_k},    {13, Encoding::q5_k},
    {14, Encoding::q6_k},    {15, Encoding::q8_k},   {16, Encoding::iq2_xxs}, {17, Encoding::iq2_xs},
    {18, Encoding::iq3_xxs}, {19, Encoding::iq1_s},  {20, Encoding::iq4_nl},  {21, Encoding::iq3_s},
    {22, Encoding::iq2_s},   {23, Encoding::iq4_xs}, {24, Encoding::i8},      {25, Encoding::i16},
    {26, Encoding::i32},     {27, Encoding::i64},    {28, Encoding::f64},     {29, Encoding::iq1_m},
    {30, Encoding::bf16},    {34, Encoding::tq1_0},  {35, Encoding::tq2_0},   {39, Encoding::mxfp4},
});

}  // namespace candor
