// The merge loop of byte-pair encoding: while some neighbouring pair may be merged, merge the one of lowest rank, the
// leftmost of equals. Short words scan for it; long ones keep a queue over a linked list, so that a word of n symbols
// takes O(n log n), even a megabyte of one letter (Sennrich et al. 2016; the queue is the usual one).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace candor::text {

struct Symbol {
  std::uint32_t id = 0;
  std::uint32_t begin = 0;  ///< in the word, bytes
  std::uint32_t length = 0;
  bool frozen = false;  ///< never merged
};

struct Merge {
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  std::uint32_t rank = kNone;  ///< lower is merged earlier; kNone: the pair is not merged
  std::uint32_t id = 0;        ///< of the merged symbol
};

/// Pairs waiting to be merged, by rank and then position. Ranks share few distinct values in long monotonous words, so
/// positions are kept per rank: mostly an ascending run that is consumed from the front, with a heap for the rest.
class MergeQueue {
 public:
  void push(std::uint32_t rank, std::uint32_t position);
  /// Takes the first pair; false if there is none.
  [[nodiscard]] bool pop(std::uint32_t& rank, std::uint32_t& position);

 private:
  struct Bucket {
    std::uint32_t rank = 0;
    std::vector<std::uint32_t> run;  // ascending
    std::size_t front = 0;
    std::vector<std::uint32_t> heap;  // smallest first
    bool queued = false;
  };

  [[nodiscard]] Bucket& bucket_of(std::uint32_t rank);
  void grow();

  std::vector<Bucket> buckets_;
  std::vector<std::uint32_t> slots_;  // rank → index in buckets_ + 1, by open addressing
  std::vector<std::uint64_t> ranks_;  // heap of rank << 32 | bucket, one entry for each bucket that is not empty
};

/// Words of at most this many symbols are scanned.
inline constexpr std::size_t kShortWord = 24;

inline Symbol joined(const Symbol& left, const Symbol& right, std::uint32_t id) {
  return {id, left.begin, left.length + right.length, false};
}

template <typename Rule>
void merge_short(std::vector<Symbol>& symbols, const Rule& rule) {
  Merge merges[kShortWord];  // of symbol i and its right neighbour
  std::size_t count = symbols.size();
  if (count < 2) return;
  for (std::size_t i = 0; i + 1 < count; ++i) merges[i] = rule(symbols[i], symbols[i + 1]);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i)
      if (merges[i].rank < merges[best].rank) best = i;
    if (merges[best].rank == Merge::kNone) break;
    symbols[best] = joined(symbols[best], symbols[best + 1], merges[best].id);
    --count;
    for (std::size_t i = best + 1; i < count; ++i) symbols[i] = symbols[i + 1];
    for (std::size_t i = best + 1; i + 1 < count; ++i) merges[i] = merges[i + 1];
    if (best > 0) merges[best - 1] = rule(symbols[best - 1], symbols[best]);
    if (best + 1 < count) merges[best] = rule(symbols[best], symbols[best + 1]);
  }
  symbols.resize(count);
}

template <typename Rule>
void merge_long(std::vector<Symbol>& symbols, const Rule& rule) {
  constexpr std::uint32_t kEnd = 0xffff'ffff;
  struct Link {
    std::uint32_t previous, next;
    Merge merge;  // with the next symbol; kNone rank also for a symbol merged away
  };
  const auto count = static_cast<std::uint32_t>(symbols.size());
  std::vector<Link> links(count);
  MergeQueue queue;
  const auto consider = [&](std::uint32_t at) {
    Link& link = links[at];
    link.merge = link.next == kEnd ? Merge{} : rule(symbols[at], symbols[link.next]);
    if (link.merge.rank != Merge::kNone) queue.push(link.merge.rank, at);
  };
  for (std::uint32_t i = 0; i < count; ++i) links[i] = {i == 0 ? kEnd : i - 1, i + 1 == count ? kEnd : i + 1, {}};
  for (std::uint32_t i = 0; i < count; ++i) consider(i);
  std::uint32_t rank = 0;
  std::uint32_t at = 0;
  while (queue.pop(rank, at)) {
    Link& link = links[at];
    if (link.merge.rank != rank) continue;  // the pair has changed since it was queued
    Link& gone = links[link.next];
    symbols[at] = joined(symbols[at], symbols[link.next], link.merge.id);
    gone.merge = {};
    link.next = gone.next;
    if (link.next != kEnd) links[link.next].previous = at;
    consider(at);
    if (link.previous != kEnd) consider(link.previous);
  }
  std::size_t kept = 0;
  for (std::uint32_t i = 0; i != kEnd; i = links[i].next) symbols[kept++] = symbols[i];
  symbols.resize(kept);
}

/// Merges `symbols` in place. rule(left, right) answers with the Merge of two neighbours.
template <typename Rule>
void merge_symbols(std::vector<Symbol>& symbols, const Rule& rule) {
  if (symbols.size() <= kShortWord) {
    merge_short(symbols, rule);
  } else {
    merge_long(symbols, rule);
  }
}

}  // namespace candor::text
