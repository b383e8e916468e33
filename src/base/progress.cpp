#include "base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace candor {

Progress::Progress(std::string label, std::uint64_t total, bool bytes)
    : label_(std::move(label)),
      total_(total),
      bytes_(bytes),
      visible_(::isatty(STDERR_FILENO) == 1),
      started_(std::chrono::steady_clock::now()),
      last_(started_) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(std::uint64_t done) {
  if (!visible_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  draw(done);
}

void Progress::draw(std::uint64_t done) {
  constexpr int kWidth = 30;
  const double share = total_ ? std::min(1.0, static_cast<double>(done) / static_cast<double>(total_)) : 0.0;
  const int filled = static_cast<int>(share * kWidth);
  std::string line =
      fmt::format("\r\x1b[K{} [{}{}] {:3.0f}%", label_, std::string(static_cast<std::size_t>(filled), '#'),
                  std::string(static_cast<std::size_t>(kWidth - filled), ' '), share * 100);
  if (bytes_) {
    const double seconds = std::chrono::duration<double>(last_ - started_).count();
    constexpr double kMiB = 1 << 20;
    line +=
        fmt::format("  {:.0f}/{:.0f} MiB  {:.0f} MiB/s", static_cast<double>(done) / kMiB,
                    static_cast<double>(total_) / kMiB, seconds > 0 ? static_cast<double>(done) / kMiB / seconds : 0.0);
  } else {
    line += fmt::format("  {}/{}", done, total_);
  }
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

bool is_styled_terminal(int descriptor) {
  return ::isatty(descriptor) == 1 && std::getenv("NO_COLOR") == nullptr;
}

}  // namespace candor
