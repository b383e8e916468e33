#include "text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "text/tokenizer_parts.h"

namespace candor::text {
namespace {

void check_text(std::string_view text, std::string_view label) {
  if (text.size() > limits::prompt_bytes)
    fail(ErrorCode::text, "{}: text of {} bytes, more than the limit of {}", label, text.size(), limits::prompt_bytes);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_sequence_length(text.substr(at));
    if (length == 0) fail(ErrorCode::text, "{}: the text is not UTF-8 at byte {}", label, at);
    at += length;
  }
}

/// One call of encode(): text flows through the stages into `out_`.
class EncodeCall final : private PreTokenizer::Sink {
 public:
  EncodeCall(const TokenizerParts& parts, EncodeOptions options, std::vector<std::uint32_t>& out)
      : parts_(parts), options_(options), out_(out), cache_(*parts.caches) {}

  void add_text(std::string_view text) {
    parts_.raw_added.split(
        text, !options_.parse_special,
        [&](std::size_t begin, std::size_t end) { add_raw(text.substr(begin, end - begin), begin == 0); },
        [&](std::uint32_t id) { out_.push_back(id); });
  }

 private:
  void add_raw(std::string_view text, bool at_start) {
    if (parts_.normalizer.empty()) return add_normalized(text, at_start);
    const std::string normalized = parts_.normalizer.apply(text, at_start);
    add_normalized(normalized, at_start);
  }

  void add_normalized(std::string_view text, bool at_start) {
    parts_.normalized_added.split(
        text, !options_.parse_special,
        [&](std::size_t begin, std::size_t end) {
          parts_.pre_tokenizer.split(text.substr(begin, end - begin), at_start && begin == 0, *this);
        },
        [&](std::uint32_t id) { out_.push_back(id); });
  }

  void word(std::string_view word) override { parts_.model->tokenize(word, *cache_, out_); }

  const TokenizerParts& parts_;
  EncodeOptions options_;
  std::vector<std::uint32_t>& out_;
  WordCachePool::Lease cache_;
};

}  // namespace

/// Appends the ids of `text` to `out`.
void encode_text(const TokenizerParts& parts, std::string_view text, EncodeOptions options,
                 std::vector<std::uint32_t>& out) {
  check_text(text, parts.label);
  EncodeCall(parts, options, out).add_text(text);
}

}  // namespace candor::text

namespace candor {
namespace {

Json id_or_null(std::optional<std::uint32_t> id) {
  return id ? Json(*id) : Json();
}

}  // namespace

Tokenizer::Tokenizer(text::TokenizerParts parts)
    : parts_(std::make_unique<const text::TokenizerParts>(std::move(parts))) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<std::uint32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::vector<std::uint32_t> ids;
  ids.reserve(text.size() / 3 + 8);
  const text::PostProcessor& post = parts_->post_processor;
  if (options.add_special) ids.insert(ids.end(), post.before.begin(), post.before.end());
  text::encode_text(*parts_, text, options, ids);
  if (options.add_special) ids.insert(ids.end(), post.after.begin(), post.after.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::uint32_t id : ids)
    if (parts_->contains(id) && !(skip_special && is_special(id))) tokens.emplace_back(token(id));
  return parts_->decoder->decode(std::move(tokens));
}

std::string Tokenizer::token_bytes(std::uint32_t id) const {
  if (!parts_->contains(id)) return {};
  return parts_->decoder->bytes_of(token(id), false);
}

std::optional<std::uint32_t> Tokenizer::id_of(std::string_view token) const {
  return parts_->find(token);
}
std::string_view Tokenizer::token(std::uint32_t id) const {
  return parts_->token(id);
}
std::uint32_t Tokenizer::vocabulary_size() const {
  return std::max(parts_->vocabulary->size(), parts_->added_vocabulary.size());
}
bool Tokenizer::is_special(std::uint32_t id) const {
  return parts_->special.contains(id);
}
std::optional<std::uint32_t> Tokenizer::bos_id() const {
  return parts_->ids.bos;
}
std::optional<std::uint32_t> Tokenizer::eos_id() const {
  return parts_->ids.eos;
}
std::optional<std::uint32_t> Tokenizer::eot_id() const {
  return parts_->ids.eot;
}
std::optional<std::uint32_t> Tokenizer::unk_id() const {
  return parts_->ids.unk;
}
std::optional<std::uint32_t> Tokenizer::pad_id() const {
  return parts_->ids.pad;
}
const std::string& Tokenizer::digest() const {
  return parts_->digest;
}

bool Tokenizer::adds_bos() const {
  const auto& before = parts_->post_processor.before;
  return parts_->ids.bos && !before.empty() && before.front() == *parts_->ids.bos;
}

Json Tokenizer::describe() const {
  Json json;
  json["source"] = parts_->source;
  json["model"] = parts_->model->name();
  json["vocabulary_size"] = vocabulary_size();
  json["tokens"] = parts_->vocabulary->count() + parts_->added_vocabulary.count();
  json["added_tokens"] = parts_->added.size();
  json["special_tokens"] = parts_->special.size();
  json["normalizer"] = parts_->normalizer.names();
  json["pre_tokenizer"] = parts_->pre_tokenizer.names();
  json["decoder"] = parts_->decoder->names();
  json["adds_before"] = parts_->post_processor.before;
  json["adds_after"] = parts_->post_processor.after;
  json["bos_id"] = id_or_null(parts_->ids.bos);
  json["eos_id"] = id_or_null(parts_->ids.eos);
  json["eot_id"] = id_or_null(parts_->ids.eot);
  json["unk_id"] = id_or_null(parts_->ids.unk);
  json["pad_id"] = id_or_null(parts_->ids.pad);
  json["adds_bos"] = adds_bos();
  json["digest"] = digest();
  return json;
}

}  // namespace candor
