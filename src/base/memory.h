// Memory for weights, caches and buffers: page-aligned, zero when first touched, and refused with numbers when the
// machine has not enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace candor {

/// A page-aligned block, zeroed. Pages count against the machine only once they are touched.
class Memory {
 public:
  Memory() = default;
  /// Throws Error(resource), naming `what`, if the system refuses.
  Memory(std::uint64_t bytes, std::string_view what);
  ~Memory();
  Memory(Memory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
};

/// Bytes this process may still use: MemAvailable of /proc/meminfo, or what its control group leaves (cgroup v2) if
/// that is less. Nothing if neither can be read.
[[nodiscard]] std::optional<std::uint64_t> available_memory();

/// "1.4 GiB", "523.0 MiB", "17.2 KiB", "12 B".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

}  // namespace candor
