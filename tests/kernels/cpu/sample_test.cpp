// Sampling: the generator's published vectors, each filter alone, their order, frequencies of draws, and errors.
#include "kernels/cpu/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/kernel_call.h"
#include "kernels/cpu/philox.h"

namespace candor::cpu::testing {
namespace {

std::uint32_t choose(const std::vector<float>& logits, const SamplerParameters& parameters, std::uint32_t position = 0,
                     std::vector<std::uint32_t> history = {}) {
  std::vector<sample::Candidate> work(logits.size());
  return sample::choose(logits, parameters, history, position, work);
}

/// How often each token is drawn at 20,000 positions.
std::vector<double> frequencies(const std::vector<float>& logits, const SamplerParameters& parameters,
                                const std::vector<std::uint32_t>& history = {}) {
  constexpr std::uint32_t kDraws = 20'000;
  std::vector<double> count(logits.size());
  for (std::uint32_t position = 0; position < kDraws; ++position)
    count.at(choose(logits, parameters, position, history)) += 1.0 / kDraws;
  return count;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (wanted[i] == 0) {
      EXPECT_EQ(got[i], 0) << i;
    } else {
      EXPECT_NEAR(got[i], wanted[i], 0.02) << i;
    }
  }
}

/// Logits whose softmax is 0.5, 0.25, 0.15, 0.1.
const std::vector<float> kLogits{std::log(0.25f), std::log(0.5f), std::log(0.1f), std::log(0.15f)};

TEST(Philox, PublishedVectors) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Sample, GreedyTakesTheLargestAndTheLowestAmongEquals) {
  EXPECT_EQ(choose({1, 3, 2, 3}, {}), 1u);
  EXPECT_EQ(choose({-5}, {}), 0u);
  EXPECT_EQ(choose({-0.0f, 0.0f}, {}), 0u);
  EXPECT_EQ(choose({-INFINITY, -2}, {}), 1u);
}

TEST(Sample, TemperatureSharpensAndFlattens) {
  expect_near(frequencies(kLogits, {.temperature = 1}), {0.25, 0.5, 0.1, 0.15});
  const double sum = 0.25 * 0.25 + 0.5 * 0.5 + 0.1 * 0.1 + 0.15 * 0.15;
  expect_near(frequencies(kLogits, {.temperature = 0.5}), {0.0625 / sum, 0.25 / sum, 0.01 / sum, 0.0225 / sum});
}

TEST(Sample, FiltersAloneAndInOrder) {
  expect_near(frequencies(kLogits, {.temperature = 1, .top_k = 2}), {1.0 / 3, 2.0 / 3, 0, 0});
  expect_near(frequencies(kLogits, {.temperature = 1, .top_p = 0.7f}), {1.0 / 3, 2.0 / 3, 0, 0});
  expect_near(frequencies(kLogits, {.temperature = 1, .top_p = 0.76f}), {0.25 / 0.9, 0.5 / 0.9, 0, 0.15 / 0.9});
  expect_near(frequencies(kLogits, {.temperature = 1, .min_p = 0.4f}), {1.0 / 3, 2.0 / 3, 0, 0});
  // Top-p counts what top-k left: 0.5 of 0.9 is below 0.56, 0.75 of 0.9 is not.
  expect_near(frequencies(kLogits, {.temperature = 1, .top_k = 3, .top_p = 0.8f}), {1.0 / 3, 2.0 / 3, 0, 0});
  // The temperature comes before top-p: at 0.5 the first two have 0.906 of the whole.
  expect_near(frequencies(kLogits, {.temperature = 0.5f, .top_p = 0.9f}), {0.2, 0.8, 0, 0});
  expect_near(frequencies(kLogits, {.temperature = 1, .top_k = 1}), {0, 1, 0, 0});
  expect_near(frequencies(kLogits, {.temperature = 1, .top_p = 0.0f}), {0, 1, 0, 0});
}

TEST(Sample, RepetitionPenaltyLooksBackAndCountsATokenOnce) {
  const std::vector<float> logits{2, 3, -1, 1};
  const SamplerParameters greedy{.repetition_penalty = 2, .repetition_window = 3};
  EXPECT_EQ(choose(logits, greedy, 0, {1}), 0u);
  EXPECT_EQ(choose(logits, greedy, 0, {1, 3, 3, 3}), 1u) << "outside the window";
  EXPECT_EQ(choose(logits, greedy, 0, {1, 0, 1}), 1u) << "3/2 against 2/2";
  EXPECT_EQ(choose({-1, -1.5f}, greedy, 0, {0}), 1u) << "a negative logit is multiplied";
  EXPECT_EQ(choose(logits, greedy, 0, {0xffffffff, 77}), 1u) << "tokens outside the vocabulary";
}

TEST(Sample, TheDrawDependsOnSeedSequenceAndPositionOnly) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> logits(500);
  for (float& x : logits) x = normal(random);
  const auto draws = [&](std::uint64_t seed, std::uint64_t sequence) {
    std::vector<std::uint32_t> out;
    for (std::uint32_t position = 0; position < 20; ++position)
      out.push_back(choose(logits, {.temperature = 1, .seed = seed, .sequence = sequence}, position));
    return out;
  };
  EXPECT_EQ(draws(1, 2), draws(1, 2));
  EXPECT_NE(draws(1, 2), draws(2, 2));
  EXPECT_NE(draws(1, 2), draws(1, 3));
  EXPECT_NE(draws(std::uint64_t{1} << 40, 2), draws(0, 2));
}

// A large vocabulary sorts in steps; the outcome must be that of sorting it all.
TEST(Sample, TopPOfALargeVocabularyEqualsAFullSort) {
  std::mt19937_64 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> logits(5000);
  for (float& x : logits) x = std::round(normal(random) * 8) / 8;  // many ties
  for (const float share : {0.01f, 0.3f, 0.9f, 0.999f}) {
    std::vector<std::uint32_t> order(logits.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return logits[a] > logits[b]; });
    double whole = 0;
    for (const float x : logits) whole += std::exp(double{x});
    std::vector<bool> kept(logits.size());
    double sum = 0;
    for (const std::uint32_t id : order) {
      kept[id] = true;
      sum += std::exp(double{logits[id]});
      if (sum >= whole * double{share}) break;
    }
    for (std::uint32_t position = 0; position < 300; ++position)
      ASSERT_TRUE(kept[choose(logits, {.temperature = 1, .top_p = share}, position)]);
  }
}

TEST(Sample, LogitsThatAreNoNumbersGiveNoToken) {
  for (const float temperature : {0.0f, 1.0f}) {
    EXPECT_EQ(choose({1, NAN, 2}, {.temperature = temperature}), kNoToken);
    EXPECT_EQ(choose({1, INFINITY}, {.temperature = temperature}), kNoToken);
    EXPECT_EQ(choose({-INFINITY, -INFINITY}, {.temperature = temperature}), kNoToken);
  }
}

TEST(Sample, EachSegmentHasItsOwnSampler) {
  Slot logits(3, 40);
  std::mt19937_64 random(3);
  logits.fill(random);
  logits.row(1)[17] = NAN;
  const SamplerParameters warm{.temperature = 2, .seed = 5, .sequence = 9};
  const Segment segments[] = {{.first_row = 0, .rows = 2, .first_position = 10},
                              {.first_row = 2, .rows = 1},
                              {.first_row = 3, .rows = 4, .first_position = 96, .sampler = &warm}};
  KernelCall call{.file = "cpu/sample.cpp"};
  call.inputs = {&logits};
  call.batch.segments = segments;
  const Slot tokens = run_everywhere(call, 3, 1, Encoding::u32);
  const auto row = [&](std::uint32_t r) { return std::vector<float>(logits.row(r).begin(), logits.row(r).end()); };
  EXPECT_EQ(tokens.row<std::uint32_t>(0)[0], choose(row(0), {}));
  EXPECT_EQ(tokens.row<std::uint32_t>(1)[0], kNoToken);
  EXPECT_EQ(tokens.row<std::uint32_t>(2)[0], choose(row(2), warm, 99));
}

}  // namespace
}  // namespace candor::cpu::testing
