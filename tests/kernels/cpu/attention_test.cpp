// Attention against double precision, and the same bits for any chunking, batch, page size, page order, number of
// threads and instruction set.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/cpu/kernel_call.h"

namespace candor::cpu::testing {
namespace {

struct Settings {
  std::uint32_t heads = 4, kv_heads = 2, head_dim = 20;
  double scale = 0.2;
  std::uint32_t window = 0;
  double softcap = 0;
  bool causal = true;

  [[nodiscard]] std::vector<std::vector<double>> constants() const {
    return {{double(heads)},  {double(kv_heads)}, {double(head_dim)},  {scale},
            {double(window)}, {softcap},          {causal ? 1.0 : 0.0}};
  }
};

/// The queries, keys and values of one sequence.
struct Sequence {
  Slot q, k, v;

  Sequence(const Settings& s, std::uint32_t length, std::uint64_t seed)
      : q(length, s.heads * s.head_dim), k(length, s.kv_heads * s.head_dim), v(length, s.kv_heads * s.head_dim) {
    std::mt19937_64 random(seed);
    for (Slot* slot : {&q, &k, &v}) slot->fill(random);
  }
  [[nodiscard]] std::uint32_t length() const { return q.rows(); }
};

/// A layer's KV cache whose pages hold NaNs until they are written, handed out in a scattered order.
class Cache {
 public:
  Cache(const Settings& s, Encoding encoding, std::uint32_t page_positions, std::uint32_t pages) {
    const Kernel* kernel = find_kernel(Isa::portable, "cpu/attention.cpp", "main");
    std::vector<double> numbers;
    std::vector<std::uint32_t> begin{0};
    for (const auto& constant : s.constants()) {
      numbers.push_back(constant[0]);
      begin.push_back(begin.back() + 1);
    }
    cache_.page_positions = page_positions;
    cache_.encoding = encoding;
    cache_.page_bytes = kernel->kv_page_bytes(page_positions, encoding, {numbers, begin});
    bytes_ = AlignedBytes(cache_.page_bytes * pages);
    std::fill_n(bytes_.data(), bytes_.size(), std::byte{0xff});
    cache_.data = bytes_.data();
    free_.resize(pages);
    std::iota(free_.begin(), free_.end(), 0u);
    std::shuffle(free_.begin(), free_.end(), std::mt19937_64(99));
  }

  [[nodiscard]] const KvCache& view() const { return cache_; }
  [[nodiscard]] std::vector<std::uint32_t> take_pages(std::uint32_t positions) {
    std::vector<std::uint32_t> pages;
    for (std::uint32_t p = 0; p < positions; p += cache_.page_positions) {
      pages.push_back(free_.back());
      free_.pop_back();
    }
    return pages;
  }

 private:
  AlignedBytes bytes_;
  KvCache cache_;
  std::vector<std::uint32_t> free_;
};

/// Rows first … first + rows - 1 of one sequence, to be computed in one batch with others.
struct Part {
  const Sequence* sequence;
  const std::vector<std::uint32_t>* pages;
  std::uint32_t first, rows;
};

Slot attend(const Settings& s, Cache& cache, const std::vector<Part>& parts, Isa isa, unsigned threads) {
  std::uint32_t rows = 0;
  for (const Part& part : parts) rows += part.rows;
  const Slot q(rows, s.heads * s.head_dim), k(rows, s.kv_heads * s.head_dim), v(rows, s.kv_heads * s.head_dim);
  std::vector<Segment> segments;
  std::vector<std::uint32_t> positions;
  for (const Part& part : parts) {
    const auto first_row = static_cast<std::uint32_t>(positions.size());
    segments.push_back(
        {.first_row = first_row, .rows = part.rows, .first_position = part.first, .kv_pages = part.pages->data()});
    for (std::uint32_t r = 0; r < part.rows; ++r) {
      positions.push_back(part.first + r);
      const auto copy = [&](const Slot& from, const Slot& to) {
        std::copy(from.row(part.first + r).begin(), from.row(part.first + r).end(), to.row(first_row + r).begin());
      };
      copy(part.sequence->q, q);
      copy(part.sequence->k, k);
      copy(part.sequence->v, v);
    }
  }
  KernelCall call{.file = "cpu/attention.cpp"};
  call.inputs = {&q, &k, &v};
  call.constants = s.constants();
  call.batch.segments = segments;
  call.batch.positions = positions;
  call.kv = &cache.view();
  call.context = 8192;
  Slot out(rows, s.heads * s.head_dim);
  call.run(isa, threads, out);
  return out;
}

/// One sequence computed in chunks of the given size.
std::vector<float> attend_in_chunks(const Settings& s, const Sequence& sequence, std::uint32_t chunk, Encoding encoding,
                                    std::uint32_t page_positions, Isa isa, unsigned threads) {
  Cache cache(s, encoding, page_positions, (sequence.length() + page_positions - 1) / page_positions + 3);
  const auto pages = cache.take_pages(sequence.length());
  std::vector<float> out;
  for (std::uint32_t first = 0; first < sequence.length(); first += chunk) {
    const std::uint32_t rows = std::min(chunk, sequence.length() - first);
    const std::vector<float> part = values(attend(s, cache, {{&sequence, &pages, first, rows}}, isa, threads));
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

/// Rows first … last - 1 in double precision, keys and values as given (f32).
std::vector<double> oracle(const Settings& s, const Sequence& sequence, std::uint32_t first, std::uint32_t last) {
  std::vector<double> out;
  for (std::uint32_t i = first; i < last; ++i) {
    for (std::uint32_t head = 0; head < s.heads; ++head) {
      const std::uint32_t kv = head / (s.heads / s.kv_heads) * s.head_dim;
      const std::uint32_t begin = s.window > 0 && i + 1 > s.window ? i + 1 - s.window : 0;
      std::uint32_t end = s.causal ? i + 1 : sequence.length();
      if (!s.causal && s.window != 0) end = std::min(end, i + s.window);
      std::vector<double> weight;
      double sum = 0;
      for (std::uint32_t j = begin; j < end; ++j) {
        double score = 0;
        for (std::uint32_t d = 0; d < s.head_dim; ++d)
          score += double{sequence.q.row(i)[head * s.head_dim + d]} * double{sequence.k.row(j)[kv + d]};
        score *= s.scale;
        if (s.softcap > 0) score = s.softcap * std::tanh(score / s.softcap);
        weight.push_back(std::exp(score));
        sum += weight.back();
      }
      for (std::uint32_t d = 0; d < s.head_dim; ++d) {
        double value = 0;
        for (std::uint32_t j = begin; j < end; ++j) value += weight[j - begin] * double{sequence.v.row(j)[kv + d]};
        out.push_back(value / sum);
      }
    }
  }
  return out;
}

std::vector<Settings> all_settings() {
  return {{.heads = 1, .kv_heads = 1, .head_dim = 1},
          {.heads = 4, .kv_heads = 2, .head_dim = 20},
          {.heads = 3, .kv_heads = 3, .head_dim = 16},
          {.heads = 8, .kv_heads = 1, .head_dim = 33},
          {.window = 1},
          {.window = 8},
          {.window = 300},
          {.softcap = 1.5},
          {.heads = 30, .kv_heads = 1, .head_dim = 4},
          {.heads = 2, .kv_heads = 2, .head_dim = 64, .scale = 0.125},
          {.causal = false},
          {.window = 7, .causal = false}};
}

std::string describe(const Settings& s) {
  return fmt::format("heads {}/{} dim {} window {} softcap {} causal {}", s.heads, s.kv_heads, s.head_dim, s.window,
                     s.softcap, s.causal);
}

TEST(Attention, EqualsTheOracleOnEveryInstructionSet) {
  for (const Settings& s : all_settings()) {
    for (const std::uint32_t length : {1u, 2u, 15u, 16u, 17u, 40u, 300u}) {
      SCOPED_TRACE(describe(s) + fmt::format(" length {}", length));
      const Sequence sequence(s, length, length);
      const auto run = [&](Isa isa, unsigned threads) {
        return attend_in_chunks(s, sequence, length, Encoding::f32, 32, isa, threads);
      };
      const std::vector<float> got = run(available_isas().front(), 1);
      const ErrorStatistics e = errors(oracle(s, sequence, 0, length), got);
      EXPECT_LT(e.max, 1e-5);
      EXPECT_LT(e.mean, 3e-7);
      for (const Isa isa : available_isas())
        for (const unsigned threads : {1u, 2u, 3u}) EXPECT_EQ(run(isa, threads), got) << to_string(isa) << threads;
    }
  }
}

TEST(Attention, ChunksPagesAndTokenByTokenGiveTheSameBits) {
  for (Settings s : all_settings()) {
    if (!s.causal) continue;
    for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::q8_0}) {
      SCOPED_TRACE(describe(s) + " " + std::string(to_string(encoding)));
      const Sequence sequence(s, 290, 7);
      const Isa isa = available_isas().front();
      const auto whole = attend_in_chunks(s, sequence, 290, encoding, 64, isa, 2);
      for (const std::uint32_t chunk : {1u, 7u, 16u, 17u, 100u, 257u})
        EXPECT_EQ(attend_in_chunks(s, sequence, chunk, encoding, 64, isa, 2), whole) << "chunks of " << chunk;
      for (const std::uint32_t page : {16u, 48u, 512u})
        EXPECT_EQ(attend_in_chunks(s, sequence, 100, encoding, page, isa, 3), whole) << "pages of " << page;
    }
  }
}

TEST(Attention, HalfPrecisionCacheRoundsKeysAndValuesOnly) {
  const Settings s;
  Sequence sequence(s, 70, 8);
  const auto got = attend_in_chunks(s, sequence, 70, Encoding::f16, 16, available_isas().front(), 1);
  for (Slot* slot : {&sequence.k, &sequence.v}) {
    KernelCall narrow{.file = "cpu/cast.cpp", .entry = "f32_to_f16"};
    narrow.inputs = {slot};
    const Slot halves = run_everywhere(narrow, slot->rows(), slot->cols(), Encoding::f16);
    KernelCall widen{.file = "cpu/cast.cpp", .entry = "f16_to_f32"};
    widen.inputs = {&halves};
    widen.run(available_isas().front(), 1, *slot);
  }
  EXPECT_EQ(attend_in_chunks(s, sequence, 70, Encoding::f32, 16, available_isas().front(), 1), got);
}

/// What a q8_0 cache makes of a row: blocks of 32 columns of each head, with an f16 scale.
void round_to_q8_0(const Slot& slot, std::uint32_t head_dim) {
  for (std::uint32_t r = 0; r < slot.rows(); ++r) {
    for (std::uint32_t first = 0; first < slot.cols();) {
      const std::uint32_t count = std::min(32u, head_dim - first % head_dim);
      const std::span<float> block = slot.row(r).subspan(first, count);
      float largest = 0;
      for (const float x : block) largest = std::max(largest, std::abs(x));
      Slot wide(1, 1);
      wide.row(0)[0] = largest / 127;
      KernelCall narrow{.file = "cpu/cast.cpp", .entry = "f32_to_f16"};
      narrow.inputs = {&wide};
      const Slot half = run_everywhere(narrow, 1, 1, Encoding::f16);
      KernelCall widen{.file = "cpu/cast.cpp", .entry = "f16_to_f32"};
      widen.inputs = {&half};
      widen.run(available_isas().front(), 1, wide);
      const float scale = wide.row(0)[0];
      for (float& x : block)
        x = scale == 0 ? 0 : std::clamp(std::nearbyint(x * (1.0f / scale)), -127.0f, 127.0f) * scale;
      first += count;
    }
  }
}

TEST(Attention, EightBitCacheRoundsBlocksOfKeysAndValuesOnly) {
  for (const std::uint32_t head_dim : {1u, 20u, 32u, 33u, 64u, 80u}) {
    SCOPED_TRACE(head_dim);
    const Settings s{.head_dim = head_dim};
    Sequence sequence(s, 70, 8);
    for (float& x : sequence.k.row(3)) x *= 1e-6f;  // scales that f16 rounds much, or to zero
    for (float& x : sequence.v.row(5)) x *= 1e-4f;
    for (const Isa isa : available_isas()) {
      const auto got = attend_in_chunks(s, sequence, 70, Encoding::q8_0, 16, isa, 2);
      Sequence rounded(s, 70, 8);
      for (float& x : rounded.k.row(3)) x *= 1e-6f;
      for (float& x : rounded.v.row(5)) x *= 1e-4f;
      round_to_q8_0(rounded.k, head_dim);
      round_to_q8_0(rounded.v, head_dim);
      EXPECT_EQ(attend_in_chunks(s, rounded, 70, Encoding::f32, 16, isa, 2), got) << to_string(isa);
    }
  }
}

TEST(Attention, EightBitCacheIsCloseToTheOracle) {
  for (const Settings& s : {Settings{.head_dim = 64, .scale = 0.125}, Settings{.head_dim = 33, .window = 40}}) {
    const Sequence sequence(s, 300, 21);
    const auto got = attend_in_chunks(s, sequence, 300, Encoding::q8_0, 32, available_isas().front(), 2);
    const ErrorStatistics e = errors(oracle(s, sequence, 0, 300), got);
    EXPECT_LT(e.max, 0.1);
    EXPECT_LT(e.mean, 0.008);
    EXPECT_GT(e.mean, 1e-5);
  }
}

TEST(Attention, WhatAnEightBitBlockCannotHoldIsNotANumber) {
  const Settings s{.heads = 1, .kv_heads = 1, .head_dim = 64};
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, -infinity, std::nanf(""), 1e8f}) {
    Sequence sequence(s, 20, 9);
    sequence.v.row(7)[40] = bad;
    for (const Isa isa : available_isas()) {
      const auto got = attend_in_chunks(s, sequence, 20, Encoding::q8_0, 16, isa, 1);
      for (std::uint32_t r = 0; r < 20; ++r)
        for (std::uint32_t d = 0; d < 64; ++d)
          ASSERT_EQ(std::isnan(got[r * 64 + d]), r >= 7 && d >= 32)
              << to_string(isa) << " row " << r << " column " << d;
    }
  }
}

TEST(Attention, WhatRunsBesideASequenceChangesNothing) {
  for (const Settings& s : {Settings{}, Settings{.window = 40}}) {
    const Sequence a(s, 270, 1), b(s, 33, 2), c(s, 1, 3), d(s, 140, 4);
    const Isa isa = available_isas().front();
    const auto alone = [&](const Sequence& x) { return attend_in_chunks(s, x, x.length(), Encoding::f16, 32, isa, 2); };
    const std::vector<float> wanted_a = alone(a), wanted_b = alone(b), wanted_c = alone(c), wanted_d = alone(d);
    Cache cache(s, Encoding::f16, 32, 24);
    const auto pages_a = cache.take_pages(270), pages_b = cache.take_pages(33), pages_c = cache.take_pages(1),
               pages_d = cache.take_pages(140);
    const std::uint32_t width = s.heads * s.head_dim;
    // Ragged: most of a, all of b, c; then, in a small batch, the rest of a and the last of d after its beginning.
    const auto first =
        values(attend(s, cache, {{&a, &pages_a, 0, 266}, {&b, &pages_b, 0, 33}, {&c, &pages_c, 0, 1}}, isa, 2));
    const auto second = values(attend(s, cache, {{&d, &pages_d, 0, 135}}, isa, 2));
    const auto third = values(attend(s, cache, {{&a, &pages_a, 266, 4}, {&d, &pages_d, 135, 5}}, isa, 3));
    const auto rows = [&](const std::vector<float>& from, std::uint32_t begin, std::uint32_t count) {
      return std::vector<float>(from.begin() + begin * width, from.begin() + (begin + count) * width);
    };
    EXPECT_EQ(rows(first, 0, 266), rows(wanted_a, 0, 266));
    EXPECT_EQ(rows(first, 266, 33), wanted_b);
    EXPECT_EQ(rows(first, 299, 1), wanted_c);
    EXPECT_EQ(second, rows(wanted_d, 0, 135));
    EXPECT_EQ(rows(third, 0, 4), rows(wanted_a, 266, 4));
    EXPECT_EQ(rows(third, 4, 5), rows(wanted_d, 135, 5));
  }
}

TEST(Attention, LongContextsInTheOracleAndInEitherWayOfSplitting) {
  for (const Settings& s : {Settings{.heads = 2, .kv_heads = 1, .head_dim = 16, .scale = 0.5},
                            Settings{.heads = 2, .kv_heads = 1, .head_dim = 16, .scale = 0.5, .window = 1000}}) {
    constexpr std::uint32_t kLength = 4500;
    const Sequence sequence(s, kLength, 11);
    const Isa isa = available_isas().front();
    Cache cache(s, Encoding::f32, 64, 80);
    const auto pages = cache.take_pages(kLength);
    (void)attend(s, cache, {{&sequence, &pages, 0, 4400}}, isa, 2);
    const auto together = values(attend(s, cache, {{&sequence, &pages, 4400, 100}}, isa, 2));
    const ErrorStatistics e = errors(oracle(s, sequence, 4400, kLength), together);
    EXPECT_LT(e.max, 1e-5);
    EXPECT_LT(e.mean, 5e-7);
    const std::uint32_t width = s.heads * s.head_dim;
    for (const std::uint32_t first : {4400u, 4480u, 4499u}) {
      for (const unsigned threads : {1u, 3u}) {
        const auto one = values(attend(s, cache, {{&sequence, &pages, first, 1}}, isa, threads));
        EXPECT_TRUE(std::equal(one.begin(), one.end(), together.begin() + (first - 4400) * width)) << first;
      }
    }
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  const Settings s{.heads = 1, .kv_heads = 1, .head_dim = 4, .scale = 1};
  Sequence sequence(s, 600, 12);
  for (std::uint32_t r = 0; r < 600; ++r)
    for (float& x : sequence.q.row(r)) x *= 1e4f;
  const auto got = attend_in_chunks(s, sequence, 600, Encoding::f32, 64, available_isas().front(), 1);
  for (const float x : got) ASSERT_TRUE(std::isfinite(x));
}

TEST(Attention, MayWriteOverItsQueries) {
  const Settings s;
  for (const std::uint32_t length : {5u, 90u}) {
    const Sequence sequence(s, length, 13);
    const auto wanted = attend_in_chunks(s, sequence, length, Encoding::f32, 32, available_isas().front(), 2);
    Cache cache(s, Encoding::f32, 32, 4);
    const auto pages = cache.take_pages(length);
    const Segment segments[] = {{.rows = length, .kv_pages = pages.data()}};
    KernelCall call{.file = "cpu/attention.cpp"};
    call.inputs = {&sequence.q, &sequence.k, &sequence.v};
    call.constants = s.constants();
    call.batch.segments = segments;
    call.kv = &cache.view();
    call.run(available_isas().front(), 2, sequence.q);
    EXPECT_EQ(values(sequence.q), wanted);
  }
}

}  // namespace
}  // namespace candor::cpu::testing
