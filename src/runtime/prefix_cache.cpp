#include "runtime/prefix_cache.h"

#include "base/sha256.h"

namespace candor::runtime {

std::vector<std::string> PrefixCache::keys(std::span<const std::uint32_t> tokens,
                                           std::span<const std::uint32_t> types) const {
  std::vector<std::string> out;
  std::string before = root_;
  std::vector<std::uint32_t> content(2 * std::size_t{page_positions_});
  for (std::size_t first = 0; first + page_positions_ <= tokens.size() && out.size() < most_pages_;
       first += page_positions_) {
    for (std::size_t i = 0; i < page_positions_; ++i) {
      content[2 * i] = tokens[first + i];
      content[2 * i + 1] = first + i < types.size() ? types[first + i] : 0;
    }
    Sha256 digest;
    digest.update(before).update(std::as_bytes(std::span(content)));
    before = digest.hex();
    out.push_back(before);
  }
  return out;
}

void PrefixCache::use(std::span<const std::string> chain) {
  for (auto key = chain.rbegin(); key != chain.rend(); ++key)
    entries_.splice(entries_.begin(), entries_, by_key_.find(*key)->second);
}

std::vector<std::uint32_t> PrefixCache::find(std::span<const std::uint32_t> tokens,
                                             std::span<const std::uint32_t> types) {
  std::vector<std::uint32_t> pages;
  const std::vector<std::string> chain = keys(tokens, types);
  for (const std::string& key : chain) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) break;
    pages.push_back(found->second->page);
  }
  use(std::span(chain).first(pages.size()));
  return pages;
}

void PrefixCache::add(std::span<const std::uint32_t> tokens, std::span<const std::uint32_t> types,
                      std::span<const std::uint32_t> pages, KvPages& kv) {
  const std::vector<std::string> chain = keys(tokens, types);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    if (by_key_.contains(chain[i])) continue;
    entries_.push_front({chain[i], pages[i]});
    by_key_.emplace(chain[i], entries_.begin());
    kv.hold(pages[i]);
  }
  use(chain);
  while (entries_.size() > most_pages_) forget_oldest(kv);
}

bool PrefixCache::forget_oldest(KvPages& kv) {
  if (entries_.empty()) return false;
  kv.release(entries_.back().page);
  by_key_.erase(entries_.back().key);
  entries_.pop_back();
  return true;
}

}  // namespace candor::runtime
