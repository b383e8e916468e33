#include "text/bpe.h"

#include <bit>

#include "base/error.h"
#include "text/byte_level.h"
#include "text/unicode.h"
#include "text/word_cache.h"

namespace candor::text {
namespace {

std::uint32_t require(const Vocabulary& vocabulary, std::string_view token, std::size_t rank, std::string_view label) {
  const auto id = vocabulary.find(token);
  if (!id)
    fail(ErrorCode::format, "{}: merge {} needs the token \"{}\", which the vocabulary lacks", label, rank,
         printable(token));
  return *id;
}

/// Scratch space of one thread, so that a word costs no allocation.
std::vector<Symbol>& symbols_buffer() {
  thread_local std::vector<Symbol> symbols;
  return symbols;
}

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary, const MergeList& merges, BpeOptions options, std::string_view label)
    : vocabulary_(vocabulary), options_(std::move(options)), merges_(std::bit_ceil(2 * merges.size() + 2)) {
  std::string joined;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    if (!right.starts_with(options_.prefix))
      fail(ErrorCode::format, "{}: merge {} joins \"{}\", which lacks the prefix \"{}\" of continuing subwords", label,
           rank, printable(right), printable(options_.prefix));
    joined.assign(left).append(right, options_.prefix.size());
    add_merge(require(vocabulary, left, rank, label), require(vocabulary, right, rank, label),
              {static_cast<std::uint32_t>(rank), require(vocabulary, joined, rank, label)});
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::string spelled;
    unicode::append(spelled, byte_level::character(static_cast<unsigned char>(byte)));
    byte_ids_[byte] = vocabulary.find(options_.byte_mode ? spelled : fmt::format("<0x{:02X}>", byte));
  }
  if (!options_.byte_mode || !options_.ignore_merges) return;
  bytes_.reserve(vocabulary.count());
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id)
    if (const auto bytes = byte_level::read(vocabulary.token(id)); bytes && !bytes->empty())
      bytes_.add(*bytes, id, label);
}

std::size_t Bpe::slot(std::uint32_t left, std::uint32_t right) const {
  const std::uint64_t key = (std::uint64_t{left} << 32 | right) * 0x9e37'79b9'7f4a'7c15;
  return static_cast<std::size_t>(key >> 32) & (merges_.size() - 1);
}

void Bpe::add_merge(std::uint32_t left, std::uint32_t right, Merge merge) {
  std::size_t at = slot(left, right);
  while (merges_[at].merge.rank != Merge::kNone && (merges_[at].left != left || merges_[at].right != right))
    at = (at + 1) & (merges_.size() - 1);
  merges_[at] = {left, right, merge};  // of a repeated merge the last counts, as in Hugging Face's
}

Merge Bpe::find_merge(std::uint32_t left, std::uint32_t right) const {
  for (std::size_t at = slot(left, right); merges_[at].merge.rank != Merge::kNone; at = (at + 1) & (merges_.size() - 1))
    if (merges_[at].left == left && merges_[at].right == right) return merges_[at].merge;
  return {};
}

std::uint32_t Bpe::unknown_id() const {
  if (!options_.unknown)
    fail(ErrorCode::text, "the text needs the unknown token \"{}\", which the vocabulary lacks",
         printable(options_.unknown_token));
  return *options_.unknown;
}

std::optional<std::uint32_t> Bpe::whole_word(std::string_view word) const {
  return options_.byte_mode ? bytes_.find(word) : vocabulary_.find(word);
}

void Bpe::tokenize(std::string_view word, WordCache& cache, std::vector<std::uint32_t>& out) const {
  if (const auto known = cache.get(word)) {
    out.insert(out.end(), known->begin(), known->end());
    return;
  }
  const std::size_t first = out.size();
  const auto whole = options_.ignore_merges ? whole_word(word) : std::nullopt;
  if (whole) {
    out.push_back(*whole);
  } else {
    std::vector<Symbol>& symbols = symbols_buffer();
    symbols.clear();
    if (options_.byte_mode) {
      split_bytes(word, symbols);
    } else {
      split_characters(word, symbols);
    }
    merge_symbols(symbols, [&](const Symbol& left, const Symbol& right) { return find_merge(left.id, right.id); });
    for (const Symbol& symbol : symbols) out.push_back(symbol.id);
  }
  cache.put(word, std::span(out).subspan(first));
}

void Bpe::split_bytes(std::string_view word, std::vector<Symbol>& symbols) const {
  bool after_unknown = false;
  for (std::uint32_t i = 0; i < word.size(); ++i) {
    const auto id = byte_ids_[static_cast<unsigned char>(word[i])];
    if (id) {
      symbols.push_back({*id, i, 1, false});
    } else if (!options_.unknown_token.empty() && !(after_unknown && options_.fuse_unknown)) {
      symbols.push_back({unknown_id(), i, 1, false});
    }
    after_unknown = !id;
  }
}

void Bpe::split_characters(std::string_view word, std::vector<Symbol>& symbols) const {
  std::optional<Symbol> unknown;  // not yet written: it may grow
  const auto flush = [&] {
    if (unknown) symbols.push_back(*unknown);
    unknown.reset();
  };
  std::string decorated;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = unicode::sequence_length(word[at]);
    const auto begin = static_cast<std::uint32_t>(at);
    std::string_view character = word.substr(at, length);
    const bool decorate =
        (at > 0 && !options_.prefix.empty()) || (at + length == word.size() && !options_.suffix.empty());
    if (decorate) {
      decorated = at > 0 ? options_.prefix : std::string();
      decorated += character;
      if (at + length == word.size()) decorated += options_.suffix;
      character = decorated;
    }
    at += length;
    if (const auto id = vocabulary_.find(character)) {
      flush();
      symbols.push_back({*id, begin, static_cast<std::uint32_t>(length), false});
    } else if (options_.byte_fallback && fall_back_to_bytes(character, begin, symbols)) {
      continue;
    } else if (!options_.unknown_token.empty()) {
      if (unknown && options_.fuse_unknown) {
        unknown->length += static_cast<std::uint32_t>(length);
      } else {
        flush();
        unknown = Symbol{unknown_id(), begin, static_cast<std::uint32_t>(length), false};
      }
    }
  }
  flush();
}

bool Bpe::fall_back_to_bytes(std::string_view text, std::uint32_t begin, std::vector<Symbol>& symbols) const {
  for (const char c : text)
    if (!byte_ids_[static_cast<unsigned char>(c)]) return false;
  for (const char c : text) symbols.push_back({*byte_ids_[static_cast<unsigned char>(c)], begin, 1, false});
  return true;
}

}  // namespace candor::text
