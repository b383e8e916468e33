#include "text/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "text/unicode.h"

namespace candor::text {
namespace {

constexpr double kUnknownPenalty = 10;

}  // namespace

template <typename Real>
Unigram<Real>::Unigram(const Vocabulary& vocabulary, const std::vector<UnigramPiece>& pieces, UnigramOptions options,
                       std::string_view label)
    : vocabulary_(vocabulary), options_(options), scores_(vocabulary.size()) {
  Real lowest = std::numeric_limits<Real>::max();
  Real highest = std::numeric_limits<Real>::lowest();
  const auto count = std::min<std::size_t>(pieces.size(), vocabulary.size());
  for (std::uint32_t id = 0; id < count; ++id) {
    if (!std::isfinite(pieces[id].score))
      fail(ErrorCode::format, "{}: the score of token {} is not a finite number", label, id);
    scores_[id] = static_cast<Real>(pieces[id].score);
    if (!pieces[id].matches || pieces[id].user_defined) continue;
    lowest = std::min(lowest, scores_[id]);
    highest = std::max(highest, scores_[id]);
  }
  unknown_score_ = lowest - static_cast<Real>(kUnknownPenalty);
  std::vector<std::pair<std::string_view, std::uint32_t>> entries;
  for (std::uint32_t id = 0; id < count; ++id) {
    if (pieces[id].matches && vocabulary.contains(id)) entries.emplace_back(vocabulary.token(id), id);
    if (pieces[id].user_defined)  // SentencePiece's bonus
      scores_[id] = static_cast<Real>(vocabulary.token(id).size()) * highest - static_cast<Real>(0.1);
  }
  trie_ = ByteTrie(std::move(entries));
  for (unsigned byte = 0; byte < 256; ++byte) byte_ids_[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte));
}

template <typename Real>
void Unigram<Real>::extend(std::string_view word, std::size_t at, std::vector<Node>& best) const {
  const Real here = best[at].score;
  const std::size_t character = unicode::sequence_length(word[at]);
  bool has_character = false;
  const auto offer = [&](std::size_t length, Real score, std::uint32_t id) {
    Node& node = best[at + length];
    if (node.begin != kUnset && score <= node.score) return;
    node = {score, static_cast<std::uint32_t>(at), id};
  };
  trie_.for_each_prefix(word.substr(at), [&](std::size_t length, std::uint32_t id) {
    offer(length, scores_[id] + here, id);
    has_character = has_character || length == character;
  });
  if (!has_character) offer(character, unknown_score_ + here, kUnknown);
}

template <typename Real>
void Unigram<Real>::tokenize(std::string_view word, WordCache&, std::vector<std::uint32_t>& out) const {
  std::vector<Node> best(word.size() + 1);
  for (std::size_t at = 0; at < word.size(); at += unicode::sequence_length(word[at])) extend(word, at, best);
  // Walk back from the end; unknown stretches grow towards the front until a known piece ends them.
  struct Part {
    std::uint32_t begin, end, id;
  };
  std::vector<Part> parts;
  for (auto end = static_cast<std::uint32_t>(word.size()); end > 0;) {
    const Node& node = best[end];
    const bool unknown = node.id == kUnknown || node.id == options_.unknown;
    if (unknown && !parts.empty() && parts.back().id == kUnknown) {
      parts.back().begin = node.begin;
    } else {
      parts.push_back({node.begin, end, unknown ? kUnknown : node.id});
    }
    end = node.begin;
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->id == kUnknown) {
      emit_unknown(word.substr(part->begin, part->end - part->begin), out);
    } else {
      out.push_back(part->id);
    }
  }
}

template <typename Real>
void Unigram<Real>::emit_unknown(std::string_view text, std::vector<std::uint32_t>& out) const {
  // The unknown token's own spelling in the text is that token.
  if (const auto piece = trie_.longest(text); piece && piece->length == text.size()) return out.push_back(piece->value);
  const bool spelled = options_.byte_fallback && std::all_of(text.begin(), text.end(), [&](char c) {
                         return byte_ids_[static_cast<unsigned char>(c)].has_value();
                       });
  if (spelled) {
    for (const char c : text) out.push_back(*byte_ids_[static_cast<unsigned char>(c)]);
  } else if (options_.unknown) {
    out.push_back(*options_.unknown);
  } else {
    fail(ErrorCode::text, "the text has characters (\"{}\") that the vocabulary lacks, and it has no unknown token",
         printable(text));
  }
}

template class Unigram<double>;
template class Unigram<float>;

}  // namespace candor::text
