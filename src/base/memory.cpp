#include "base/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/error.h"

namespace candor {
namespace {

std::optional<std::uint64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // missing, or the word "max"
}

std::optional<std::uint64_t> machine_available() {
  std::ifstream file("/proc/meminfo");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string name;
    std::uint64_t kib = 0;
    if (fields >> name >> kib && name == "MemAvailable:") return kib * 1024;
  }
  return std::nullopt;
}

/// Pages of files that a control group holds and can give back.
std::uint64_t reclaimable(const std::string& folder) {
  std::ifstream file(folder + "/memory.stat");
  std::string name;
  std::uint64_t bytes = 0, total = 0;
  while (file >> name >> bytes)
    if (name == "active_file" || name == "inactive_file") total += bytes;
  return total;
}

/// What the tightest control group above this process leaves.
std::optional<std::uint64_t> group_available() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  std::optional<std::uint64_t> least;
  while (std::getline(file, line)) {
    if (!line.starts_with("0::")) continue;
    for (std::string group = line.substr(3); !group.empty(); group = group.substr(0, group.rfind('/'))) {
      const std::string folder = "/sys/fs/cgroup" + group;
      const auto limit = read_number(folder + "/memory.max");
      const auto used = read_number(folder + "/memory.current");
      if (!limit || !used) continue;
      const std::uint64_t held = *used - std::min(*used, reclaimable(folder));
      const std::uint64_t left = *limit > held ? *limit - held : 0;
      least = std::min(least.value_or(left), left);
    }
  }
  return least;
}

}  // namespace

Memory::Memory(std::uint64_t bytes, std::string_view what) : size_(bytes) {
  if (bytes == 0) return;
  void* data = bytes > std::numeric_limits<std::size_t>::max() / 2
                   ? MAP_FAILED
                   : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    fail(ErrorCode::resource, "{}: the system gives no {} of memory: {}", what, format_bytes(bytes),
         std::strerror(errno));
  constexpr std::uint64_t kHugePage = 2 << 20;
  if (bytes >= kHugePage) ::madvise(data, bytes, MADV_HUGEPAGE);  // a hint; refusal changes only speed
  data_ = static_cast<std::byte*>(data);
}

Memory::~Memory() {
  if (data_) ::munmap(data_, size_);
}

std::optional<std::uint64_t> available_memory() {
  const auto machine = machine_available();
  const auto group = group_available();
  if (machine && group) return std::min(*machine, *group);
  return machine ? machine : group;
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace candor
