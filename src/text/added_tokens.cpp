#include "text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "text/pattern.h"
#include "text/unicode.h"

namespace candor::text {
namespace {

/// Word characters as UTS 18 defines them, which is what Hugging Face's added tokens test.
const Pattern& word_at_start() {
  static const Pattern pattern =
      Pattern::pcre2(R"(\A[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}])", "added tokens");
  return pattern;
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && word_at_start().is_found_in(text.substr(0, unicode::first(text).length));
}

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  const std::size_t length = unicode::last(text).length;
  return starts_with_word(text.substr(text.size() - length));
}

std::size_t white_space_before(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const auto [value, length] = unicode::last(text.substr(0, end));
    if (!unicode::is_white_space(value)) break;
    end -= length;
  }
  return end;
}

std::size_t white_space_after(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size()) {
    const auto [value, length] = unicode::first(text.substr(size));
    if (!unicode::is_white_space(value)) break;
    size += length;
  }
  return size;
}

}  // namespace

AddedTokenSet::AddedTokenSet(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::vector<std::pair<std::string_view, std::uint32_t>> entries;
  for (auto i = static_cast<std::uint32_t>(tokens_.size()); i-- > 0;) {  // of equal contents the first counts
    if (tokens_[i].content.empty()) continue;
    entries.emplace_back(tokens_[i].content, i);
    starts_[static_cast<unsigned char>(tokens_[i].content[0])] = true;
  }
  trie_ = ByteTrie(std::move(entries));
}

bool AddedTokenSet::next(std::string_view input, bool skip_special, std::size_t& from, std::size_t done,
                         Match& match) const {
  while (true) {
    while (from < input.size() && !starts_[static_cast<unsigned char>(input[from])]) ++from;
    if (from >= input.size()) return false;
    const auto found = trie_.longest(input.substr(from));
    if (!found) {
      ++from;
      continue;
    }
    // A token refused by its flags still hides the text it covers from shorter ones, as in Hugging Face's.
    const std::size_t begin = from;
    const std::size_t end = from + found->length;
    from = end;
    const AddedToken& token = tokens_[found->value];
    if (skip_special && token.special) continue;
    if (token.single_word && (ends_with_word(input.substr(0, begin)) || starts_with_word(input.substr(end)))) continue;
    match.begin = token.lstrip ? std::max(white_space_before(input.substr(0, begin)), done) : begin;
    match.end = token.rstrip ? end + white_space_after(input.substr(end)) : end;
    match.id = token.id;
    return true;
  }
}

}  // namespace candor::text
