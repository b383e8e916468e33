// Random and hostile weights in quantized encodings, and what they mean by the formats' definitions, written out here a
// second time, value by value, as the oracle of the kernels' own readers.
#pragma once

#include <random>

#include "kernels/cpu/kernel_call.h"

namespace candor::cpu::testing {

/// Blocks of random bytes whose f16 factors are random and finite. With `hostile`, every byte but the factors is 0x80
/// or 0xff: -128 in Q8_0 and scales of -128 in Q6_K.
[[nodiscard]] StoredWeight quantized_weight(std::mt19937_64& random, std::uint64_t rows, std::uint64_t cols,
                                            Encoding encoding, bool hostile = false);

/// The values of one row of blocks.
[[nodiscard]] std::vector<double> dequantize(Encoding encoding, std::span<const std::byte> row);

}  // namespace candor::cpu::testing
