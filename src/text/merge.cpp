#include "text/merge.h"

#include <algorithm>
#include <functional>

namespace candor::text {
namespace {

std::size_t slot_of(std::uint32_t rank, std::size_t slots) {
  return (rank * 0x9e37'79b1u >> 7) & (slots - 1);
}

}  // namespace

MergeQueue::Bucket& MergeQueue::bucket_of(std::uint32_t rank) {
  if (2 * (buckets_.size() + 1) > slots_.size()) grow();
  std::size_t slot = slot_of(rank, slots_.size());
  for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1))
    if (buckets_[slots_[slot] - 1].rank == rank) return buckets_[slots_[slot] - 1];
  buckets_.emplace_back().rank = rank;
  slots_[slot] = static_cast<std::uint32_t>(buckets_.size());
  return buckets_.back();
}

void MergeQueue::grow() {
  slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), 0);
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    std::size_t slot = slot_of(buckets_[i].rank, slots_.size());
    while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<std::uint32_t>(i + 1);
  }
}

void MergeQueue::push(std::uint32_t rank, std::uint32_t position) {
  Bucket& bucket = bucket_of(rank);
  if (bucket.front == bucket.run.size() || bucket.run.back() <= position) {
    bucket.run.push_back(position);
  } else {
    bucket.heap.push_back(position);
    std::push_heap(bucket.heap.begin(), bucket.heap.end(), std::greater<>());
  }
  if (bucket.queued) return;
  bucket.queued = true;
  ranks_.push_back(std::uint64_t{rank} << 32 | static_cast<std::uint64_t>(&bucket - buckets_.data()));
  std::push_heap(ranks_.begin(), ranks_.end(), std::greater<>());
}

bool MergeQueue::pop(std::uint32_t& rank, std::uint32_t& position) {
  if (ranks_.empty()) return false;
  Bucket& bucket = buckets_[ranks_.front() & 0xffff'ffff];
  rank = bucket.rank;
  const bool run_left = bucket.front < bucket.run.size();
  if (run_left && (bucket.heap.empty() || bucket.run[bucket.front] <= bucket.heap.front())) {
    position = bucket.run[bucket.front++];
  } else {
    position = bucket.heap.front();
    std::pop_heap(bucket.heap.begin(), bucket.heap.end(), std::greater<>());
    bucket.heap.pop_back();
  }
  if (bucket.front == bucket.run.size() && bucket.heap.empty()) {
    bucket.queued = false;
    bucket.run.clear();
    bucket.front = 0;
    std::pop_heap(ranks_.begin(), ranks_.end(), std::greater<>());
    ranks_.pop_back();
  }
  return true;
}

}  // namespace candor::text
