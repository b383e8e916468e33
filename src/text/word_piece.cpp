#include "text/word_piece.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "text/unicode.h"

namespace candor::text {
namespace {

/// The entries that start with `prefix`, without it.
ByteTrie entries_after(const Vocabulary& vocabulary, std::string_view prefix) {
  std::vector<std::pair<std::string_view, std::uint32_t>> entries;
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view token = vocabulary.token(id);
    if (token.starts_with(prefix)) entries.emplace_back(token.substr(prefix.size()), id);
  }
  return ByteTrie(std::move(entries));
}

}  // namespace

std::uint32_t UnknownToken::require() const {
  if (!id)
    fail(ErrorCode::text, "the text needs the unknown token \"{}\", which the vocabulary lacks", printable(name));
  return *id;
}

WordPiece::WordPiece(const Vocabulary& vocabulary, std::string prefix, UnknownToken unknown,
                     std::size_t max_word_characters)
    : beginnings_(entries_after(vocabulary, "")),
      continuations_(entries_after(vocabulary, prefix)),
      unknown_(std::move(unknown)),
      max_word_characters_(max_word_characters) {}

void WordPiece::tokenize(std::string_view word, WordCache&, std::vector<std::uint32_t>& out) const {
  const std::size_t first = out.size();
  if (unicode::length(word) <= max_word_characters_ && cover(word, out)) return;
  out.resize(first);
  out.push_back(unknown_.require());
}

bool WordPiece::cover(std::string_view word, std::vector<std::uint32_t>& out) const {
  for (std::size_t at = 0; at < word.size();) {
    const auto match = (at == 0 ? beginnings_ : continuations_).longest(word.substr(at));
    if (!match) return false;
    out.push_back(match->value);
    at += match->length;
  }
  return true;
}

WordLevel::WordLevel(const Vocabulary& vocabulary, UnknownToken unknown)
    : vocabulary_(vocabulary), unknown_(std::move(unknown)) {}

void WordLevel::tokenize(std::string_view word, WordCache&, std::vector<std::uint32_t>& out) const {
  const auto id = vocabulary_.find(word);
  out.push_back(id ? *id : unknown_.require());
}

}  // namespace candor::text
