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
    : page_positions_(limits.page_positions),
      window_(limits.window),
      overrun_(limits.overrun),
      holders_(limits.pages, 0) {
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

std::uint32_t KvPages::unseen(std::uint32_t first) const {
  const std::uint32_t seen = first_seen(first);
  return (seen - std::min(seen, overrun_)) / page_positions_;
}

bool KvPages::writes_shared(const PageTable& table, std::uint32_t first) const {
  return first % page_positions_ != 0 && holders_[table.pages[first / page_positions_]] > 1;
}

std::uint32_t KvPages::take() {
  const std::uint32_t page = free_.back();
  free_.pop_back();
  holders_[page] = 1;
  return page;
}

void KvPages::release(std::uint32_t page) {
  if (--holders_[page] == 0) free_.push_back(page);
}

std::uint32_t KvPages::missing(const PageTable& table, std::uint32_t first, std::uint32_t positions) const {
  std::uint32_t needed = pages_for(positions, page_positions_) - static_cast<std::uint32_t>(table.pages.size());
  if (writes_shared(table, first)) ++needed;
  std::uint32_t available = free_pages();
  for (std::uint32_t page = table.dropped; page < unseen(first); ++page)
    if (holders_[table.pages[page]] == 1) ++available;
  return needed - std::min(needed, available);
}

std::optional<PageCopy> KvPages::grow(PageTable& table, std::uint32_t first, std::uint32_t positions) {
  if (const std::uint32_t short_of = missing(table, first, positions); short_of > 0)
    fail(ErrorCode::resource,
         "the KV cache has {} pages too few for positions {} to {}; end another sequence or use a longer --context",
         short_of, first, positions - 1);
  for (; table.dropped < unseen(first); ++table.dropped) release(table.pages[table.dropped]);
  std::optional<PageCopy> copy;
  if (writes_shared(table, first)) {
    std::uint32_t& page = table.pages[first / page_positions_];
    copy = PageCopy{page, take()};
    release(page);
    page = copy->to;
  }
  while (table.pages.size() < pages_for(positions, page_positions_)) table.pages.push_back(take());
  return copy;
}

void KvPages::check_kept(const PageTable& table, std::uint32_t positions) const {
  if (positions != 0 && table.dropped * page_positions_ > first_seen(positions))
    fail(ErrorCode::resource,
         "the sliding KV cache has dropped positions before {}, which position {} would see; start the sequence anew",
         table.dropped * page_positions_, positions);
}

void KvPages::shrink(PageTable& table, std::uint32_t positions) {
  check_kept(table, positions);
  while (table.pages.size() > pages_for(positions, page_positions_)) {
    if (table.pages.size() > table.dropped) release(table.pages.back());
    table.pages.pop_back();
  }
  table.dropped = std::min(table.dropped, static_cast<std::uint32_t>(table.pages.size()));
}

PageTable KvPages::share(const PageTable& table, std::uint32_t positions) {
  check_kept(table, positions);
  PageTable out;
  const std::uint32_t pages = pages_for(positions, page_positions_);
  out.pages.assign(table.pages.begin(), table.pages.begin() + pages);
  out.dropped = std::min(table.dropped, pages);
  for (std::uint32_t i = out.dropped; i < pages; ++i) hold(out.pages[i]);
  return out;
}

}  // namespace candor::runtime
