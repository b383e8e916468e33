// Kernels that look along a sequence: the short convolution with its cache, and pooling; and rows made of length 1.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/cpu/kernel_call.h"

namespace candor::cpu::testing {
namespace {

constexpr std::uint32_t kTaps = 3;

/// The cache of one sequence, its pages in falling order and full of NaNs.
struct ConvolutionCache {
  KvCache cache;
  AlignedBytes bytes;
  std::vector<std::uint32_t> pages;

  ConvolutionCache(std::uint32_t channels, std::uint32_t page_positions, std::uint32_t count) {
    const std::vector<double> numbers{double(channels), kTaps};
    const std::vector<std::uint32_t> begin{0, 1, 2};
    const Kernel* kernel = find_kernel(Isa::portable, "cpu/short_conv.cpp", "main");
    cache.page_positions = page_positions;
    cache.page_bytes = kernel->kv_page_bytes(page_positions, Encoding::f32, {numbers, begin});
    bytes = AlignedBytes(cache.page_bytes * count);
    std::fill_n(bytes.data(), bytes.size(), std::byte{0xff});
    cache.data = bytes.data();
    for (std::uint32_t i = count; i > 0; --i) pages.push_back(i - 1);
  }
};

/// Runs the sequence in chunks; the last chunk may be shorter.
std::vector<float> convolve(const Slot& x, const StoredWeight& w, std::uint32_t chunk, std::uint32_t page_positions,
                            Isa isa, unsigned threads) {
  ConvolutionCache state(x.cols(), page_positions, x.rows() / page_positions + 1);
  std::vector<float> out;
  for (std::uint32_t first = 0; first < x.rows(); first += chunk) {
    const std::uint32_t rows = std::min(chunk, x.rows() - first);
    Slot part(rows, x.cols());
    for (std::uint32_t r = 0; r < rows; ++r)
      std::copy(x.row(first + r).begin(), x.row(first + r).end(), part.row(r).begin());
    const Segment segment{0, rows, first, state.pages.data()};
    KernelCall call{.file = "cpu/short_conv.cpp"};
    call.inputs = {&part};
    call.weights = {&w};
    call.constants = {{double(x.cols())}, {kTaps}};
    call.batch.segments = {&segment, 1};
    call.kv = &state.cache;
    const Slot y(rows, x.cols());
    call.run(isa, threads, y);
    const auto got = values(y);
    out.insert(out.end(), got.begin(), got.end());
  }
  return out;
}

TEST(ShortConvolution, EqualsTheOracleAndItselfHoweverItIsCut) {
  std::mt19937_64 random(1);
  for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::bf16}) {
    for (const std::uint32_t channels : {1u, 16u, 17u, 100u}) {
      SCOPED_TRACE(::testing::Message() << to_string(encoding) << " " << channels);
      Slot x(37, channels);
      x.fill(random);
      const StoredWeight w = plain_weight(random, channels, kTaps, encoding);
      std::vector<double> wanted;
      for (std::uint32_t p = 0; p < x.rows(); ++p) {
        for (std::uint32_t c = 0; c < channels; ++c) {
          double sum = 0;
          for (std::uint32_t t = 0; t < kTaps; ++t)
            if (p + t + 1 >= kTaps) sum += w.values[c * kTaps + t] * x.row(p + t + 1 - kTaps)[c];
          wanted.push_back(sum);
        }
      }
      const auto once = convolve(x, w, 64, 48, available_isas().front(), 1);
      EXPECT_LT(errors(wanted, once).max, 1e-6);
      for (const Isa isa : available_isas())
        for (const std::uint32_t chunk : {1u, 2u, 7u, 16u}) EXPECT_EQ(convolve(x, w, chunk, 16, isa, 2), once) << chunk;
    }
  }
}

TEST(Pool, FirstLastAndMeanOfEachSequence) {
  std::mt19937_64 random(2);
  for (const std::uint32_t width : {1u, 16u, 17u, 300u, 9000u}) {
    Slot x(7, width);
    x.fill(random);
    const Segment segments[] = {{0, 4, 0}, {4, 1, 0}, {5, 2, 0}};
    for (const std::uint32_t kind : {0u, 1u, 2u}) {
      SCOPED_TRACE(::testing::Message() << "kind " << kind << " width " << width);
      KernelCall call{.file = "cpu/pool.cpp"};
      call.inputs = {&x};
      call.constants = {{double(kind)}};
      call.batch.segments = segments;
      const Slot y = run_everywhere(call, 3, width);
      std::vector<double> wanted;
      for (const Segment& segment : segments) {
        for (std::uint32_t i = 0; i < width; ++i) {
          double sum = 0;
          for (std::uint32_t r = 0; r < segment.rows; ++r) sum += x.row(segment.first_row + r)[i];
          if (kind == 0) wanted.push_back(sum / segment.rows);
          if (kind == 1) wanted.push_back(x.row(segment.first_row + segment.rows - 1)[i]);
          if (kind == 2) wanted.push_back(x.row(segment.first_row)[i]);
        }
      }
      EXPECT_LT(errors(wanted, values(y)).max, kind == 0 ? 1e-6 : 1e-30);
    }
  }
}

TEST(Pool, ThePartOfASequenceHasALastRowButNoMean) {
  Slot x(2, 20);
  for (std::uint32_t r = 0; r < 2; ++r) std::fill(x.row(r).begin(), x.row(r).end(), 3.0F);
  const Segment segment{0, 2, 5};
  for (const std::uint32_t kind : {0u, 1u, 2u}) {
    KernelCall call{.file = "cpu/pool.cpp"};
    call.inputs = {&x};
    call.constants = {{double(kind)}};
    call.batch.segments = {&segment, 1};
    const Slot y(1, 20);
    call.run(available_isas().front(), 1, y);
    for (const float value : y.row(0)) EXPECT_EQ(std::isnan(value), kind != 1);
  }
}

TEST(L2Normalize, RowsOfLengthOneAndZeros) {
  std::mt19937_64 random(3);
  for (const std::uint32_t width : {1u, 15u, 64u, 65u, 1000u}) {
    Slot x(3, width);
    x.fill(random, 7);
    std::fill(x.row(2).begin(), x.row(2).end(), 0.0F);
    KernelCall call{.file = "cpu/l2_normalize.cpp"};
    call.inputs = {&x};
    call.constants = {{1e-12}};
    const Slot y = run_everywhere(call, 3, width);
    std::vector<double> wanted;
    for (std::uint32_t r = 0; r < 3; ++r) {
      double squares = 0;
      for (const float value : x.row(r)) squares += double{value} * value;
      for (const float value : x.row(r)) wanted.push_back(value / std::max(std::sqrt(squares), 1e-12));
    }
    EXPECT_LT(errors(wanted, values(y)).max, 5e-7) << width;
  }
}

}  // namespace
}  // namespace candor::cpu::testing
