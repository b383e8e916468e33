#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/table.h"

namespace candor::cpu {
namespace {

#if defined(__x86_64__)
/// Asked of the processor itself: not every compiler's __builtin_cpu_supports knows "f16c".
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

/// False too where the build left AVX-512 out (CANDOR_AVX512).
bool has_avx512() {
#if !defined(CANDOR_AVX512)
  return false;
#endif
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

std::span<const Isa> detect() {
  static constexpr Isa kAll[] = {Isa::avx512, Isa::avx2, Isa::portable};
  const std::span<const Isa> all = kAll;
  return all.subspan(has_avx512() ? 0 : has_avx2() ? 1 : 2);
}
#elif defined(__aarch64__)
std::span<const Isa> detect() {
  static constexpr Isa kAll[] = {Isa::neon, Isa::portable};
  return kAll;
}
#else
std::span<const Isa> detect() {
  static constexpr Isa kAll[] = {Isa::portable};
  return kAll;
}
#endif

}  // namespace

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::neon:
      return "neon";
    case Isa::portable:
      break;
  }
  return "portable";
}

std::span<const Isa> available_isas() {
  static const std::span<const Isa> available = detect();
  return available;
}

std::span<const Kernel> kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx2:
      return avx2::kernel_table();
    case Isa::avx512:
#if defined(CANDOR_AVX512)
      return avx512::kernel_table();
#endif
    case Isa::neon:
      return {};
#elif defined(__aarch64__)
    case Isa::neon:
      return neon::kernel_table();
    case Isa::avx2:
    case Isa::avx512:
      return {};
#else
    case Isa::neon:
    case Isa::avx2:
    case Isa::avx512:
      return {};
#endif
    case Isa::portable:
      break;
  }
  return portable::kernel_table();
}

const Kernel* find_kernel(Isa isa, std::string_view file, std::string_view entry) {
  for (const Kernel& kernel : kernels(isa))
    if (kernel.file == file && kernel.entry == entry) return &kernel;
  return nullptr;
}

}  // namespace candor::cpu
