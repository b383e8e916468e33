#include "runtime/session_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "runtime/kv_pages.h"

namespace candor::runtime {
namespace {

TEST(SessionSettings, AreReadAndUnknownOnesRefused) {
  const Json session = parse_json(R"({"kvcache":{"kvDtype":"f16","layout":"paged","pageSize":64,"maxSeqLen":512},
      "decodeLoop":{"batchSize":4,"stopCheckMode":"batch","readbackInterval":2,"ringTokens":2}})",
                                  "session");
  const KvSettings kv = kv_settings(session);
  EXPECT_EQ(kv.layout, CacheLayout::paged);
  EXPECT_EQ(kv.page_positions, 64u);
  EXPECT_EQ(kv.max_positions, 512u);
  const DecodeLoop loop = decode_loop_settings(session);
  EXPECT_EQ(loop.batch_size, 4u);
  EXPECT_FALSE(loop.stop_check_per_token);
  EXPECT_EQ(loop.readback_interval, 2u);
  EXPECT_EQ(kv_settings(Json::object()).page_positions, kDefaultPagePositions);

  const auto refuses = [](const char* text, const char* message) {
    const Json value = parse_json(text, "session");
    try {
      (void)kv_settings(value);
      (void)decode_loop_settings(value);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(message));
    }
  };
  refuses(R"({"kvcache":{"pagesize":64}})", "session.kvcache.pagesize is unknown");
  refuses(R"({"kvcache":{"pageSize":0}})", "session.kvcache.pageSize must be an integer from 1");
  refuses(R"({"kvcache":{"pageSize":24}})", "pageSize must be a multiple of 16; got 24");
  refuses(R"({"kvcache":{"layout":"ring"}})", "layout must be contiguous, paged or sliding");
  refuses(R"({"decodeLoop":{"stopCheckMode":"never"}})", "stopCheckMode must be batch or per-token");
  refuses(R"({"decodeLoop":[]})", "session.decodeLoop must be an object or null");
}

TEST(KvPages, AreHandedOutGivenBackAndRunOut) {
  KvPages pages({.page_positions = 16, .pages = 3});
  PageTable first;
  PageTable second;
  (void)pages.grow(first, 0, 17);
  EXPECT_EQ(first.pages.size(), 2u);
  (void)pages.grow(first, 17, 32);
  EXPECT_EQ(first.pages.size(), 2u);
  (void)pages.grow(second, 0, 1);
  EXPECT_EQ(pages.free_pages(), 0u);
  EXPECT_THROW((void)pages.grow(second, 1, 17), Error);
  pages.shrink(first, 16);
  EXPECT_EQ(first.pages.size(), 1u);
  (void)pages.grow(second, 1, 17);
  EXPECT_NE(first.pages[0], second.pages[0]);
  EXPECT_NE(first.pages[0], second.pages[1]);
}

TEST(KvPages, SlideAlongWithTheSequence) {
  ProgramLimits limits{.rows = 1, .context = 1000, .page_positions = 16};
  limits.layout = CacheLayout::sliding;
  limits.window = 20;
  limits.overrun = 4;
  limits.pages = KvPages::pages_a_sequence(limits);
  EXPECT_EQ(limits.pages, 3u);
  KvPages pages(limits);
  PageTable table;
  for (std::uint32_t position = 0; position < 1000; ++position) {
    (void)pages.grow(table, position, position + 1);
    // What the query sees, and what the next one would see if `overrun` tokens were taken back, is there.
    const std::uint32_t seen = position < 23 ? 0 : position - 23;
    EXPECT_LE(table.dropped * 16, seen) << position;
    EXPECT_EQ(table.pages.size() - table.dropped + pages.free_pages(), 3u);
  }
  EXPECT_THROW(pages.shrink(table, 500), Error);
  EXPECT_NO_THROW(pages.shrink(table, 996));
  pages.shrink(table, 0);
  EXPECT_EQ(pages.free_pages(), 3u);
  EXPECT_EQ(table.dropped, 0u);
}

}  // namespace
}  // namespace candor::runtime
