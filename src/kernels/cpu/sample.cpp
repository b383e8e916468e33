#include "kernels/cpu/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/cpu/philox.h"

namespace candor::cpu::sample {
namespace {

/// e^x for x ≤ 0: ln 2 taken off in two parts, Taylor series to the 13th power, plain operations, error below 1e-15
/// relative; 0 below -708. libm's differs from machine to machine.
double exponential(double x) {
  if (x < -708.0) return 0.0;
  constexpr double kShift = 0x1.8p52;
  const double n = (x * 0x1.71547652b82fep+0 + kShift) - kShift;
  const double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
  double sum = 1.0;
  for (int k = 13; k > 0; --k) sum = 1.0 + sum * r / k;
  const auto exponent = static_cast<std::uint64_t>(static_cast<std::int64_t>(n) + 1023);
  return sum * std::bit_cast<double>(exponent << 52);
}

double penalized(double logit, float penalty) {
  return logit > 0 ? logit / penalty : logit * penalty;
}

/// Copies logits to `work` with the penalty applied. The largest logit, or NaN if there is no finite one or any is NaN.
double prepare(std::span<const float> logits, const SamplerParameters& parameters,
               std::span<const std::uint32_t> history, std::span<Candidate> work) {
  for (std::size_t i = 0; i < logits.size(); ++i) work[i] = {logits[i], static_cast<std::uint32_t>(i)};
  if (parameters.repetition_penalty != 1) {
    const std::size_t window = std::min<std::size_t>(history.size(), parameters.repetition_window);
    for (const std::uint32_t token : history.last(window))
      if (token < logits.size()) work[token].value = penalized(logits[token], parameters.repetition_penalty);
  }
  double largest = -INFINITY;
  for (const Candidate& candidate : work.first(logits.size())) {
    if (std::isnan(candidate.value)) return NAN;
    largest = std::max(largest, candidate.value);
  }
  return std::isinf(largest) ? NAN : largest;
}

bool more_probable(const Candidate& a, const Candidate& b) {
  return a.value != b.value ? a.value > b.value : a.id < b.id;
}

double total(std::span<const Candidate> candidates) {
  double sum = 0;
  for (const Candidate& candidate : candidates) sum += candidate.value;
  return sum;
}

/// Puts the `count` most probable candidates first, in order.
void sort_first(std::span<Candidate> candidates, std::size_t count) {
  if (count < candidates.size())
    std::nth_element(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count), candidates.end(),
                     more_probable);
  std::sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count), more_probable);
}

/// The fewest most probable candidates whose sum reaches `share` of the whole. `sorted` says how many are in order.
std::span<Candidate> top_p(std::span<Candidate> candidates, double share, std::size_t sorted) {
  const double enough = total(candidates) * share;
  double sum = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i == sorted) {  // a few at a time: usually a handful of a large vocabulary is enough
      const std::size_t more = std::min(candidates.size() - i, std::max<std::size_t>(64, 7 * i));
      sort_first(candidates.subspan(i), more);
      sorted += more;
    }
    sum += candidates[i].value;
    if (sum >= enough) return candidates.first(i + 1);
  }
  return candidates;
}

}  // namespace

std::uint32_t choose(std::span<const float> logits, const SamplerParameters& parameters,
                     std::span<const std::uint32_t> history, std::uint32_t position, std::span<Candidate> work) {
  const double largest = prepare(logits, parameters, history, work);
  if (std::isnan(largest)) return kNoToken;
  std::span<Candidate> left = work.first(logits.size());
  if (!(parameters.temperature > 0)) {
    const auto best =
        std::find_if(left.begin(), left.end(), [&](const Candidate& candidate) { return candidate.value == largest; });
    return best->id;
  }
  std::size_t sorted = 0;
  if (parameters.top_k > 0 && parameters.top_k < left.size()) {
    sort_first(left, parameters.top_k);
    left = left.first(parameters.top_k);
    sorted = left.size();
  }
  for (Candidate& candidate : left)
    candidate.value = exponential((candidate.value - largest) / double{parameters.temperature});
  if (parameters.top_p < 1) left = top_p(left, parameters.top_p, sorted);
  if (parameters.min_p > 0) {
    const auto improbable = [&](const Candidate& candidate) { return candidate.value < double{parameters.min_p}; };
    const auto end = std::remove_if(left.begin(), left.end(), improbable);
    left = left.first(static_cast<std::size_t>(end - left.begin()));
  }

  const double target = uniform(parameters.seed, parameters.sequence, position) * total(left);
  double sum = 0;
  for (const Candidate& candidate : left) {
    sum += candidate.value;
    if (sum > target) return candidate.id;
  }
  return left.back().id;
}

std::uint64_t scratch_bytes(const KernelShapes& shapes, const Constants&) {
  return std::uint64_t{shapes.threads} * shapes.src_cols * sizeof(Candidate);
}

void run(const KernelArguments& arguments) {
  const Matrix& logits = arguments.inputs[0];
  arguments.pool->parallel_for(logits.rows, [&](std::uint32_t r, unsigned worker) {
    const Segment& segment = arguments.batch->segments[r];
    const auto* values = reinterpret_cast<const float*>(logits.data + r * logits.row_bytes);
    auto* work = reinterpret_cast<Candidate*>(arguments.scratch.data()) + std::size_t{worker} * logits.cols;
    auto* token = reinterpret_cast<std::uint32_t*>(arguments.dst.data + r * arguments.dst.row_bytes);
    static constexpr SamplerParameters kGreedy;
    *token = choose({values, logits.cols}, segment.sampler != nullptr ? *segment.sampler : kGreedy, segment.history,
                    segment.first_position + segment.rows - 1, {work, logits.cols});
  });
}

}  // namespace candor::cpu::sample
