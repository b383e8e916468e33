// A causal convolution of each column over the last `taps` positions (LFM2's short convolution): y[p][c] is one chain
// fma(w[c][t], x[p - taps + 1 + t][c], …) over rising t, from 0; positions before the sequence's first are left out.
// Its state is a cache like the keys' and values': a page holds the rows of its positions, so that a sequence can be
// cut back or continued anywhere within the last `taps` positions.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::short_conv {

namespace {

std::uint64_t row_bytes(std::uint32_t channels) {
  return (std::uint64_t{channels} * sizeof(float) + 63) / 64 * 64;
}

/// The cached row of one position.
float* cached_row(const KernelArguments& arguments, const Segment& segment, std::uint32_t position) {
  const KvCache& cache = *arguments.kv;
  const std::uint32_t page = segment.kv_pages[position / cache.page_positions];
  std::byte* at = cache.data + page * cache.page_bytes +
                  position % cache.page_positions * row_bytes(integer(arguments.constants, 0));
  return reinterpret_cast<float*>(at);
}

template <typename Element>
void convolve(const KernelArguments& arguments, const Segment& segment, std::uint32_t r) {
  const std::uint32_t channels = integer(arguments.constants, 0);
  const std::uint32_t taps = integer(arguments.constants, 1);
  const std::uint32_t position = segment.first_position + r;
  const std::byte* w = weight(arguments, 0).data;
  float* out = row<float>(arguments.dst, segment.first_row + r);
  const std::uint32_t skipped = position + 1 < taps ? taps - 1 - position : 0;
  for_each_vector(channels, [&](std::uint32_t i, auto n) CANDOR_INLINE_LAMBDA {
    F32x16 sum = broadcast(0.0f);
    for (std::uint32_t t = skipped; t < taps; ++t) {
      alignas(64) float factors[kLanes] = {};
      for (std::uint32_t lane = 0; lane < static_cast<std::uint32_t>(n); ++lane) {
        alignas(64) float value[kLanes];
        store(value, load_elements<Element>(w + (std::size_t{i + lane} * taps + t) * Element::kBytes, 1));
        factors[lane] = value[0];
      }
      const float* in = cached_row(arguments, segment, position + t + 1 - taps) + i;
      sum = fma(load(factors), load_first(in, n), sum);
    }
    store_first(out + i, sum, n);
  });
}

}  // namespace

std::uint64_t kv_page_bytes(std::uint32_t positions, Encoding, const Constants& constants) {
  return positions * row_bytes(integer(constants, 0));
}

void run(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  const std::span<const Segment> segments = arguments.batch->segments;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const Segment& segment = segments.data()[s];
    for_rows(*arguments.pool, segment.rows, x.cols, [&](std::uint32_t r, unsigned) {
      __builtin_memcpy(cached_row(arguments, segment, segment.first_position + r),
                       row<const float>(x, segment.first_row + r), x.cols * sizeof(float));
    });
    with_element(weight(arguments, 0).encoding, [&](auto element) {
      for_rows(*arguments.pool, segment.rows, x.cols,
               [&](std::uint32_t r, unsigned) { convolve<decltype(element)>(arguments, segment, r); });
    });
  }
}

}  // namespace candor::cpu::CANDOR_ISA::short_conv
