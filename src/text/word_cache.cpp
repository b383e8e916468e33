#include "text/word_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "text/vocabulary.h"

namespace candor::text {

std::optional<std::span<const std::uint32_t>> WordCache::get(std::string_view word) const {
  if (word.size() > kWordBytes) return std::nullopt;
  const Entry& entry = entries_[hash_bytes(word) & (kEntries - 1)];
  if (entry.length != word.size() || std::memcmp(entry.word.data(), word.data(), word.size()) != 0) return std::nullopt;
  return std::span(entry.ids).first(entry.count);
}

void WordCache::put(std::string_view word, std::span<const std::uint32_t> ids) {
  if (word.size() > kWordBytes || word.empty() || ids.size() > kIds) return;
  Entry& entry = entries_[hash_bytes(word) & (kEntries - 1)];
  entry.length = static_cast<std::uint8_t>(word.size());
  entry.count = static_cast<std::uint8_t>(ids.size());
  std::copy(word.begin(), word.end(), entry.word.begin());
  std::copy(ids.begin(), ids.end(), entry.ids.begin());
}

std::unique_ptr<WordCache> WordCachePool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      auto cache = std::move(free_.back());
      free_.pop_back();
      return cache;
    }
  }
  return std::make_unique<WordCache>();
}

void WordCachePool::give_back(std::unique_ptr<WordCache> cache) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(cache));
}

}  // namespace candor::text
