#include "text/detokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

namespace candor {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : tokenizer_(&tokenizer), skip_special_(skip_special) {
  reset();
}

void StreamDecoder::reset() {
  first_ = true;
  to_strip_ = tokenizer_->parts_->decoder->stream_strip().start;
  held_.clear();
}

std::string StreamDecoder::push(std::uint32_t id) {
  const text::TokenizerParts& parts = *tokenizer_->parts_;
  if (!parts.contains(id) || (skip_special_ && tokenizer_->is_special(id))) return {};
  held_ += parts.decoder->bytes_of(tokenizer_->token(id), first_);
  first_ = false;
  const std::size_t whole = held_.size() - text::unicode::incomplete_suffix(held_);
  std::string text = strip(text::unicode::to_valid_utf8(std::string_view(held_).substr(0, whole)));
  held_.erase(0, whole);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text = strip(text::unicode::to_valid_utf8(held_));
  reset();
  return text;
}

std::string StreamDecoder::strip(std::string text) {
  std::size_t at = 0;
  while (to_strip_ > 0 && at < text.size()) {
    const auto [value, length] = text::unicode::first(std::string_view(text).substr(at));
    if (value != tokenizer_->parts_->decoder->stream_strip().content) {
      to_strip_ = 0;
      break;
    }
    at += length;
    --to_strip_;
  }
  return text.substr(at);
}

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const auto& stop : stops_)
    if (stop.empty()) fail(ErrorCode::usage, "a stop string is empty; leave it out instead");
}

std::string StopMatcher::push(std::string_view text) {
  if (stopped()) return {};
  held_ += text;
  std::size_t begin = 0;
  std::size_t end = std::string::npos;  // of the stop string that is complete first
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    const std::size_t found = held_.find(stops_[i]);
    if (found == std::string::npos) continue;
    const std::size_t found_end = found + stops_[i].size();
    if (found_end > end || (found_end == end && found > begin)) continue;
    begin = found;
    end = found_end;
    matched_ = i;
  }
  if (!stopped()) begin = held_.size() - possible_beginning();
  std::string shown = held_.substr(0, begin);
  held_.erase(0, stopped() ? held_.size() : begin);
  return shown;
}

std::size_t StopMatcher::possible_beginning() const {
  std::size_t longest = 0;
  for (const auto& stop : stops_) {
    for (std::size_t size = std::min(stop.size() - 1, held_.size()); size > longest; --size)
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, size))) longest = size;
  }
  return longest;
}

std::string StopMatcher::finish() {
  return std::exchange(held_, {});
}

std::optional<std::string_view> StopMatcher::matched() const {
  if (!matched_) return std::nullopt;
  return stops_[*matched_];
}

}  // namespace candor
