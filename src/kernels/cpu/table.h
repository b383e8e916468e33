// What is compiled for each instruction set this build has.
#pragma once

#include <span>

#include "kernels/cpu/kernel.h"

namespace candor::cpu {

// kernel_table: its kernels. run_fma_chains: independent chains of multiply-adds in registers; the operations done.
namespace portable {
std::span<const Kernel> kernel_table();
std::uint64_t run_fma_chains(std::uint32_t steps);
}  // namespace portable
namespace avx2 {
std::span<const Kernel> kernel_table();
std::uint64_t run_fma_chains(std::uint32_t steps);
}  // namespace avx2
namespace avx512 {
std::span<const Kernel> kernel_table();
std::uint64_t run_fma_chains(std::uint32_t steps);
}  // namespace avx512
namespace neon {
std::span<const Kernel> kernel_table();
std::uint64_t run_fma_chains(std::uint32_t steps);
}  // namespace neon

}  // namespace candor::cpu
