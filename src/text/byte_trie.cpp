#include "text/byte_trie.h"

#include <algorithm>

namespace candor::text {

// Breadth first: the nodes of one level are created in the order of their edges, so edge e leads to node e + 1 and
// targets need no storage.
void ByteTrie::build(std::vector<std::pair<std::string_view, std::uint32_t>> entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  struct Range {
    std::size_t begin, end;
  };
  nodes_.assign(1, Node{});
  std::vector<Range> level{{0, entries.size()}};
  std::uint32_t node = 0;
  for (std::size_t depth = 0; !level.empty(); ++depth) {
    std::vector<Range> next;
    for (const Range range : level) {
      Node& current = nodes_[node++];
      current.first_edge = static_cast<std::uint32_t>(edges_.size());
      std::size_t i = range.begin;
      for (; i < range.end && entries[i].first.size() == depth; ++i)
        if (depth > 0) current.value = entries[i].second;
      while (i < range.end) {
        const char byte = entries[i].first[depth];
        std::size_t end = i;
        while (end < range.end && entries[end].first[depth] == byte) ++end;
        edges_.push_back(static_cast<unsigned char>(byte));
        next.push_back({i, end});
        i = end;
      }
      current.edges = static_cast<std::uint32_t>(edges_.size()) - current.first_edge;
    }
    nodes_.resize(nodes_.size() + next.size());
    level = std::move(next);
  }
  for (std::uint32_t edge = 0; edge < nodes_[0].edges; ++edge) root_[edges_[edge]] = edge + 1;
}

std::optional<ByteTrie::Match> ByteTrie::longest(std::string_view text) const {
  std::optional<Match> best;
  for_each_prefix(text, [&](std::size_t length, std::uint32_t value) { best = Match{length, value}; });
  return best;
}

}  // namespace candor::text
