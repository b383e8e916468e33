// Codebooks of the importance-quantized types. An entry packs one point of the codebook, element 0 in the lowest bits:
// eight elements of two bits (levels 8, 25, 43; for kIq1Grid −1, 0, 1), or four of three bits (kIq3XxsGrid: 4, 12, …,
// 52, 62; kIq3SGrid: 1, 3, …, 15).
#pragma once

#include <array>
#include <cstdint>

namespace candor {

extern const std::array<std::uint16_t, 256> kIq2XxsGrid;
extern const std::array<std::uint16_t, 512> kIq2XsGrid;
extern const std::array<std::uint16_t, 1024> kIq2SGrid;
extern const std::array<std::uint16_t, 256> kIq3XxsGrid;
extern const std::array<std::uint16_t, 512> kIq3SGrid;
extern const std::array<std::uint16_t, 2048> kIq1Grid;

}  // namespace candor
