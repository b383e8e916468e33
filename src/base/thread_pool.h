// A persistent pool for data-parallel loops. Chunks are handed out by an atomic counter, so who computes a chunk varies
// from run to run; an element's value must depend on its chunk alone (docs/numerics.md). No allocation in a loop. On a
// busy machine a loop waits for no worker that has not begun: the calling thread does the work alone, if it must.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace candor {

class ThreadPool {
 public:
  /// `threads` workers in all, the calling thread included; 0 means one for each processor this process may use.
  explicit ThreadPool(unsigned threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] unsigned size() const { return static_cast<unsigned>(workers_.size()) + 1; }

  /// Calls body(chunk, worker) once for each chunk in [0, chunks), on any worker in [0, size()); returns when all are
  /// done. `body` must not throw and must not start a loop of its own.
  template <typename Body>
  void parallel_for(std::uint32_t chunks, const Body& body) {
    static_assert(std::is_invocable_v<const Body&, std::uint32_t, unsigned>);
    run(chunks, &body, [](const void* context, std::uint32_t chunk, unsigned worker) {
      (*static_cast<const Body*>(context))(chunk, worker);
    });
  }

 private:
  using Function = void (*)(const void*, std::uint32_t, unsigned);

  void run(std::uint32_t chunks, const void* context, Function function);
  void work(unsigned worker);
  void take_chunks(unsigned worker);
  [[nodiscard]] bool join();

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<bool> stop_{false};

  const void* context_ = nullptr;
  Function function_ = nullptr;
  std::uint32_t chunks_ = 0;
  alignas(64) std::atomic<std::uint32_t> next_{0};
  /// Workers in the loop that runs, and kOpen while more may join it. Whoever has joined may read the fields above.
  alignas(64) std::atomic<std::uint32_t> joined_{0};
};

}  // namespace candor
