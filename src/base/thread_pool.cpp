#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>

namespace candor {
namespace {

/// Rounds a worker spins for the next loop before it sleeps: a decode step issues a loop every few tens of
/// microseconds, and waking a sleeping thread costs more than that.
constexpr int kSpins = 20'000;

constexpr std::uint32_t kOpen = 1u << 31;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

unsigned usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

ThreadPool::ThreadPool(unsigned threads) {
  const unsigned total = threads == 0 ? usable_processors() : threads;
  for (unsigned worker = 1; worker < total; ++worker) workers_.emplace_back([this, worker] { work(worker); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_.store(true);
    generation_.fetch_add(1);
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run(std::uint32_t chunks, const void* context, Function function) {
  if (chunks == 0) return;
  if (workers_.empty() || chunks == 1) {
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) function(context, chunk, 0);
    return;
  }
  context_ = context;
  function_ = function;
  chunks_ = chunks;
  next_.store(0, std::memory_order_relaxed);
  joined_.store(kOpen, std::memory_order_release);
  {
    const std::lock_guard lock(mutex_);
    generation_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  take_chunks(0);
  // No chunk is left. Who has joined may still compute one or read this loop's fields; nobody else can join now.
  joined_.fetch_and(~kOpen, std::memory_order_acq_rel);
  for (int spins = 0; joined_.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < kSpins) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
}

bool ThreadPool::join() {
  std::uint32_t joined = joined_.load(std::memory_order_acquire);
  while ((joined & kOpen) != 0)
    if (joined_.compare_exchange_weak(joined, joined + 1, std::memory_order_acq_rel, std::memory_order_acquire))
      return true;
  return false;  // the loop ended before this worker came
}

void ThreadPool::take_chunks(unsigned worker) {
  for (;;) {
    const std::uint32_t chunk = next_.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= chunks_) return;
    function_(context_, chunk, worker);
  }
}

void ThreadPool::work(unsigned worker) {
  std::uint64_t seen = 0;
  for (;;) {
    int spins = 0;
    while (generation_.load(std::memory_order_acquire) == seen && spins < kSpins) {
      pause();
      ++spins;
    }
    if (generation_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stop_.load()) return;
    if (!join()) continue;
    take_chunks(worker);
    joined_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace candor
