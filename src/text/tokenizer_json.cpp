#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "text/bpe.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json_stages.h"
#include "text/unigram.h"
#include "text/word_piece.h"

namespace candor::text {
namespace {

/// The vocabulary of BPE, WordPiece and WordLevel: an object, token → id.
void read_vocabulary(const JsonField& field, Vocabulary& vocabulary, std::string_view label) {
  if (!field.value().is_object())
    fail(ErrorCode::format, "{}: expected an object of tokens and ids, found {}", field.path(),
         field.value().type_name());
  vocabulary.reserve(field.value().size());
  for (const auto& [token, id] : field.value().items()) {
    if (!id.is_number_unsigned())
      fail(ErrorCode::format, "{}: the id of \"{}\" is not a non-negative integer", field.path(), printable(token));
    vocabulary.add(token, id.get<std::uint64_t>(), label);
  }
}

/// Merges as "left right" (before version 0.20) or ["left", "right"].
Bpe::MergeList read_merges(const JsonField& field) {
  if (!field.value().is_array())
    fail(ErrorCode::format, "{}: expected an array, found {}", field.path(), field.value().type_name());
  if (field.value().size() > limits::vocabulary)
    fail(ErrorCode::format, "{}: {} merges, more than the limit of {}", field.path(), field.value().size(),
         limits::vocabulary);
  Bpe::MergeList merges;
  merges.reserve(field.value().size());
  for (const auto& merge : field.value()) {
    std::string_view left;
    std::string_view right;
    if (merge.is_string()) {
      const std::string& text = merge.get_ref<const std::string&>();
      const auto space = text.find(' ');
      if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
        left = std::string_view(text).substr(0, space);
        right = std::string_view(text).substr(space + 1);
      }
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      left = merge[0].get_ref<const std::string&>();
      right = merge[1].get_ref<const std::string&>();
    }
    if (left.empty() || right.empty())
      fail(ErrorCode::format, "{}[{}]: expected \"left right\" or [\"left\", \"right\"]", field.path(), merges.size());
    merges.emplace_back(left, right);
  }
  return merges;
}

std::unique_ptr<const Model> read_bpe(const JsonField& field, TokenizerParts& parts) {
  read_vocabulary(field.at("vocab"), *parts.vocabulary, parts.label);
  BpeOptions options;
  options.unknown_token = field.string_or_empty("unk_token");
  if (!options.unknown_token.empty()) options.unknown = parts.vocabulary->find(options.unknown_token);
  options.fuse_unknown = field.boolean_or("fuse_unk", false);
  options.byte_fallback = field.boolean_or("byte_fallback", false);
  options.ignore_merges = field.boolean_or("ignore_merges", false);
  options.prefix = field.string_or_empty("continuing_subword_prefix");
  options.suffix = field.string_or_empty("end_of_word_suffix");
  options.byte_mode = parts.pre_tokenizer.ends_in_byte_level() && options.prefix.empty() && options.suffix.empty() &&
                      !options.byte_fallback;
  if (options.byte_mode) parts.pre_tokenizer.leave_bytes_raw();
  return std::make_unique<Bpe>(*parts.vocabulary, read_merges(field.at("merges")), std::move(options), parts.label);
}

UnknownToken read_unknown(const JsonField& field, const Vocabulary& vocabulary) {
  UnknownToken unknown;
  unknown.name = field.at("unk_token").string();
  unknown.id = vocabulary.find(unknown.name);
  return unknown;
}

std::unique_ptr<const Model> read_word_piece(const JsonField& field, TokenizerParts& parts) {
  read_vocabulary(field.at("vocab"), *parts.vocabulary, parts.label);
  const auto longest = field.find("max_input_chars_per_word");
  return std::make_unique<WordPiece>(*parts.vocabulary, field.at("continuing_subword_prefix").string(),
                                     read_unknown(field, *parts.vocabulary), longest ? longest->integer() : 100);
}

std::unique_ptr<const Model> read_word_level(const JsonField& field, TokenizerParts& parts) {
  read_vocabulary(field.at("vocab"), *parts.vocabulary, parts.label);
  return std::make_unique<WordLevel>(*parts.vocabulary, read_unknown(field, *parts.vocabulary));
}

std::unique_ptr<const Model> read_unigram(const JsonField& field, TokenizerParts& parts) {
  std::vector<UnigramPiece> pieces;
  for (const auto& element : field.at("vocab").elements()) {
    const auto pair = element.elements();
    if (pair.size() != 2) fail(ErrorCode::format, "{}: expected [piece, score]", element.path());
    parts.vocabulary->add(pair[0].string(), pieces.size(), parts.label);
    pieces.push_back({pair[1].number(), true, false});
  }
  UnigramOptions options;
  options.byte_fallback = field.boolean_or("byte_fallback", false);
  if (const auto unknown = field.find("unk_id")) {
    if (unknown->integer() >= pieces.size())
      fail(ErrorCode::format, "{}: {} is not one of the {} pieces", unknown->path(), unknown->integer(), pieces.size());
    options.unknown = static_cast<std::uint32_t>(unknown->integer());
  }
  return std::make_unique<Unigram<double>>(*parts.vocabulary, pieces, options, parts.label);
}

/// Files before version 0.10 leave the type out.
std::string model_type(const JsonField& field) {
  if (const auto type = field.find("type")) return type->string();
  if (field.find("merges")) return "BPE";
  if (field.find("continuing_subword_prefix")) return "WordPiece";
  return field.at("vocab").value().is_array() ? "Unigram" : "WordLevel";
}

std::unique_ptr<const Model> read_model(const JsonField& field, TokenizerParts& parts) {
  const std::string type = model_type(field);
  if (type == "BPE") return read_bpe(field, parts);
  if (type == "WordPiece") return read_word_piece(field, parts);
  if (type == "WordLevel") return read_word_level(field, parts);
  if (type == "Unigram") return read_unigram(field, parts);
  fail(ErrorCode::unsupported, "{}: the type \"{}\" is not known here; known are BPE, WordPiece, WordLevel, Unigram",
       field.path(), printable(type));
}

AddedToken read_added_token(const JsonField& field, std::uint64_t id) {
  if (id >= limits::vocabulary)
    fail(ErrorCode::format, "{}: token id {} is above the limit of {}", field.path(), id, limits::vocabulary - 1);
  AddedToken token;
  token.id = static_cast<std::uint32_t>(id);
  token.content = field.at("content").string();
  token.single_word = field.boolean_or("single_word", false);
  token.lstrip = field.boolean_or("lstrip", false);
  token.rstrip = field.boolean_or("rstrip", false);
  token.special = field.boolean_or("special", false);
  token.normalized = field.boolean_or("normalized", !token.special);
  return token;
}

/// tokenizer_config.json repeats the added tokens, keyed by id, and may have more; it has the last word.
void read_added_tokens_decoder(const JsonField& field, TokenizerParts& parts) {
  if (!field.value().is_object()) fail(ErrorCode::format, "{}: expected an object", field.path());
  for (const auto& [key, value] : field.value().items()) {
    std::uint64_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc{} || end != key.data() + key.size())
      fail(ErrorCode::format, "{}: the key \"{}\" is not a token id", field.path(), printable(key));
    parts.add_token(read_added_token(JsonField(value, fmt::format("{}.{}", field.path(), key)), id));
  }
}

/// A token named in tokenizer_config.json as a string or as an object with "content".
std::optional<std::uint32_t> read_named_token(const JsonField& config, const char* name, bool required,
                                              const TokenizerParts& parts) {
  const auto field = config.find(name);
  if (!field) return std::nullopt;
  const std::string& content = field->value().is_object() ? field->at("content").string() : field->string();
  const auto id = parts.find(content);
  if (!id && required)
    fail(ErrorCode::format, "{}: the token \"{}\" is not in the vocabulary", field->path(), printable(content));
  return id;
}

/// add_bos_token and add_eos_token, where given, decide over the post-processor.
void apply_add_flag(const JsonField& config, const char* name, std::optional<std::uint32_t> id,
                    std::vector<std::uint32_t>& ids, bool at_front) {
  const auto flag = config.find(name);
  if (!flag || !id) return;
  const bool present = !ids.empty() && (at_front ? ids.front() : ids.back()) == *id;
  if (flag->boolean() == present) return;
  if (present) {
    ids.erase(at_front ? ids.begin() : ids.end() - 1);
  } else {
    ids.insert(at_front ? ids.begin() : ids.end(), *id);
  }
}

void read_config(const JsonField& config, TokenizerParts& parts) {
  if (const auto added = config.find("added_tokens_decoder")) read_added_tokens_decoder(*added, parts);
  parts.ids.bos = read_named_token(config, "bos_token", true, parts);
  parts.ids.eos = read_named_token(config, "eos_token", true, parts);
  parts.ids.unk = read_named_token(config, "unk_token", false, parts);
  parts.ids.pad = read_named_token(config, "pad_token", false, parts);
  apply_add_flag(config, "add_bos_token", parts.ids.bos, parts.post_processor.before, true);
  apply_add_flag(config, "add_eos_token", parts.ids.eos, parts.post_processor.after, false);
}

void check_ids(const std::vector<std::uint32_t>& ids, const TokenizerParts& parts) {
  for (const std::uint32_t id : ids)
    if (!parts.contains(id))
      fail(ErrorCode::format, "{}: the post-processor adds token {}, which does not exist", parts.label, id);
}

std::string digest_of(std::string_view tokenizer, std::string_view config) {
  Sha256 sha;
  sha.update(fmt::format("tokenizer.json {}\n", tokenizer.size())).update(tokenizer);
  sha.update(fmt::format("tokenizer_config.json {}\n", config.size())).update(config);
  return "sha256:" + sha.hex();
}

TokenizerParts read_parts(std::string_view tokenizer_json, std::string_view tokenizer_config_json,
                          std::string_view label) {
  const nlohmann::json document = parse_json_sorted(tokenizer_json, label);
  const JsonField root(document, fmt::format("{}: ", label));
  TokenizerParts parts;
  parts.label = label;
  parts.source = "tokenizer.json";
  parts.digest = digest_of(tokenizer_json, tokenizer_config_json);
  parts.normalizer = read_normalizer(root.find("normalizer"));
  parts.pre_tokenizer = read_pre_tokenizer(root.find("pre_tokenizer"), label);
  parts.decoder = read_decoder(root.find("decoder"), label);
  parts.post_processor = read_post_processor(root.find("post_processor"));
  parts.model = read_model(root.at("model"), parts);
  if (const auto added = root.find("added_tokens"))
    for (const auto& token : added->elements()) parts.add_token(read_added_token(token, token.at("id").integer()));
  if (!tokenizer_config_json.empty()) {
    const std::string config_label = fmt::format("{} (tokenizer_config.json)", label);
    const nlohmann::json config = parse_json_sorted(tokenizer_config_json, config_label);
    read_config(JsonField(config, config_label + ": "), parts);
  }
  check_ids(parts.post_processor.before, parts);
  check_ids(parts.post_processor.after, parts);
  parts.build_added_sets();
  return parts;
}

}  // namespace
}  // namespace candor::text

namespace candor {

std::unique_ptr<Tokenizer> load_tokenizer_json(std::string_view tokenizer_json, std::string_view tokenizer_config_json,
                                               std::string_view label) {
  return std::make_unique<Tokenizer>(text::read_parts(tokenizer_json, tokenizer_config_json, label));
}

}  // namespace candor
