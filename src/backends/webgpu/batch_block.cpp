#include "backends/webgpu/batch_block.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "base/error.h"

namespace candor::webgpu {
namespace {

constexpr std::uint32_t kHeaderWords = 64;
constexpr std::uint32_t kSegmentWords = 16;

std::uint32_t aligned(std::uint64_t words) {
  return checked_cast<std::uint32_t>(checked_align(words, 64, "batch"), "batch");
}

}  // namespace

BatchBlock::BatchBlock(const ProgramLimits& limits)
    : rows_(limits.rows),
      sequences_(limits.sequences),
      pages_((limits.context + limits.page_positions - 1) / limits.page_positions),
      context_(limits.context),
      page_positions_(limits.page_positions) {
  const std::uint32_t row_words = aligned(rows_);
  tokens_at_ = kHeaderWords;
  positions_at_ = tokens_at_ + row_words;
  types_at_ = positions_at_ + row_words;
  row_segments_at_ = types_at_ + row_words;
  segments_at_ = row_segments_at_ + row_words;
  pages_at_ = segments_at_ + sequences_ * kSegmentWords;
  history_at_ = pages_at_ + checked_cast<std::uint32_t>(std::uint64_t{sequences_} * pages_, "batch");
  words_ = aligned(std::uint64_t{history_at_} + std::uint64_t{sequences_} * context_);
}

std::uint64_t BatchBlock::offset_of(ExternalInput external) const {
  switch (external) {
    case ExternalInput::tokens:
      return std::uint64_t{tokens_at_} * 4;
    case ExternalInput::positions:
      return std::uint64_t{positions_at_} * 4;
    case ExternalInput::types:
      return std::uint64_t{types_at_} * 4;
    case ExternalInput::sampler:
      break;
  }
  fail(ErrorCode::internal, "input {} is no slot of numbers", to_string(external));
}

void BatchBlock::encode(const Batch& batch, std::span<std::uint32_t> out) const {
  const auto put = [&](std::uint32_t at, std::span<const std::uint32_t> values) {
    std::copy(values.begin(), values.end(), out.begin() + at);
  };
  out[0] = static_cast<std::uint32_t>(batch.tokens.size());
  out[1] = static_cast<std::uint32_t>(batch.segments.size());
  out[2] = positions_at_;
  out[3] = types_at_;
  out[4] = row_segments_at_;
  out[5] = segments_at_;
  put(tokens_at_, batch.tokens);
  put(positions_at_, batch.positions);
  if (batch.types.empty()) {
    std::fill_n(out.begin() + types_at_, batch.tokens.size(), 0u);
  } else {
    put(types_at_, batch.types);
  }
  for (std::uint32_t s = 0; s < batch.segments.size(); ++s) {
    const Segment& segment = batch.segments[s];
    std::fill_n(out.begin() + row_segments_at_ + segment.first_row, segment.rows, s);
    const std::uint32_t pages_at = pages_at_ + s * pages_;
    const std::uint32_t end = segment.first_position + segment.rows;
    if (segment.kv_pages != nullptr)
      put(pages_at, {segment.kv_pages, (std::size_t{end} + page_positions_ - 1) / page_positions_});
    static constexpr SamplerParameters kGreedy;
    const SamplerParameters& sampler = segment.sampler != nullptr ? *segment.sampler : kGreedy;
    std::span<const std::uint32_t> history;
    if (sampler.repetition_penalty != 1)
      history = segment.history.last(
          std::min<std::size_t>(segment.history.size(), std::min<std::size_t>(sampler.repetition_window, context_)));
    const std::uint32_t history_at = history_at_ + s * context_;
    put(history_at, history);
    const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
    const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
    const std::uint32_t words[kSegmentWords] = {segment.first_row,
                                                segment.rows,
                                                segment.first_position,
                                                pages_at,
                                                history_at,
                                                static_cast<std::uint32_t>(history.size()),
                                                std::bit_cast<std::uint32_t>(sampler.temperature),
                                                sampler.top_k,
                                                std::bit_cast<std::uint32_t>(sampler.top_p),
                                                std::bit_cast<std::uint32_t>(sampler.min_p),
                                                std::bit_cast<std::uint32_t>(sampler.repetition_penalty),
                                                low(sampler.seed),
                                                high(sampler.seed),
                                                low(sampler.sequence),
                                                high(sampler.sequence),
                                                0};
    put(segments_at_ + s * kSegmentWords, words);
  }
}

}  // namespace candor::webgpu
