// Added tokens: strings that become one id wherever they stand in a text, before (or, if `normalized`, after) the
// normalizer sees it. Matching is leftmost-longest; the flags are those of Hugging Face's AddedToken.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"

namespace candor::text {

struct AddedToken {
  std::uint32_t id = 0;
  std::string content;
  bool single_word = false;  ///< only where no word character touches it
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space after it
  bool normalized = false;   ///< its normalized form is looked for in normalized text
  bool special = false;
};

/// One set of added tokens that is looked for together.
class AddedTokenSet {
 public:
  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::uint32_t id = 0;
  };

  AddedTokenSet() = default;
  /// Looks for each token's `content`. Tokens with an empty content never match.
  explicit AddedTokenSet(std::vector<AddedToken> tokens);

  [[nodiscard]] bool empty() const { return trie_.empty(); }

  /// Calls text(begin, end) for each stretch without tokens and token(id) for each token, in order. With `skip_special`
  /// special tokens are left in the text.
  template <typename Text, typename Token>
  void split(std::string_view input, bool skip_special, const Text& text, const Token& token) const {
    std::size_t done = 0;
    std::size_t from = 0;
    Match match;
    while (!empty() && next(input, skip_special, from, done, match)) {
      if (done < match.begin) text(done, match.begin);
      token(match.id);
      done = match.end;
    }
    if (done < input.size()) text(done, input.size());
  }

 private:
  /// Finds the next token at or after `from`, widened by its flags to no earlier than `done`; moves `from` past it.
  [[nodiscard]] bool next(std::string_view input, bool skip_special, std::size_t& from, std::size_t done,
                          Match& match) const;

  std::vector<AddedToken> tokens_;
  ByteTrie trie_;                   // content → index in tokens_
  std::array<bool, 256> starts_{};  // bytes some content begins with
};

}  // namespace candor::text
