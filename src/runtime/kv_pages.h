// Which KV pages belong to which sequence. The caches of all layers use the same page numbers, so one table a sequence
// is enough. Contiguous layout is the case of one page a sequence.
#pragma once

#include <cstdint>
#include <vector>

namespace candor::runtime {

class KvPages {
 public:
  KvPages(std::uint32_t pages, std::uint32_t page_positions);

  /// Makes `table` cover `positions` positions. Throws Error(resource) if no page is free.
  void grow(std::vector<std::uint32_t>& table, std::uint32_t positions);
  /// Gives back the pages that `positions` positions do not need.
  void shrink(std::vector<std::uint32_t>& table, std::uint32_t positions);

  [[nodiscard]] std::uint32_t free_pages() const { return static_cast<std::uint32_t>(free_.size()); }

 private:
  [[nodiscard]] std::uint32_t pages_for(std::uint32_t positions) const;

  std::uint32_t page_positions_;
  std::vector<std::uint32_t> free_;  // the next page to hand out is the last
};

}  // namespace candor::runtime
