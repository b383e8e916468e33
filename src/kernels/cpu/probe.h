// What this machine can do at most: the limits that kernels are measured against. Short measurements on the pool's
// threads; other work on the machine lowers them.
#pragma once

#include <cstddef>
#include <memory>

#include "base/thread_pool.h"

namespace candor::cpu {

/// The rate at which all threads together read memory, each in four streams of rising addresses.
class ReadProbe {
 public:
  explicit ReadProbe(ThreadPool& pool);
  /// Bytes a second; takes about 20 ms.
  [[nodiscard]] double measure();

 private:
  ThreadPool& pool_;
  std::unique_ptr<std::byte[]> data_;
};

/// The best of three ReadProbe measurements; about 100 ms.
[[nodiscard]] double measure_read_bandwidth(ThreadPool& pool);

/// Floating-point operations a second (a fused multiply-add is two) that all threads together reach with the best
/// instruction set this processor has, operands in registers; takes about 20 ms.
[[nodiscard]] double measure_fma_peak(ThreadPool& pool);

/// The same of int8 multiply-adds, with weights of 4 bits as the products with Q4_0 and Q4_K use them: 8-bit weights
/// need more instructions.
[[nodiscard]] double measure_dot_peak(ThreadPool& pool);

}  // namespace candor::cpu
