// Pages and who holds them, and which beginnings of texts are known.
#include "runtime/kv_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "base/error.h"
#include "runtime/prefix_cache.h"

namespace candor::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ProgramLimits pages_of_16(std::uint32_t pages) {
  return {.rows = 8, .sequences = 2, .context = 160, .page_positions = 16, .pages = pages};
}

TEST(KvPages, APageWithTwoHoldersIsCopiedBeforeItIsWritten) {
  KvPages kv(pages_of_16(6));
  PageTable a;
  EXPECT_FALSE(kv.grow(a, 0, 40));
  ASSERT_THAT(a.pages, ElementsAre(0, 1, 2));
  PageTable b = kv.share(a, 36);
  EXPECT_EQ(b.pages, a.pages);
  EXPECT_EQ(kv.free_pages(), 3u);
  const auto copy = kv.grow(b, 36, 50);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->from, 2u);
  EXPECT_EQ(copy->to, b.pages[2]);
  EXPECT_THAT(b.pages, ElementsAre(0, 1, 3, 4));
  EXPECT_FALSE(kv.grow(a, 40, 41)) << "nobody else holds its last page any more";
  EXPECT_THAT(a.pages, ElementsAre(0, 1, 2));
  kv.shrink(a, 0);
  EXPECT_EQ(kv.free_pages(), 2u) << "the first two pages are the other's still";
  kv.shrink(b, 0);
  EXPECT_EQ(kv.free_pages(), 6u);
}

TEST(KvPages, TheOneThatGoesOnFirstTakesTheCopy) {
  KvPages kv(pages_of_16(4));
  PageTable a;
  (void)kv.grow(a, 0, 20);
  PageTable b = kv.share(a, 20);
  EXPECT_TRUE(kv.grow(a, 20, 21));
  EXPECT_FALSE(kv.grow(b, 20, 21));
  EXPECT_NE(a.pages[1], b.pages[1]);
}

TEST(KvPages, PartingWhereAPageEndsCopiesNothing) {
  KvPages kv(pages_of_16(4));
  PageTable a;
  (void)kv.grow(a, 0, 32);
  PageTable b = kv.share(a, 16);
  EXPECT_THAT(b.pages, ElementsAre(0));
  EXPECT_FALSE(kv.grow(b, 16, 17));
  EXPECT_EQ(kv.free_pages(), 1u);
}

TEST(KvPages, TooFewPagesLeaveTheTableAsItWas) {
  KvPages kv(pages_of_16(3));
  PageTable a;
  (void)kv.grow(a, 0, 40);
  PageTable b = kv.share(a, 40);
  EXPECT_EQ(kv.missing(b, 40, 41), 1u);
  EXPECT_THROW((void)kv.grow(b, 40, 41), Error);
  EXPECT_EQ(b.pages, a.pages);
  EXPECT_EQ(kv.missing(a, 40, 60), 2u);
  kv.shrink(a, 0);
  EXPECT_FALSE(kv.grow(b, 40, 41));
}

TEST(KvPages, SlidingSharesWhatItHasNotDropped) {
  ProgramLimits limits = pages_of_16(8);
  limits.layout = CacheLayout::sliding;
  limits.window = 24;
  KvPages kv(limits);
  PageTable a;
  for (std::uint32_t position = 0; position < 100; position += 4) (void)kv.grow(a, position, position + 4);
  ASSERT_EQ(a.dropped, 4u);
  EXPECT_THROW((void)kv.share(a, 80), Error);
  PageTable b = kv.share(a, 90);
  EXPECT_EQ(b.dropped, 4u);
  for (std::uint32_t position = 90; position < 140; ++position) (void)kv.grow(b, position, position + 1);
  for (std::uint32_t position = 100; position < 140; ++position) (void)kv.grow(a, position, position + 1);
  kv.shrink(a, 0);
  kv.shrink(b, 0);
  EXPECT_EQ(kv.free_pages(), 8u);
}

/// Many sequences that grow, are cut and part at random: two may hold a page only where neither writes.
TEST(KvPages, NoPageIsWrittenThatAnotherHolds) {
  std::mt19937 random(5);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  KvPages kv(pages_of_16(60));
  struct One {
    PageTable table;
    std::uint32_t length = 0;
  };
  std::vector<One> all(6);
  for (int step = 0; step < 4000; ++step) {
    One& one = all[below(6)];
    const std::uint32_t action = below(4);
    if (action == 0) {
      one.length = below(one.length + 1);
      kv.shrink(one.table, one.length);
    } else if (action == 1) {
      const One& from = all[below(6)];
      if (&from == &one) continue;
      kv.shrink(one.table, 0);
      one.length = below(from.length + 1);
      one.table = kv.share(from.table, one.length);
    } else if (one.length < 160) {
      const std::uint32_t first = one.length;
      one.length = std::min(160u, one.length + 1 + below(20));
      const PageTable before = one.table;
      const auto copy = kv.grow(one.table, first, one.length);
      for (const One& other : all) {
        if (&other == &one) continue;
        for (std::uint32_t page = first / 16; page < one.table.pages.size(); ++page)
          EXPECT_EQ(std::count(other.table.pages.begin(), other.table.pages.end(), one.table.pages[page]), 0);
      }
      if (copy) {
        EXPECT_EQ(copy->from, before.pages[first / 16]);
      }
    }
  }
  for (One& one : all) kv.shrink(one.table, 0);
  EXPECT_EQ(kv.free_pages(), 60u);
}

std::vector<std::uint32_t> count_from(std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

class PrefixCacheTest : public ::testing::Test {
 protected:
  /// Computes a text, keeps its pages, and ends it.
  void keep(PrefixCache& cache, const std::vector<std::uint32_t>& tokens,
            const std::vector<std::uint32_t>& types = {}) {
    PageTable table;
    const auto length = static_cast<std::uint32_t>(tokens.size());
    (void)kv_.grow(table, 0, length);
    cache.add(tokens, types, table.pages, kv_);
    kv_.shrink(table, 0);
  }

  KvPages kv_{pages_of_16(20)};
};

TEST_F(PrefixCacheTest, FindsTheLongestBeginningInWholePages) {
  PrefixCache cache("plan", 16, 10);
  keep(cache, count_from(0, 50));
  EXPECT_EQ(cache.pages(), 3u);
  EXPECT_EQ(kv_.free_pages(), 17u);
  EXPECT_THAT(cache.find(count_from(0, 100), {}), ElementsAre(0, 1, 2));
  EXPECT_THAT(cache.find(count_from(0, 47), {}), ElementsAre(0, 1));
  std::vector<std::uint32_t> other = count_from(0, 50);
  other[20] = 7;
  EXPECT_THAT(cache.find(other, {}), ElementsAre(0));
  EXPECT_THAT(cache.find(count_from(16, 40), {}), IsEmpty()) << "the same tokens, but not at the beginning";
  EXPECT_THAT(cache.find(count_from(0, 50), std::vector<std::uint32_t>{0, 1}), IsEmpty()) << "other types";
}

TEST_F(PrefixCacheTest, AnotherPlanHasOtherKeys) {
  PrefixCache cache("plan", 16, 10);
  PrefixCache other("another", 16, 10);
  keep(cache, count_from(0, 32));
  keep(other, count_from(0, 32));
  EXPECT_NE(cache.find(count_from(0, 32), {}), other.find(count_from(0, 32), {}));
  while (cache.forget_oldest(kv_)) {
  }
  EXPECT_THAT(other.find(count_from(0, 32), {}), SizeIs(2));
}

TEST_F(PrefixCacheTest, TheLeastUsedPageGoesFirstAndNeverBeforeThoseThatContinueIt) {
  PrefixCache cache("plan", 16, 5);
  keep(cache, count_from(0, 48));
  keep(cache, count_from(1000, 32));
  (void)cache.find(count_from(0, 48), {});
  keep(cache, count_from(2000, 16));  // one too many: the end of 1000 … goes
  EXPECT_EQ(cache.pages(), 5u);
  EXPECT_THAT(cache.find(count_from(1000, 32), {}), SizeIs(1));
  EXPECT_THAT(cache.find(count_from(2000, 16), {}), SizeIs(1));
  keep(cache, count_from(3000, 32));  // two too many: the last two pages of 0 …
  EXPECT_THAT(cache.find(count_from(0, 48), {}), SizeIs(1));
  EXPECT_EQ(kv_.free_pages(), 15u);
  while (cache.forget_oldest(kv_)) {
  }
  EXPECT_EQ(kv_.free_pages(), 20u);
}

TEST_F(PrefixCacheTest, ATextLongerThanTheCacheLeavesItsBeginning) {
  PrefixCache cache("plan", 16, 2);
  keep(cache, count_from(0, 100));
  EXPECT_THAT(cache.find(count_from(0, 100), {}), SizeIs(2));
  EXPECT_EQ(kv_.free_pages(), 18u);
}

}  // namespace
}  // namespace candor::runtime
