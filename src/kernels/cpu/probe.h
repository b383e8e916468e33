// What this machine can do at most: the limits that kernels are measured against. Short measurements on the pool's
// threads; other work on the machine lowers them.
#pragma once

#include "base/thread_pool.h"

namespace candor::cpu {

/// Bytes a second that all threads together read from memory, each in four streams of rising addresses. About 50 ms.
[[nodiscard]] double measure_read_bandwidth(ThreadPool& pool);

/// Floating-point operations a second (a fused multiply-add is two) that all threads together reach with the best
/// instruction set this processor has, operands in registers. About 50 ms.
[[nodiscard]] double measure_fma_peak(ThreadPool& pool);

}  // namespace candor::cpu
