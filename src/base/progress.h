// Progress of long work on the terminal: one line on standard error, redrawn a few times a second, and nothing at all
// when standard error is not a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace candor {

class Progress {
 public:
  /// `total` in the unit of update(); `bytes` prints amounts as MiB and a rate.
  Progress(std::string label, std::uint64_t total, bool bytes = false);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::uint64_t done);

 private:
  void draw(std::uint64_t done);

  std::string label_;
  std::uint64_t total_;
  bool bytes_;
  bool visible_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point last_;
};

/// True if colours and cursor movement may be written to this descriptor: a terminal, and NO_COLOR is not set.
[[nodiscard]] bool is_styled_terminal(int descriptor);

}  // namespace candor
