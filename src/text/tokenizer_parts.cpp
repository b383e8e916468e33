#include "text/tokenizer_parts.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace candor::text {

void TokenizerParts::add_token(const AddedToken& token) {
  if (const auto id = find(token.content); id && *id != token.id)
    fail(ErrorCode::format, "{}: the added token \"{}\" has id {}, but the vocabulary gives it {}", label,
         printable(token.content), token.id, *id);
  if (vocabulary->contains(token.id) && vocabulary->token(token.id) != token.content)
    fail(ErrorCode::format, "{}: the added token \"{}\" has id {}, which belongs to \"{}\"", label,
         printable(token.content), token.id, printable(vocabulary->token(token.id)));
  if (!contains(token.id)) added_vocabulary.add(token.content, token.id, label);
  if (added_vocabulary.contains(token.id) && added_vocabulary.token(token.id) != token.content)
    fail(ErrorCode::format, "{}: the added token \"{}\" has id {}, which belongs to \"{}\"", label,
         printable(token.content), token.id, printable(added_vocabulary.token(token.id)));
  if (token.special) {
    special.insert(token.id);
  } else {
    special.erase(token.id);
  }
  const auto [known, is_new] = added_index.emplace(token.id, added.size());
  if (is_new) {
    added.push_back(token);
  } else {
    added[known->second] = token;
  }
}

void TokenizerParts::build_added_sets() {
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
  for (AddedToken token : added) {
    if (!token.normalized) {
      raw.push_back(std::move(token));
      continue;
    }
    bool at_start = true;
    token.content = normalizer.apply(token.content, at_start);
    normalized.push_back(std::move(token));
  }
  // Where two tokens normalize to the same text, special ones come first.
  std::stable_partition(normalized.begin(), normalized.end(), [](const AddedToken& token) { return token.special; });
  raw_added = AddedTokenSet(std::move(raw));
  normalized_added = AddedTokenSet(std::move(normalized));
}

}  // namespace candor::text
