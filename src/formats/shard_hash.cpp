#include "formats/shard_hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace candor {
namespace {

using Words8 = std::array<std::uint32_t, 8>;
using Words16 = std::array<std::uint32_t, 16>;

constexpr Words8 kIv = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
constexpr std::array<std::uint8_t, 16> kPermutation = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};
constexpr std::uint32_t kChunkStart = 1;
constexpr std::uint32_t kChunkEnd = 2;
constexpr std::uint32_t kParent = 4;
constexpr std::uint32_t kRoot = 8;
constexpr std::size_t kBlockBytes = 64;
constexpr int kRounds = 7;

void mix(Words16& v, std::size_t a, std::size_t b, std::size_t c, std::size_t d, std::uint32_t x, std::uint32_t y) {
  v[a] += v[b] + x;
  v[d] = std::rotr(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 12);
  v[a] += v[b] + y;
  v[d] = std::rotr(v[d] ^ v[a], 8);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 7);
}

void mix_round(Words16& v, const Words16& m) {
  mix(v, 0, 4, 8, 12, m[0], m[1]);
  mix(v, 1, 5, 9, 13, m[2], m[3]);
  mix(v, 2, 6, 10, 14, m[4], m[5]);
  mix(v, 3, 7, 11, 15, m[6], m[7]);
  mix(v, 0, 5, 10, 15, m[8], m[9]);
  mix(v, 1, 6, 11, 12, m[10], m[11]);
  mix(v, 2, 7, 8, 13, m[12], m[13]);
  mix(v, 3, 4, 9, 14, m[14], m[15]);
}

/// One compression. The root keeps the first half of the state as it is; elsewhere the halves are XORed.
Words8 compress(const Words8& chaining, Words16 message, std::uint64_t counter, std::uint32_t length,
                std::uint32_t flags) {
  const std::array<std::uint32_t, 4> tweak = {static_cast<std::uint32_t>(counter),
                                              static_cast<std::uint32_t>(counter >> 32), length, flags};
  Words16 v{};
  std::copy(chaining.begin(), chaining.end(), v.begin());
  std::copy_n(kIv.begin(), 4, v.begin() + 8);
  for (std::size_t i = 0; i < 4; ++i) v[12 + i] = kIv[4 + i] ^ tweak[i];
  for (int round = 0; round < kRounds; ++round) {
    mix_round(v, message);
    Words16 permuted{};
    for (std::size_t i = 0; i < 16; ++i) permuted[i] = message[kPermutation[i]];
    message = permuted;
  }
  Words8 out{};
  for (std::size_t i = 0; i < 8; ++i) out[i] = (flags & kRoot) != 0 ? v[i] : v[i] ^ v[8 + i];
  return out;
}

Words8 compress_parent(const Words8& left, const Words8& right, bool root) {
  Words16 message{};
  std::copy(left.begin(), left.end(), message.begin());
  std::copy(right.begin(), right.end(), message.begin() + 8);
  return compress(kIv, message, 0, kBlockBytes, kParent | (root ? kRoot : 0));
}

/// The chaining value of one chunk, or the digest if it is the whole input.
Words8 compress_chunk(std::span<const std::byte> chunk, std::uint64_t counter, bool root) {
  Words8 chaining = kIv;
  const std::size_t blocks = std::max<std::size_t>(1, (chunk.size() + kBlockBytes - 1) / kBlockBytes);
  for (std::size_t i = 0; i < blocks; ++i) {
    const auto block = chunk.subspan(i * kBlockBytes, std::min(kBlockBytes, chunk.size() - i * kBlockBytes));
    Words16 message{};
    if (!block.empty()) std::memcpy(message.data(), block.data(), block.size());
    std::uint32_t flags = i == 0 ? kChunkStart : 0;
    if (i + 1 == blocks) flags |= kChunkEnd | (root ? kRoot : 0);
    chaining = compress(chaining, message, counter, static_cast<std::uint32_t>(block.size()), flags);
  }
  return chaining;
}

}  // namespace

void Blake3Variant::update(std::span<const std::byte> data) {
  while (!data.empty()) {
    if (chunk_bytes_ == chunk_.size()) finish_chunk();  // more data follow, so this chunk is not the last
    const std::size_t taken = std::min(data.size(), chunk_.size() - chunk_bytes_);
    std::memcpy(chunk_.data() + chunk_bytes_, data.data(), taken);
    chunk_bytes_ += taken;
    data = data.subspan(taken);
  }
}

void Blake3Variant::finish_chunk() {
  Words value = chunk_output(false);
  ++chunks_;
  chunk_bytes_ = 0;
  for (std::uint64_t complete = chunks_; (complete & 1) == 0; complete >>= 1) {
    value = compress_parent(stack_.back(), value, false);
    stack_.pop_back();
  }
  stack_.push_back(value);
}

Blake3Variant::Words Blake3Variant::chunk_output(bool root) const {
  return compress_chunk(std::span(chunk_).first(chunk_bytes_), chunks_, root);
}

std::string Blake3Variant::hex() const {
  Words value = chunk_output(stack_.empty());
  for (std::size_t i = stack_.size(); i-- > 0;) value = compress_parent(stack_[i], value, i == 0);
  std::string out;
  for (const std::uint32_t word : value)
    for (int shift = 0; shift < 32; shift += 8) out += fmt::format("{:02x}", (word >> shift) & 0xffu);
  return out;
}

ShardHasher::ShardHasher(HashAlgorithm algorithm) {
  if (algorithm == HashAlgorithm::blake3) hasher_.emplace<Blake3Variant>();
}

void ShardHasher::update(std::span<const std::byte> data) {
  std::visit([&](auto& hasher) { hasher.update(data); }, hasher_);
}

std::string ShardHasher::hex() {
  return std::visit([](auto& hasher) { return hasher.hex(); }, hasher_);
}

}  // namespace candor
