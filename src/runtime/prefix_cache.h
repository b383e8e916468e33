// Which KV pages hold beginnings of texts that were computed before, so that a sequence which begins like one of them
// need not compute it again. A page is known by a digest of everything that its content depends on: the plan, and each
// token, with its type, up to the page's end; so neither another text nor another plan can be taken for it. Holds so
// many pages at most; the page that was not used for the longest goes first, and a page never before those that
// continue it. Not a goal: parts of pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/kv_pages.h"

namespace candor::runtime {

class PrefixCache {
 public:
  PrefixCache(std::string_view plan_digest, std::uint32_t page_positions, std::uint32_t most_pages)
      : root_(plan_digest), page_positions_(page_positions), most_pages_(most_pages) {}

  /// Pages of the longest known beginning of `tokens`, in order; they are the most recently used ones then. `types` may
  /// be shorter, and is 0 beyond its end.
  [[nodiscard]] std::vector<std::uint32_t> find(std::span<const std::uint32_t> tokens,
                                                std::span<const std::uint32_t> types);
  /// Holds the whole pages of `tokens`, which have been computed, as far as they are not known yet.
  void add(std::span<const std::uint32_t> tokens, std::span<const std::uint32_t> types,
           std::span<const std::uint32_t> pages, KvPages& kv);
  /// Lets go of the page that was not used for the longest; false if there is none.
  bool forget_oldest(KvPages& kv);

  [[nodiscard]] std::uint32_t most_pages() const { return most_pages_; }
  [[nodiscard]] std::size_t pages() const { return entries_.size(); }

 private:
  struct Entry {
    std::string key;
    std::uint32_t page = 0;
  };
  using Entries = std::list<Entry>;

  /// The keys of the whole pages of `tokens`, at most most_pages_ of them.
  [[nodiscard]] std::vector<std::string> keys(std::span<const std::uint32_t> tokens,
                                              std::span<const std::uint32_t> types) const;
  /// A page counts as used after those that continue it, so that it stays longer.
  void use(std::span<const std::string> chain);

  std::string root_;
  std::uint32_t page_positions_;
  std::uint32_t most_pages_;
  Entries entries_;  // the most recently used first
  std::map<std::string, Entries::iterator, std::less<>> by_key_;
};

}  // namespace candor::runtime
