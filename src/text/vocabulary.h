// A vocabulary: token strings and ids, both ways. Strings lie in one block and the index is an open-addressing table of
// ids, so that a quarter of a million tokens load in tens of milliseconds and a look-up costs one hash.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace candor::text {

/// A 64-bit hash of short strings; not for adversarial keys.
[[nodiscard]] std::uint64_t hash_bytes(std::string_view text);

class Vocabulary {
 public:
  /// Makes room for `count` tokens.
  void reserve(std::size_t count);

  /// Gives `token` the id `id`. A repeated token keeps its first id in look-ups. Throws Error(format), naming `label`:
  /// an id already taken by another token, or above limits::vocabulary, or a token longer than limits::token_bytes.
  void add(std::string_view token, std::uint64_t id, std::string_view label);

  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view token) const;
  /// The token with this id; empty where there is none.
  [[nodiscard]] std::string_view token(std::uint32_t id) const;
  /// True if a token has this id.
  [[nodiscard]] bool contains(std::uint32_t id) const;
  /// One more than the largest id.
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(spans_.size()); }
  /// Tokens present.
  [[nodiscard]] std::uint32_t count() const { return count_; }
  /// Bytes of the longest token.
  [[nodiscard]] std::uint32_t longest() const { return longest_; }

 private:
  static constexpr std::uint32_t kAbsent = 0xffff'ffff;

  struct Span {
    std::uint64_t offset = 0;
    std::uint32_t length = kAbsent;
  };

  void rehash(std::size_t slots);
  void index(std::uint32_t id);

  std::string block_;
  std::vector<Span> spans_;           // by id
  std::vector<std::uint32_t> slots_;  // ids by hash, kAbsent where free; a power of two, at most half full
  std::uint32_t count_ = 0;
  std::uint32_t longest_ = 0;
};

}  // namespace candor::text
