// Philox 4×32-10 (Salmon et al. 2011): random bits as a function of a key and a counter, in integer arithmetic, so that
// a draw depends on what it is for and on nothing that happened before.
#pragma once

#include <array>
#include <cstdint>

namespace candor::cpu {

[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                            std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xd2511f53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xcd9e8d57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + 0x9e3779b9, key[1] + 0xbb67ae85};
  }
  return counter;
}

/// A number in [0, 1) with 53 random bits for one draw of one sequence.
[[nodiscard]] constexpr double uniform(std::uint64_t seed, std::uint64_t sequence, std::uint32_t position) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const auto word = philox({position, 0, low(sequence), high(sequence)}, {low(seed), high(seed)});
  return static_cast<double>((std::uint64_t{word[0]} << 32 | word[1]) >> 11) * 0x1p-53;
}

}  // namespace candor::cpu
