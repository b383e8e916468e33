#include "text/sentencepiece.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "text/unicode.h"

namespace candor::text {
namespace {

struct Rewritten {
  std::string_view text;
  std::size_t consumed = 0;
};

Rewritten first_unit(const SentencePieceRules& rules, std::string_view text) {
  if (const auto piece = rules.user_defined.longest(text)) return {text.substr(0, piece->length), piece->length};
  if (rules.map)
    if (const auto match = rules.map->longest(text)) return {match->replacement, match->length};
  const std::size_t length = unicode::sequence_length(text[0]);
  return {text.substr(0, length), length};
}

}  // namespace

PieceType piece_type(std::int64_t value, std::size_t id, std::string_view label) {
  if (value < 1 || value > 6) fail(ErrorCode::format, "{}: token {} has type {}, which is not 1 … 6", label, id, value);
  return static_cast<PieceType>(value);
}

std::string SentencePieceRules::apply(std::string_view text) const {
  while (remove_extra_white_space && !text.empty()) {
    const Rewritten unit = first_unit(*this, text);
    if (unit.text != " ") break;
    text.remove_prefix(unit.consumed);
  }
  std::string out;
  if (text.empty()) return out;
  out.reserve(text.size() + text.size() / 2);
  if (add_dummy_prefix && !white_space_is_suffix) out += kSpaceMark;
  bool after_space = remove_extra_white_space;
  while (!text.empty()) {
    const Rewritten unit = first_unit(*this, text);
    std::string_view piece = unit.text;
    while (after_space && piece.starts_with(' ')) piece.remove_prefix(1);
    for (const char c : piece) {
      if (c == ' ') {
        out += kSpaceMark;
      } else {
        out += c;
      }
    }
    if (!piece.empty()) after_space = remove_extra_white_space && piece.ends_with(' ');
    text.remove_prefix(unit.consumed);
  }
  while (remove_extra_white_space && out.ends_with(kSpaceMark)) out.resize(out.size() - kSpaceMark.size());
  if (add_dummy_prefix && white_space_is_suffix) out += kSpaceMark;
  return out;
}

ScoredBpe::ScoredBpe(const Vocabulary& vocabulary, const std::vector<float>& scores,
                     const std::vector<PieceType>& types, bool byte_fallback, std::string_view label)
    : vocabulary_(vocabulary), ranks_(vocabulary.size(), Merge::kNone), unused_(vocabulary.size()) {
  std::vector<std::uint32_t> order;
  std::vector<std::pair<std::string_view, std::uint32_t>> user_defined;
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    if (!std::isfinite(scores[id]))
      fail(ErrorCode::format, "{}: the score of token {} is not a finite number", label, id);
    switch (types[id]) {
      case PieceType::normal:
        order.push_back(id);
        break;
      case PieceType::unused:
        order.push_back(id);
        unused_[id] = true;
        break;
      case PieceType::user_defined:
        user_defined.emplace_back(vocabulary.token(id), id);
        break;
      case PieceType::unknown:
        if (!unknown_) unknown_ = id;
        break;
      case PieceType::control:
        break;
      case PieceType::byte:
        break;
    }
  }
  user_defined_ = ByteTrie(std::move(user_defined));
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return scores[a] > scores[b]; });
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && scores[order[i]] != scores[order[i - 1]]) ++rank;
    ranks_[order[i]] = rank;
  }
  for (unsigned byte = 0; byte < 256 && byte_fallback; ++byte)
    byte_ids_[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte));
}

Merge ScoredBpe::find_merge(std::string_view word, const Symbol& left, const Symbol& right) const {
  const std::size_t length = std::size_t{left.length} + right.length;
  if (left.frozen || right.frozen || length > vocabulary_.longest()) return {};
  const auto id = vocabulary_.find(word.substr(left.begin, length));
  return id ? Merge{ranks_[*id], *id} : Merge{};
}

std::vector<Symbol> ScoredBpe::first_symbols(std::string_view word) const {
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  for (std::size_t at = 0; at < word.size();) {
    const auto piece = user_defined_.longest(word.substr(at));
    const std::size_t length = piece ? piece->length : unicode::sequence_length(word[at]);
    const auto id = piece ? piece->value : vocabulary_.find(word.substr(at, length)).value_or(kNoPiece);
    symbols.push_back({id, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length), piece.has_value()});
    at += length;
  }
  return symbols;
}

void ScoredBpe::tokenize(std::string_view word, WordCache&, std::vector<std::uint32_t>& out) const {
  std::vector<Symbol> symbols = first_symbols(word);
  // How each unused piece was made, so that it can be taken apart.
  std::unordered_map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> parts;
  merge_symbols(symbols, [&](const Symbol& left, const Symbol& right) {
    const Merge merge = find_merge(word, left, right);
    if (merge.rank != Merge::kNone && unused_[merge.id]) parts[merge.id] = {left.length, right.length};
    return merge;
  });
  std::vector<Symbol> pending;
  for (const Symbol& symbol : symbols) {
    pending.push_back(symbol);
    while (!pending.empty()) {
      const Symbol next = pending.back();
      pending.pop_back();
      const auto split = next.id != kNoPiece && unused_[next.id] ? parts.find(next.id) : parts.end();
      if (split == parts.end()) {
        emit(word.substr(next.begin, next.length), next.id, out);
        continue;
      }
      const auto [left, right] = split->second;
      const auto part = [&](std::uint32_t begin, std::uint32_t length) {
        const auto id = vocabulary_.find(word.substr(begin, length)).value_or(kNoPiece);
        pending.push_back({id, begin, length, false});
      };
      part(next.begin + left, right);
      part(next.begin, left);
    }
  }
}

void ScoredBpe::emit(std::string_view text, std::uint32_t id, std::vector<std::uint32_t>& out) const {
  const bool known = id != kNoPiece && (ranks_[id] != Merge::kNone || user_defined_.longest(text).has_value());
  if (known) return out.push_back(id);
  const bool spelled = std::all_of(text.begin(), text.end(),
                                   [&](char c) { return byte_ids_[static_cast<unsigned char>(c)].has_value(); });
  if (spelled) {
    for (const char c : text) out.push_back(*byte_ids_[static_cast<unsigned char>(c)]);
  } else if (!unknown_) {
    fail(ErrorCode::text, "the text has characters (\"{}\") that the vocabulary lacks, and it has no unknown token",
         printable(text));
  } else if (out.empty() || out.back() != *unknown_) {
    out.push_back(*unknown_);  // a run of unknown characters is one token
  }
}

}  // namespace candor::text
