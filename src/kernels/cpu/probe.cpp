#include "kernels/cpu/probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/table.h"

namespace candor::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Units a second of calls of round(), which returns its units, over 20 ms.
template <typename Round>
double rate(const Round& round) {
  const auto start = Clock::now();
  double units = 0;
  do {
    units += round();
  } while (seconds_since(start) < 0.02);
  return units / seconds_since(start);
}

constexpr std::size_t kStreams = kReadStreams;
constexpr std::size_t kPiece = std::size_t{64} << 10;  ///< bytes of a stream that one chunk reads
constexpr std::size_t kChunks = 512;
constexpr std::size_t kStreamBytes = kChunks * kPiece;  ///< 32 MiB each: together more than caches hold

/// What each instruction set has of its own.
struct Probes {
  std::uint64_t (*run_fma_chains)(std::uint32_t steps);
  std::uint64_t (*run_dot_chains)(std::uint32_t steps);
  std::uint64_t (*read_streams)(const std::byte* data, std::size_t stream_bytes, std::size_t piece);
};

Probes probes() {
  switch (available_isas().front()) {
#if defined(__x86_64__)
    case Isa::avx2:
      return {avx2::run_fma_chains, avx2::run_dot_chains, avx2::read_streams};
#if defined(CANDOR_AVX512)
    case Isa::avx512:
      return {avx512::run_fma_chains, avx512::run_dot_chains, avx512::read_streams};
#endif
#elif defined(__aarch64__)
    case Isa::neon:
      return {neon::run_fma_chains, neon::run_dot_chains, neon::read_streams};
#endif
    default:
      return {portable::run_fma_chains, portable::run_dot_chains, portable::read_streams};
  }
}

}  // namespace

ReadProbe::ReadProbe(ThreadPool& pool)
    : pool_(pool), data_(std::make_unique_for_overwrite<std::byte[]>(kStreams * kStreamBytes)) {
  pool.parallel_for(kChunks, [&](std::uint32_t chunk, unsigned) {
    std::memset(data_.get() + chunk * kStreams * kPiece, 1, kStreams * kPiece);
  });
}

double ReadProbe::measure() {
  std::atomic<std::uint64_t> sink = 0;
  const auto read = probes().read_streams;
  return rate([&] {
    pool_.parallel_for(kChunks, [&](std::uint32_t chunk, unsigned) {
      sink.fetch_xor(read(data_.get() + chunk * kPiece, kStreamBytes, kPiece), std::memory_order_relaxed);
    });
    return static_cast<double>(kStreams * kStreamBytes);
  });
}

double measure_read_bandwidth(ThreadPool& pool) {
  ReadProbe probe(pool);
  double best = 0;  // other work only ever slows a round
  for (int round = 0; round < 3; ++round) best = std::max(best, probe.measure());
  return best;
}

namespace {

double measure_chains(ThreadPool& pool, std::uint64_t (*run)(std::uint32_t steps)) {
  return rate([&] {
    std::atomic<std::uint64_t> operations = 0;
    pool.parallel_for(8 * pool.size(), [&](std::uint32_t, unsigned) { operations.fetch_add(run(5'000)); });
    return static_cast<double>(operations.load());
  });
}

}  // namespace

double measure_fma_peak(ThreadPool& pool) {
  return measure_chains(pool, probes().run_fma_chains);
}

double measure_dot_peak(ThreadPool& pool) {
  return measure_chains(pool, probes().run_dot_chains);
}

}  // namespace candor::cpu
