#include "runtime/kv_pages.h"

#include "base/error.h"

namespace candor::runtime {

KvPages::KvPages(std::uint32_t pages, std::uint32_t page_positions) : page_positions_(page_positions) {
  for (std::uint32_t page = pages; page-- > 0;) free_.push_back(page);
}

std::uint32_t KvPages::pages_for(std::uint32_t positions) const {
  return positions / page_positions_ + (positions % page_positions_ != 0 ? 1 : 0);
}

void KvPages::grow(std::vector<std::uint32_t>& table, std::uint32_t positions) {
  while (table.size() < pages_for(positions)) {
    if (free_.empty())
      fail(ErrorCode::resource,
           "no free page in the KV cache for position {}; end another sequence or use a longer "
           "--context",
           table.size() * page_positions_);
    table.push_back(free_.back());
    free_.pop_back();
  }
}

void KvPages::shrink(std::vector<std::uint32_t>& table, std::uint32_t positions) {
  while (table.size() > pages_for(positions)) {
    free_.push_back(table.back());
    table.pop_back();
  }
}

}  // namespace candor::runtime
