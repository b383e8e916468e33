#include "text/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/limits.h"

namespace candor::text {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace

std::uint64_t hash_bytes(std::string_view text) {
  constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
  std::uint64_t hash = kOdd ^ text.size();
  const char* data = text.data();
  std::size_t left = text.size();
  for (; left > 8; left -= 8, data += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    hash = mix(hash ^ word, kOdd);
  }
  std::uint64_t word = 0;
  std::memcpy(&word, data, left);
  return mix(hash ^ word, 0xd1b5'4a32'd192'ed03);
}

void Vocabulary::reserve(std::size_t count) {
  count = std::min<std::size_t>(count, limits::vocabulary);
  spans_.reserve(count);
  rehash(std::bit_ceil(2 * count + 2));
}

void Vocabulary::add(std::string_view token, std::uint64_t id, std::string_view label) {
  if (id >= limits::vocabulary)
    fail(ErrorCode::format, "{}: token id {} is above the limit of {}", label, id, limits::vocabulary - 1);
  if (token.size() > limits::token_bytes)
    fail(ErrorCode::format, "{}: token {} has {} bytes, more than the limit of {}", label, id, token.size(),
         limits::token_bytes);
  const auto at = static_cast<std::uint32_t>(id);
  if (contains(at))
    fail(ErrorCode::format, "{}: token id {} belongs to \"{}\" and to \"{}\"", label, id, printable(this->token(at)),
         printable(token));
  if (at >= spans_.size()) spans_.resize(at + 1);
  spans_[at] = {block_.size(), static_cast<std::uint32_t>(token.size())};
  block_ += token;
  longest_ = std::max(longest_, static_cast<std::uint32_t>(token.size()));
  if (2 * (++count_ + std::size_t{1}) > slots_.size()) rehash(std::max<std::size_t>(16, 2 * slots_.size()));
  index(at);
}

void Vocabulary::rehash(std::size_t slots) {
  if (slots <= slots_.size()) return;
  const std::vector<std::uint32_t> old = std::move(slots_);
  slots_.assign(slots, kAbsent);
  for (const std::uint32_t id : old)
    if (id != kAbsent) index(id);
}

void Vocabulary::index(std::uint32_t id) {
  const std::string_view added = token(id);
  std::size_t slot = hash_bytes(added) & (slots_.size() - 1);
  for (; slots_[slot] != kAbsent; slot = (slot + 1) & (slots_.size() - 1))
    if (token(slots_[slot]) == added) return;
  slots_[slot] = id;
}

std::optional<std::uint32_t> Vocabulary::find(std::string_view token_text) const {
  if (slots_.empty()) return std::nullopt;
  std::size_t slot = hash_bytes(token_text) & (slots_.size() - 1);
  for (; slots_[slot] != kAbsent; slot = (slot + 1) & (slots_.size() - 1))
    if (token(slots_[slot]) == token_text) return slots_[slot];
  return std::nullopt;
}

std::string_view Vocabulary::token(std::uint32_t id) const {
  if (!contains(id)) return {};
  return std::string_view(block_).substr(spans_[id].offset, spans_[id].length);
}

bool Vocabulary::contains(std::uint32_t id) const {
  return id < spans_.size() && spans_[id].length != kAbsent;
}

}  // namespace candor::text
