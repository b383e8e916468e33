// Aborts a fuzz target when what it holds in memory exceeds a small multiple of its input: a reader must not believe a
// count before it has seen the bytes. Included once in a program, as it replaces operator new.
#pragma once

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace candor {

inline std::atomic<std::size_t> live_bytes{0};
inline std::atomic<std::size_t> live_limit{~std::size_t{0}};

/// While it lives, at most `multiple` × `input` bytes and a constant may be allocated beyond what was.
class AllocationLimit {
 public:
  explicit AllocationLimit(std::size_t input, std::size_t multiple = 64) {
    constexpr std::size_t kConstant = std::size_t{1} << 20;
    live_limit = live_bytes + input * multiple + kConstant;
  }
  ~AllocationLimit() { live_limit = ~std::size_t{0}; }
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;
};

inline void* allocate_counted(std::size_t size) {
  if (live_bytes + size > live_limit) {
    std::fprintf(stderr, "%zu bytes asked for, with %zu held and a limit of %zu\n", size, live_bytes.load(),
                 live_limit.load());
    std::abort();
  }
  void* memory = std::malloc(size);
  if (!memory) std::abort();
  live_bytes += ::malloc_usable_size(memory);
  return memory;
}

inline void free_counted(void* memory) {
  if (memory) live_bytes -= ::malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace candor

void* operator new(std::size_t size) {
  return candor::allocate_counted(size);
}
void* operator new[](std::size_t size) {
  return candor::allocate_counted(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return candor::allocate_counted(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return candor::allocate_counted(size);
}
void operator delete(void* memory) noexcept {
  candor::free_counted(memory);
}
void operator delete[](void* memory) noexcept {
  candor::free_counted(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  candor::free_counted(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  candor::free_counted(memory);
}
