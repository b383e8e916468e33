// What is compiled for each instruction set this build has.
#pragma once

#include <span>

#include "kernels/cpu/kernel.h"

namespace candor::cpu {

/// Streams that read_streams reads in lockstep, as products with one row read panels.
inline constexpr int kReadStreams = 4;

// kernel_table: its kernels. run_fma_chains: independent chains of multiply-adds in registers; the operations done.
// run_dot_chains: the same of int8 with 4-bit weights, from the first cache.
// read_streams: reads `piece` bytes, a multiple of 64, of each stream; streams begin `stream_bytes` after each other.
namespace portable {
std::span<const Kernel> kernel_table();
std::uint64_t run_fma_chains(std::uint32_t steps);
std::uint64_t run_dot_chains(std::uint32_t steps);
std::uint64_t read_streams(const std::byte* data, std::size_t stream_bytes, std::size_t piece);
}  // namespace portable
namespace avx2 {
std::span<const Kernel> kernel_table();
std::uint64_t run_fma_chains(std::uint32_t steps);
std::uint64_t run_dot_chains(std::uint32_t steps);
std::uint64_t read_streams(const std::byte* data, std::size_t stream_bytes, std::size_t piece);
}  // namespace avx2
namespace avx512 {
std::span<const Kernel> kernel_table();
std::uint64_t run_fma_chains(std::uint32_t steps);
std::uint64_t run_dot_chains(std::uint32_t steps);
std::uint64_t read_streams(const std::byte* data, std::size_t stream_bytes, std::size_t piece);
}  // namespace avx512
namespace neon {
std::span<const Kernel> kernel_table();
std::uint64_t run_fma_chains(std::uint32_t steps);
std::uint64_t run_dot_chains(std::uint32_t steps);
std::uint64_t read_streams(const std::byte* data, std::size_t stream_bytes, std::size_t piece);
}  // namespace neon

}  // namespace candor::cpu
