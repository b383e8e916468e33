// Which KV pages belong to which sequence. The caches of all layers use the same page numbers, so one table a sequence
// is enough; the states of convolutions lie in the same pages. Contiguous layout is the case of one page a sequence; in
// layout sliding, pages that no query can see any more are given back while the sequence grows, and their places in the
// table are never read again. Sequences with the same beginning may hold the same pages: a page with more than one
// holder is never written, so a sequence that goes on inside one gets a copy first.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/program.h"

namespace candor::runtime {

/// One sequence's pages: position p lies in pages[p / page_positions].
struct PageTable {
  std::vector<std::uint32_t> pages;
  std::uint32_t dropped = 0;  ///< of these, how many at the start were given back
};

/// What a page must hold before it is written to.
struct PageCopy {
  std::uint32_t from = 0, to = 0;
};

class KvPages {
 public:
  explicit KvPages(const ProgramLimits& limits);

  /// Makes `table`, which covers the positions before `first`, cover `positions`. If `first` lies in a page with other
  /// holders, the table has another one afterwards, and the copy to make is returned. Throws Error(resource), with the
  /// table as it was, if too few pages are free.
  [[nodiscard]] std::optional<PageCopy> grow(PageTable& table, std::uint32_t first, std::uint32_t positions);
  /// How many pages more than are free grow() would need.
  [[nodiscard]] std::uint32_t missing(const PageTable& table, std::uint32_t first, std::uint32_t positions) const;
  /// Gives back the pages that `positions` positions do not need. Throws Error(resource) if layout sliding has dropped
  /// what the next position would see.
  void shrink(PageTable& table, std::uint32_t positions);

  /// A table of the first `positions` positions, of the same pages. Throws as shrink() does.
  [[nodiscard]] PageTable share(const PageTable& table, std::uint32_t positions);
  /// One holder more, or one less, of a page that has some.
  void hold(std::uint32_t page) { ++holders_[page]; }
  void release(std::uint32_t page);

  [[nodiscard]] std::uint32_t free_pages() const { return static_cast<std::uint32_t>(free_.size()); }

  /// Pages that one sequence needs at most, for limits whose layout, window, rows and page_positions are set.
  [[nodiscard]] static std::uint32_t pages_a_sequence(const ProgramLimits& limits);

 private:
  /// The first position that a query at `position` may see.
  [[nodiscard]] std::uint32_t first_seen(std::uint32_t position) const;
  /// How many pages at the start no query at `first` or later can see.
  [[nodiscard]] std::uint32_t unseen(std::uint32_t first) const;
  [[nodiscard]] bool writes_shared(const PageTable& table, std::uint32_t first) const;
  [[nodiscard]] std::uint32_t take();
  void check_kept(const PageTable& table, std::uint32_t positions) const;

  std::uint32_t page_positions_;
  std::uint32_t window_;                // 0: every position is kept
  std::uint32_t overrun_;               // positions that may be taken back after they were written
  std::vector<std::uint32_t> free_;     // the next page to hand out is the last
  std::vector<std::uint32_t> holders_;  // of each page: sequences, and the prefix cache
};

}  // namespace candor::runtime
