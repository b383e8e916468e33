#include "runtime/kv_pages.h"

#include <algorithm>

#include "base/error.h"

namespace candor::runtime {
namespace {

std::uint32_t pages_for(std::uint64_t positions, std::uint32_t page_positions) {
  return static_cast<std::uint32_t>((positions + page_positions - 1) / page_positions);
}

}  // namespace

KvPages::KvPages(const ProgramLimits& limits)
    : page_positions_(limits.page_positions), window_(limits.window), overrun_(limits.overrun) {
  for (std::uint32_t page = limits.pages; page-- > 0;) free_.push_back(page);
}

std::uint32_t KvPages::pages_a_sequence(const ProgramLimits& limits) {
  const std::uint32_t all = pages_for(limits.context, limits.page_positions);
  if (limits.window == 0) return all;
  // A batch's rows, what its first row sees, and what may be taken back, beginning anywhere in a page.
  const std::uint64_t live = std::uint64_t{limits.window} - 1 + limits.overrun + limits.rows;
  return std::min(all, pages_for(live, limits.page_positions) + 1);
}

std::uint32_t KvPages::first_seen(std::uint32_t position) const {
  return window_ == 0 || position < window_ ? 0 : position - window_ + 1;
}

void KvPages::grow(PageTable& table, std::uint32_t first, std::uint32_t positions) {
  const std::uint32_t kept_from = first_seen(first) - std::min(first_seen(first), overrun_);
  for (; table.dropped < kept_from / page_positions_; ++table.dropped) free_.push_back(table.pages[table.dropped]);
  while (table.pages.size() < pages_for(positions, page_positions_)) {
    if (free_.empty())
      fail(ErrorCode::resource,
           "no free page in the KV cache for position {}; end another sequence or use a longer --context",
           table.pages.size() * page_positions_);
    table.pages.push_back(free_.back());
    free_.pop_back();
  }
}

void KvPages::shrink(PageTable& table, std::uint32_t positions) {
  if (positions != 0 && table.dropped * page_positions_ > first_seen(positions))
    fail(ErrorCode::resource,
         "the sliding KV cache has dropped positions before {}, which position {} would see; start the sequence anew",
         table.dropped * page_positions_, positions);
  while (table.pages.size() > pages_for(positions, page_positions_)) {
    if (table.pages.size() > table.dropped) free_.push_back(table.pages.back());
    table.pages.pop_back();
  }
  table.dropped = std::min(table.dropped, static_cast<std::uint32_t>(table.pages.size()));
}

}  // namespace candor::runtime
