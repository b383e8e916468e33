#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "formats/gguf.h"
#include "text/bpe.h"
#include "text/gguf_pre_tokenizers.h"
#include "text/sentencepiece.h"
#include "text/tokenizer.h"
#include "text/tokenizer_parts.h"
#include "text/unigram.h"
#include "text/word_piece.h"

namespace candor::text {
namespace {

/// The tokenizer.ggml.* keys, and what all vocabulary models share.
class GgufReader {
 public:
  GgufReader(const GgufMetadata& metadata, TokenizerParts& parts) : metadata_(metadata), parts_(parts) {
    auto tokens = metadata.strings("tokenizer.ggml.tokens");
    if (!tokens || tokens->empty()) fail(ErrorCode::format, "{}: tokenizer.ggml.tokens is missing or empty", label());
    tokens_ = std::move(*tokens);
    if (tokens_.size() > limits::vocabulary)
      fail(ErrorCode::format, "{}: {} tokens, more than the limit of {}", label(), tokens_.size(), limits::vocabulary);
    for (std::size_t id = 0; id < tokens_.size(); ++id)
      if (!is_utf8(tokens_[id])) fail(ErrorCode::format, "{}: token {} is not UTF-8", label(), id);
    read_types();
  }

  [[nodiscard]] std::string_view label() const { return parts_.label; }
  [[nodiscard]] const GgufMetadata& metadata() const { return metadata_; }
  [[nodiscard]] TokenizerParts& parts() const { return parts_; }
  [[nodiscard]] const std::vector<std::string_view>& tokens() const { return tokens_; }
  [[nodiscard]] const std::vector<PieceType>& types() const { return types_; }

  [[nodiscard]] bool flag(std::string_view name, bool fallback) const {
    return metadata_.boolean(fmt::format("tokenizer.ggml.{}", name)).value_or(fallback);
  }

  /// The token id under a key such as "bos_token_id"; it must be in the vocabulary.
  [[nodiscard]] std::optional<std::uint32_t> id(std::string_view name) const {
    const std::string key = fmt::format("tokenizer.ggml.{}", name);
    const auto value = metadata_.unsigned_integer(key);
    if (!value) return std::nullopt;
    if (*value >= tokens_.size())
      fail(ErrorCode::format, "{}: {} is {}, but there are {} tokens", label(), key, *value, tokens_.size());
    return static_cast<std::uint32_t>(*value);
  }

  [[nodiscard]] std::vector<float> scores() const {
    auto scores = metadata_.floats("tokenizer.ggml.scores");
    if (!scores) fail(ErrorCode::format, "{}: tokenizer.ggml.scores is missing", label());
    if (scores->size() != tokens_.size())
      fail(ErrorCode::format, "{}: {} scores for {} tokens", label(), scores->size(), tokens_.size());
    return std::move(*scores);
  }

  void fill_vocabulary() const {
    parts_.vocabulary->reserve(tokens_.size());
    for (std::size_t id = 0; id < tokens_.size(); ++id) parts_.vocabulary->add(tokens_[id], id, label());
  }

  /// Control and unknown tokens are special; user-defined ones are found in text but are text.
  void register_added_tokens() const {
    const bool phi3 = is_phi3_name(metadata_.string("general.name").value_or(""));
    for (std::uint32_t id = 0; id < tokens_.size(); ++id) {
      const bool special = types_[id] == PieceType::control || types_[id] == PieceType::unknown;
      if (!special && types_[id] != PieceType::user_defined) continue;
      AddedToken token;
      token.id = id;
      token.content = parts_.vocabulary->token(id);
      token.special = special;
      token.rstrip = phi3 && phi3_takes_space_after(token.content);
      if (parts_.vocabulary->find(token.content) == id) parts_.add_token(token);
    }
  }

  void read_special_ids() const {
    parts_.ids.bos = id("bos_token_id");
    parts_.ids.eos = id("eos_token_id");
    parts_.ids.unk = id("unknown_token_id");
    parts_.ids.pad = id("padding_token_id");
    parts_.ids.eot = id("eot_token_id");
    if (!parts_.ids.eot) parts_.ids.eot = end_of_turn_by_name();
  }

  /// Puts BOS before and EOS after the text as the flags say. Throws Error(format) if a wanted token has no id.
  void add_ends(bool bos_by_default, bool eos_by_default) const {
    const auto add = [&](std::string_view name, bool wanted, std::optional<std::uint32_t> token,
                         std::vector<std::uint32_t>& ids) {
      if (!wanted) return;
      if (!token)
        fail(ErrorCode::format, "{}: tokenizer.ggml.add_{}_token is set, but there is no such token", label(), name);
      ids.push_back(*token);
    };
    add("bos", flag("add_bos_token", bos_by_default), parts_.ids.bos, parts_.post_processor.before);
    add("eos", flag("add_eos_token", eos_by_default), parts_.ids.eos, parts_.post_processor.after);
  }

 private:
  void read_types() {
    types_.assign(tokens_.size(), PieceType::normal);
    const auto types = metadata_.integers("tokenizer.ggml.token_type");
    if (!types) return;
    if (types->size() != tokens_.size())
      fail(ErrorCode::format, "{}: {} token types for {} tokens", label(), types->size(), tokens_.size());
    for (std::size_t id = 0; id < tokens_.size(); ++id) types_[id] = piece_type((*types)[id], id, label());
  }

  /// Files made before tokenizer.ggml.eot_token_id existed name the token in the vocabulary only.
  [[nodiscard]] std::optional<std::uint32_t> end_of_turn_by_name() const {
    for (const std::string_view name : {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>"}) {
      const auto found = parts_.vocabulary->find(name);
      if (found && types_[*found] != PieceType::normal) return found;
    }
    return std::nullopt;
  }

  const GgufMetadata& metadata_;
  TokenizerParts& parts_;
  std::vector<std::string_view> tokens_;
  std::vector<PieceType> types_;
};

/// SentencePiece BPE: pieces with scores.
void read_llama(const GgufReader& reader) {
  TokenizerParts& parts = reader.parts();
  reader.fill_vocabulary();
  reader.register_added_tokens();
  reader.read_special_ids();
  reader.add_ends(true, false);
  SentencePieceRules rules;
  rules.add_dummy_prefix = reader.flag("add_space_prefix", true);
  rules.remove_extra_white_space = reader.flag("remove_extra_whitespaces", false);
  parts.decoder.emplace(sentencepiece_decoder(rules.add_dummy_prefix), reader.label());
  parts.model = std::make_unique<ScoredBpe>(*parts.vocabulary, reader.scores(), reader.types(), true, reader.label());
  std::vector<NormalizerStep> steps;
  steps.emplace_back(std::move(rules));
  parts.normalizer = Normalizer(std::move(steps));
}

/// Merges as "left right"; a token may itself begin with a space.
Bpe::MergeList read_merges(const GgufReader& reader) {
  const auto lines = reader.metadata().strings("tokenizer.ggml.merges");
  if (!lines) fail(ErrorCode::format, "{}: tokenizer.ggml.merges is missing", reader.label());
  if (lines->size() > limits::vocabulary)
    fail(ErrorCode::format, "{}: {} merges, more than the limit of {}", reader.label(), lines->size(),
         limits::vocabulary);
  Bpe::MergeList merges;
  merges.reserve(lines->size());
  for (const std::string_view line : *lines) {
    const auto space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size())
      fail(ErrorCode::format, "{}: merge {} (\"{}\") is not two tokens", reader.label(), merges.size(),
           printable(line));
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

/// Byte-level BPE.
void read_gpt2(const GgufReader& reader) {
  TokenizerParts& parts = reader.parts();
  const auto name = reader.metadata().string("tokenizer.ggml.pre");
  if (!name)
    fail(
        ErrorCode::unsupported,
        "{}: tokenizer.ggml.pre is missing, so it is not known how this vocabulary cuts words; convert the model again",
        reader.label());
  const GgufPreTokenizer& pre = gguf_pre_tokenizer(*name, reader.label());
  reader.fill_vocabulary();
  reader.register_added_tokens();
  reader.read_special_ids();
  reader.add_ends(pre.add_bos, false);

  std::vector<PreTokenizerStep> steps;
  for (const std::string_view pattern : pre.patterns)
    steps.emplace_back(PatternSplit{Pattern::regex(pattern, pre.name), SplitBehavior::isolated, false});
  steps.emplace_back(ByteLevelSplit{reader.flag("add_space_prefix", false), std::nullopt, false});
  parts.pre_tokenizer = PreTokenizer(std::move(steps), reader.label());
  if (pre.nfc) {
    std::vector<NormalizerStep> form;
    form.emplace_back(UnicodeForm{unicode::Form::nfc});
    parts.normalizer = Normalizer(std::move(form));
  }
  BpeOptions options;
  options.ignore_merges = pre.ignore_merges;
  options.byte_mode = true;
  parts.model = std::make_unique<Bpe>(*parts.vocabulary, read_merges(reader), std::move(options), reader.label());
  std::vector<DecoderStep> decoder;
  decoder.emplace_back(ByteLevelDecode{});
  parts.decoder.emplace(std::move(decoder), reader.label());
}

/// The first of these: the id under `key`, the token called `name`.
std::uint32_t bert_token(const GgufReader& reader, std::initializer_list<std::string_view> keys,
                         std::string_view name) {
  for (const std::string_view key : keys)
    if (const auto id = reader.id(key)) return *id;
  if (const auto id = reader.parts().vocabulary->find(name)) return *id;
  fail(ErrorCode::format, "{}: neither tokenizer.ggml.{} nor a token {} is there", reader.label(), *keys.begin(), name);
}

/// WordPiece. GGUF marks the beginning of words (▁) where BERT marks continuations (##).
void read_bert(const GgufReader& reader) {
  TokenizerParts& parts = reader.parts();
  constexpr std::string_view kContinuation = "##";
  parts.vocabulary->reserve(reader.tokens().size());
  for (std::size_t id = 0; id < reader.tokens().size(); ++id) {
    std::string token(reader.tokens()[id]);
    const bool bracketed = token.starts_with('[') && token.ends_with(']');  // [CLS], [unused7]: as they are
    if (token.starts_with(kSpaceMark)) {
      token.erase(0, kSpaceMark.size());
    } else if (!bracketed) {
      token.insert(0, kContinuation);
    }
    parts.vocabulary->add(token, id, reader.label());
  }
  reader.register_added_tokens();
  reader.read_special_ids();
  const std::uint32_t cls = bert_token(reader, {"cls_token_id", "bos_token_id"}, "[CLS]");
  const std::uint32_t sep = bert_token(reader, {"seperator_token_id", "eos_token_id"}, "[SEP]");
  const std::uint32_t unknown = bert_token(reader, {"unknown_token_id"}, "[UNK]");
  for (const std::uint32_t id : {cls, sep, unknown}) {
    AddedToken token;
    token.id = id;
    token.content = parts.token(id);
    token.special = true;
    parts.add_token(token);
  }
  parts.ids.unk = unknown;
  if (reader.flag("add_bos_token", true)) parts.post_processor.before.push_back(cls);
  if (reader.flag("add_sep_token", reader.flag("add_eos_token", true))) parts.post_processor.after.push_back(sep);

  BertNormalizer normalizer;
  normalizer.lowercase = reader.flag("normalizer.lowercase", true);
  normalizer.strip_accents = reader.flag("normalizer.strip_accents", normalizer.lowercase);
  std::vector<NormalizerStep> normalizer_steps;
  normalizer_steps.emplace_back(normalizer);
  parts.normalizer = Normalizer(std::move(normalizer_steps));
  std::vector<PreTokenizerStep> steps;
  steps.emplace_back(CharacterSplit{CharacterSplit::Class::white_space, SplitBehavior::removed});
  steps.emplace_back(CharacterSplit{CharacterSplit::Class::punctuation, SplitBehavior::isolated});
  parts.pre_tokenizer = PreTokenizer(std::move(steps), reader.label());
  constexpr std::size_t kLongestWord = 100;  // BERT's own limit
  parts.model = std::make_unique<WordPiece>(*parts.vocabulary, std::string(kContinuation),
                                            UnknownToken{"[UNK]", unknown}, kLongestWord);
  std::vector<DecoderStep> decoder;
  decoder.emplace_back(WordPieceDecode{std::string(kContinuation), true});
  parts.decoder.emplace(std::move(decoder), reader.label());
}

/// Unigram, with SentencePiece's normalization.
void read_t5(const GgufReader& reader) {
  TokenizerParts& parts = reader.parts();
  reader.fill_vocabulary();
  reader.register_added_tokens();
  reader.read_special_ids();
  reader.add_ends(false, true);
  SentencePieceRules rules;
  rules.add_dummy_prefix = reader.flag("add_space_prefix", true);
  rules.remove_extra_white_space = reader.flag("remove_extra_whitespaces", true);
  if (const GgufValue* map = reader.metadata().find("tokenizer.ggml.precompiled_charsmap")) {
    if (map->type != GgufType::array || (map->element != GgufType::u8 && map->element != GgufType::i8))
      fail(ErrorCode::format, "{}: tokenizer.ggml.precompiled_charsmap is not an array of bytes", reader.label());
    rules.map.emplace(std::string_view(reinterpret_cast<const char*>(map->bytes.data()), map->bytes.size()),
                      reader.label());
  }
  parts.decoder.emplace(sentencepiece_decoder(rules.add_dummy_prefix), reader.label());
  std::vector<NormalizerStep> steps;
  steps.emplace_back(std::move(rules));
  parts.normalizer = Normalizer(std::move(steps));

  const std::vector<float> scores = reader.scores();
  std::vector<UnigramPiece> pieces;
  UnigramOptions options;
  options.unknown = parts.ids.unk;
  for (std::size_t id = 0; id < scores.size(); ++id) {
    const PieceType type = reader.types()[id];
    const bool matches = type == PieceType::normal || type == PieceType::user_defined;
    pieces.push_back({scores[id], matches, type == PieceType::user_defined});
    options.byte_fallback = options.byte_fallback || type == PieceType::byte;
    if (type == PieceType::unknown && !options.unknown) options.unknown = static_cast<std::uint32_t>(id);
  }
  parts.model = std::make_unique<Unigram<float>>(*parts.vocabulary, pieces, options, reader.label());
}

std::string digest_of(const GgufMetadata& metadata) {
  Sha256 sha;
  for (const auto& key : metadata.keys()) {
    if (!key.starts_with("tokenizer.ggml.")) continue;
    const GgufValue& value = *metadata.find(key);
    sha.update(fmt::format("{} {} {} {} {}\n", key, static_cast<std::uint32_t>(value.type),
                           static_cast<std::uint32_t>(value.element), value.count, value.bytes.size()));
    sha.update(value.bytes);
  }
  if (is_phi3_name(metadata.string("general.name").value_or(""))) sha.update("white space as Phi-3's tokens take it");
  return "sha256:" + sha.hex();
}

TokenizerParts read_parts(const GgufMetadata& metadata, std::string_view label) {
  struct Kind {
    std::string_view name;
    void (*read)(const GgufReader&);
  };
  static constexpr std::array<Kind, 4> kKinds{
      {{"llama", read_llama}, {"gpt2", read_gpt2}, {"bert", read_bert}, {"t5", read_t5}}};

  const auto model = metadata.string("tokenizer.ggml.model");
  if (!model) fail(ErrorCode::format, "{}: tokenizer.ggml.model is missing", label);
  const auto* kind =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& known) { return known.name == *model; });
  if (kind == kKinds.end())
    fail(ErrorCode::unsupported, "{}: tokenizer.ggml.model \"{}\" is not known here; known are llama, gpt2, bert, t5{}",
         label, printable(*model), *model == "none" ? "; this file has no tokenizer" : "");
  TokenizerParts parts;
  parts.label = label;
  parts.source = "gguf";
  parts.digest = digest_of(metadata);
  const GgufReader reader(metadata, parts);
  kind->read(reader);
  parts.build_added_sets();
  return parts;
}

}  // namespace
}  // namespace candor::text

namespace candor {

std::unique_ptr<Tokenizer> load_tokenizer_gguf(const GgufMetadata& metadata, std::string_view label) {
  return std::make_unique<Tokenizer>(text::read_parts(metadata, label));
}

}  // namespace candor
