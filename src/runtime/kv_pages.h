// Which KV pages belong to which sequence. The caches of all layers use the same page numbers, so one table a sequence
// is enough. Contiguous layout is the case of one page a sequence; in layout sliding, pages that no query can see any
// more are given back while the sequence grows, and their places in the table are never read again.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/program.h"

namespace candor::runtime {

/// One sequence's pages: position p lies in pages[p / page_positions].
struct PageTable {
  std::vector<std::uint32_t> pages;
  std::uint32_t dropped = 0;  ///< of these, how many at the start were given back
};

class KvPages {
 public:
  explicit KvPages(const ProgramLimits& limits);

  /// Makes `table` cover `positions` positions, of which those from `first` on are new. Throws Error(resource) if no
  /// page is free.
  void grow(PageTable& table, std::uint32_t first, std::uint32_t positions);
  /// Gives back the pages that `positions` positions do not need. Throws Error(resource) if layout sliding has dropped
  /// what the next position would see.
  void shrink(PageTable& table, std::uint32_t positions);

  [[nodiscard]] std::uint32_t free_pages() const { return static_cast<std::uint32_t>(free_.size()); }

  /// Pages that one sequence needs at most, for limits whose layout, window, rows and page_positions are set.
  [[nodiscard]] static std::uint32_t pages_a_sequence(const ProgramLimits& limits);

 private:
  /// The first position that a query at `position` may see.
  [[nodiscard]] std::uint32_t first_seen(std::uint32_t position) const;

  std::uint32_t page_positions_;
  std::uint32_t window_;             // 0: every position is kept
  std::uint32_t overrun_;            // positions that may be taken back after they were written
  std::vector<std::uint32_t> free_;  // the next page to hand out is the last
};

}  // namespace candor::runtime
