// A byte trie over a fixed set of keys: longest and common-prefix matches in time linear in the match. Nodes hold their
// edges in one sorted run, so a vocabulary of 250,000 tokens takes a few megabytes. Rejected: a double array (smaller
// steps, but building it is slow and intricate) and a hash table of prefixes (one probe a byte, but three times the
// size).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace candor::text {

class ByteTrie {
 public:
  struct Match {
    std::size_t length = 0;
    std::uint32_t value = 0;
  };

  ByteTrie() { build({}); }
  /// Of equal keys the last wins. Empty keys are left out: they would match everywhere.
  explicit ByteTrie(std::vector<std::pair<std::string_view, std::uint32_t>> entries) { build(std::move(entries)); }

  [[nodiscard]] bool empty() const { return edges_.empty(); }

  /// The longest key that `text` starts with.
  [[nodiscard]] std::optional<Match> longest(std::string_view text) const;

  /// Calls visit(length, value) for each key that `text` starts with, shortest first.
  template <typename Visit>
  void for_each_prefix(std::string_view text, const Visit& visit) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<unsigned char>(text[i]));
      if (node == 0) return;
      if (nodes_[node].value != kNone) visit(i + 1, nodes_[node].value);
    }
  }

 private:
  static constexpr std::uint32_t kNone = 0xffff'ffff;

  struct Node {
    std::uint32_t first_edge = 0;
    std::uint32_t edges = 0;
    std::uint32_t value = kNone;
  };

  void build(std::vector<std::pair<std::string_view, std::uint32_t>> entries);

  /// The node reached from `node` by `byte`; 0, the root, if there is none.
  [[nodiscard]] std::uint32_t child(std::uint32_t node, unsigned char byte) const {
    if (node == 0) return root_[byte];
    const Node& from = nodes_[node];
    for (std::uint32_t edge = from.first_edge; edge < from.first_edge + from.edges; ++edge)
      if (edges_[edge] >= byte) return edges_[edge] == byte ? edge + 1 : 0;  // edge e leads to node e + 1
    return 0;
  }

  std::vector<Node> nodes_;
  std::vector<unsigned char> edges_;
  std::array<std::uint32_t, 256> root_{};
};

}  // namespace candor::text
