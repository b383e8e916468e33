// Digests of shard files: SHA-256, or the function that original artifacts call "blake3". That is BLAKE3 (constants,
// message permutation, chunks, tree and flags of the paper by O'Connor et al., 2020) with two differences: state words
// 12 to 15 start as IV[4..7] XOR (counter low, counter high, block length, flags), and the root's digest is words 0 to
// 7 of the final state without the last XOR. It verifies old artifacts; new ones have SHA-256. Not a goal: speed, keys,
// longer output.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/sha256.h"
#include "formats/manifest.h"

namespace candor {

class Blake3Variant {
 public:
  void update(std::span<const std::byte> data);
  /// The digest of all data so far, 64 lower-case hexadecimal digits.
  [[nodiscard]] std::string hex() const;

 private:
  using Words = std::array<std::uint32_t, 8>;

  void finish_chunk();
  [[nodiscard]] Words chunk_output(bool root) const;

  std::array<std::byte, 1024> chunk_{};
  std::size_t chunk_bytes_ = 0;
  std::uint64_t chunks_ = 0;  ///< whole chunks before the current one
  std::vector<Words> stack_;  ///< chaining values of complete subtrees, largest first; one for each bit set in chunks_
};

/// A digest by the algorithm a manifest names.
class ShardHasher {
 public:
  explicit ShardHasher(HashAlgorithm algorithm);
  void update(std::span<const std::byte> data);
  [[nodiscard]] std::string hex();

 private:
  std::variant<Sha256, Blake3Variant> hasher_;
};

}  // namespace candor
