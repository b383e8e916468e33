#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace candor {
namespace {

TEST(ThreadPool, RunsEachChunkOnceOnAValidWorker) {
  for (const unsigned threads : {1u, 2u, 4u}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> count(97);
      std::atomic<bool> valid{true};
      pool.parallel_for(97, [&](std::uint32_t chunk, unsigned worker) {
        if (worker >= threads) valid = false;
        ++count[chunk];
      });
      EXPECT_TRUE(valid);
      for (const auto& n : count) ASSERT_EQ(n, 1);
    }
  }
}

TEST(ThreadPool, NoChunksIsNoWork) {
  ThreadPool pool(2);
  pool.parallel_for(0, [](std::uint32_t, unsigned) { FAIL(); });
}

}  // namespace
}  // namespace candor
