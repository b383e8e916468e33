// Which encoding each tensor gets for a name such as q4_k_m. The mixes are those users know from llama.cpp: more bits
// where errors cost most (the head, and the value and down projections of some layers). docs/formats/quantization.md
// has the table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "formats/tensor.h"

namespace candor {

enum class QuantMix : std::uint8_t { keep, f32, f16, bf16, q8_0, q6_k, q5_k_m, q4_k_m };

[[nodiscard]] std::string_view to_string(QuantMix mix);
/// Nothing for an unknown name.
[[nodiscard]] std::optional<QuantMix> parse_quant_mix(std::string_view name);

/// The encoding of each tensor of a model, in their order. Only matrices are narrowed: vectors, norms, routers,
/// convolutions and position tables become f32. Where a row is not whole blocks of the wanted type, q8_0 is taken, or
/// f16 where it is not whole blocks of 32. `keep` changes nothing.
[[nodiscard]] std::vector<Encoding> choose_encodings(QuantMix mix, std::span<const TensorInfo> tensors);

/// GGUF's `general.file_type` for a mix, as llama.cpp numbers it (llama.h, enum llama_ftype); for `keep` that of the
/// encoding which most bytes of `tensors` have. Nothing where it has no number.
[[nodiscard]] std::optional<std::uint32_t> gguf_file_type(QuantMix mix, std::span<const TensorInfo> tensors);

inline constexpr std::uint32_t kGgufQuantizationVersion = 2;  ///< ggml's GGML_QNT_VERSION: the layout of its blocks

}  // namespace candor
