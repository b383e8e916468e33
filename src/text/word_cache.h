// A cache of words and their ids. Most words of a text are repeated ones; a hit costs one hash and one cache line. The
// size is fixed and a new word takes the place of an old one with the same hash, so hostile text cannot make it grow or
// slow down. Not shared: a call borrows a cache from its tokenizer's pool.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace candor::text {

class WordCache {
 public:
  WordCache() : entries_(kEntries) {}

  /// The ids of `word` if it is remembered; valid until the next put().
  [[nodiscard]] std::optional<std::span<const std::uint32_t>> get(std::string_view word) const;

  /// Remembers `word`; does nothing if it or its ids are too long for an entry.
  void put(std::string_view word, std::span<const std::uint32_t> ids);

 private:
  static constexpr std::size_t kEntries = 1u << 15;
  static constexpr std::size_t kWordBytes = 30;
  static constexpr std::size_t kIds = 8;

  struct alignas(64) Entry {
    std::uint8_t length = 0;  // 0: free
    std::uint8_t count = 0;
    std::array<char, kWordBytes> word{};
    std::array<std::uint32_t, kIds> ids{};
  };
  static_assert(sizeof(Entry) == 64);

  std::vector<Entry> entries_;
};

/// Caches for the calls in progress; any thread may borrow one.
class WordCachePool {
 public:
  /// A cache that goes back to the pool when the lease ends.
  class Lease {
   public:
    explicit Lease(WordCachePool& pool) : pool_(pool), cache_(pool.take()) {}
    ~Lease() { pool_.give_back(std::move(cache_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    [[nodiscard]] WordCache& operator*() { return *cache_; }

   private:
    WordCachePool& pool_;
    std::unique_ptr<WordCache> cache_;
  };

 private:
  [[nodiscard]] std::unique_ptr<WordCache> take();
  void give_back(std::unique_ptr<WordCache> cache);

  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> free_;
};

}  // namespace candor::text
