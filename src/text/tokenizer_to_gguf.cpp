#include "text/tokenizer_to_gguf.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/json.h"
#include "text/gguf_pre_tokenizers.h"
#include "text/json_fields.h"
#include "text/sentencepiece_file.h"
#include "text/tokenizer_to_gguf_keys.h"

namespace candor {
namespace {

using text::GgufTokens;
using text::JsonField;
using text::PieceType;
using text::TokenizerKeys;

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// "<0x0A>", a token that stands for a byte.
bool is_byte_token(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with('>');
}

/// A tokenizer.json: byte-level BPE ("gpt2"), BPE over SentencePiece's pieces ("llama"), or WordPiece ("bert").
class JsonWriter {
 public:
  JsonWriter(TokenizerKeys& keys, const nlohmann::json& document)
      : keys_(keys), tokenizer_(keys.original()), root_(document, keys.label() + ": ") {
    if (const auto added = root_.find("added_tokens"))
      for (const JsonField& token : added->elements()) {
        if (token.boolean_or("single_word", false) || token.boolean_or("lstrip", false))
          keys_.refuse("the added token \"{}\" takes the white space before it, or only whole words",
                       printable(token.at("content").string()));
        if (token.boolean_or("rstrip", false)) space_takers_.insert(token.at("content").string());
        added_.insert(token.at("id").integer());
      }
    if (!space_takers_.empty()) name_as_phi3();
  }

  void write(std::uint64_t rows, std::span<const std::uint32_t> stop_tokens) {
    const JsonField model = root_.at("model");
    const std::string type = model.string_or_empty("type");
    if (type == "WordPiece") {
      write_word_piece(rows);
    } else if (type == "BPE" || (type.empty() && model.find("merges"))) {
      model.boolean_or("byte_fallback", false) ? write_pieces(model, rows) : write_byte_level(model, rows);
      keys_.put_ends();
    } else {
      keys_.refuse("the vocabulary is of type \"{}\"", type);
    }
    keys_.put_ids(stop_tokens);
    keys_.check();
  }

 private:
  /// Tokens that take the white space after them can be said of Phi-3 only, and by the model's name.
  void name_as_phi3() {
    for (std::uint32_t id = 0; id < tokenizer_.vocabulary_size(); ++id) {
      if (!tokenizer_.is_special(id) && !added_.contains(id)) continue;
      const std::string token(tokenizer_.token(id));
      if (space_takers_.contains(token) != text::phi3_takes_space_after(token))
        keys_.refuse("the added token \"{}\" {} the white space after it, unlike in Phi-3", printable(token),
                     space_takers_.contains(token) ? "takes" : "leaves");
    }
    const std::string name = keys_.pairs().string("general.name").value_or("");
    if (!text::is_phi3_name(name)) keys_.pairs().set_string("general.name", name.empty() ? "Phi-3" : "Phi-3 " + name);
  }

  // ---- byte-level BPE ----

  void write_byte_level(const JsonField& model, std::uint64_t rows) {
    if (!model.string_or_empty("continuing_subword_prefix").empty() ||
        !model.string_or_empty("end_of_word_suffix").empty())
      keys_.refuse("the vocabulary is not byte-level");
    keys_.pairs().set_string("tokenizer.ggml.model", "gpt2");
    const std::vector<std::string> patterns = read_patterns();
    const auto* known =
        text::find_gguf_pre_tokenizer(patterns, model.boolean_or("ignore_merges", false), normalizes_to_nfc());
    if (!known) keys_.refuse("words are cut by {}", fmt::join(patterns, " and then "));
    keys_.pairs().set_string("tokenizer.ggml.pre", known->name);
    keys_.put_tokens(tokens(), rows);
    std::vector<std::string> lines;
    for (const auto& [left, right] : merges(model)) lines.push_back(left + " " + right);
    keys_.pairs().set_strings("tokenizer.ggml.merges", lines);
  }

  bool normalizes_to_nfc() const {
    const auto normalizer = root_.find("normalizer");
    if (!normalizer) return false;
    const std::string type = normalizer->string_or_empty("type");
    if (type != "NFC") keys_.refuse("the normalizer is {}", type);
    return true;
  }

  /// The patterns of the pre-tokenizer's steps, the last of which spells bytes.
  std::vector<std::string> read_patterns() {
    const auto field = root_.find("pre_tokenizer");
    if (!field) keys_.refuse("there is no pre-tokenizer");
    std::vector<JsonField> steps{*field};
    if (field->string_or_empty("type") == "Sequence") steps = field->at("pretokenizers").elements();
    std::vector<std::string> patterns;
    for (std::size_t i = 0; i < steps.size(); ++i) read_step(steps[i], i + 1 == steps.size(), patterns);
    return patterns;
  }

  void read_step(const JsonField& step, bool last, std::vector<std::string>& patterns) {
    const std::string type = step.string_or_empty("type");
    if (type == "ByteLevel" && last) {
      if (step.boolean_or("use_regex", true)) patterns.emplace_back(kGpt2Pattern);
      keys_.pairs().set_boolean("tokenizer.ggml.add_space_prefix", step.boolean_or("add_prefix_space", true));
    } else if (type == "Digits" && !last && step.boolean_or("individual_digits", false)) {
      patterns.emplace_back(R"(\p{N})");
    } else if (type == "Split" && !last) {
      const auto regex = step.at("pattern").find("Regex");
      if (!regex || step.string_or_empty("behavior") != "Isolated" || step.boolean_or("invert", false))
        keys_.refuse("{} is no split by a regular expression into isolated pieces", step.path());
      patterns.push_back(regex->string());
    } else {
      keys_.refuse("the pre-tokenizer has a step {} as number {}", printable(type), patterns.size());
    }
  }

  // ---- SentencePiece's pieces ----

  /// Pieces merge by score where a tokenizer.json merges by rank: a piece's score is the first rank that makes it.
  void write_pieces(const JsonField& model, std::uint64_t rows) {
    keys_.pairs().set_string("tokenizer.ggml.model", "llama");
    GgufTokens out = tokens();
    std::unordered_map<std::string, float> scores;
    for (const auto& [left, right] : merges(model))
      scores.try_emplace(left + right, -static_cast<float>(scores.size()) - 1);
    const std::string unknown = model.string_or_empty("unk_token");
    for (std::size_t id = 0; id < out.tokens.size(); ++id) {
      const auto found = scores.find(out.tokens[id]);
      out.scores.push_back(found == scores.end() ? std::numeric_limits<float>::lowest() / 2 : found->second);
      if (is_byte_token(out.tokens[id])) out.types[id] = PieceType::byte;
      if (!unknown.empty() && out.tokens[id] == unknown) out.types[id] = PieceType::unknown;
    }
    keys_.put_tokens(std::move(out), rows);
    const std::vector<std::uint32_t> word = tokenizer_.encode("a", {.add_special = false});
    const bool prefix = !word.empty() && tokenizer_.token(word.front()).starts_with(text::kSpaceMark);
    keys_.pairs().set_boolean("tokenizer.ggml.add_space_prefix", prefix);
  }

  // ---- WordPiece ----

  /// GGUF marks the beginning of words where BERT marks continuations.
  void write_word_piece(std::uint64_t rows) {
    constexpr std::string_view kContinuation = "##";
    if (root_.at("model").string_or_empty("continuing_subword_prefix") != kContinuation)
      keys_.refuse("continuations are not marked by ##");
    GgufPairs& pairs = keys_.pairs();
    pairs.set_string("tokenizer.ggml.model", "bert");
    if (const auto normalizer = root_.find("normalizer")) {
      if (normalizer->string_or_empty("type") != "BertNormalizer")
        keys_.refuse("the normalizer is {}", normalizer->string_or_empty("type"));
      const bool lowercase = normalizer->boolean_or("lowercase", true);
      pairs.set_boolean("tokenizer.ggml.normalizer.lowercase", lowercase);
      pairs.set_boolean("tokenizer.ggml.normalizer.strip_accents", normalizer->boolean_or("strip_accents", lowercase));
    }
    GgufTokens out = tokens();
    for (std::size_t id = 0; id < out.tokens.size(); ++id) {
      std::string& token = out.tokens[id];
      if (token == "[UNK]") out.types[id] = PieceType::unknown;
      if (token.starts_with('[') && token.ends_with(']')) continue;
      if (token.starts_with(kContinuation)) {
        token.erase(0, kContinuation.size());
      } else if (!token.empty()) {
        token.insert(0, text::kSpaceMark);
      }
    }
    keys_.put_tokens(std::move(out), rows);
    const std::vector<std::uint32_t> ends = tokenizer_.encode("");
    if (ends.size() != 2) keys_.refuse("{} tokens are put around a text", ends.size());
    keys_.put_id("cls", ends[0]);
    keys_.put_id("seperator", ends[1]);  // as the format spells it
  }

  // ---- what all have ----

  /// Tokens as the vocabulary spells them; those that are added are control or user-defined ones.
  [[nodiscard]] GgufTokens tokens() const {
    GgufTokens out;
    for (std::uint32_t id = 0; id < tokenizer_.vocabulary_size(); ++id) {
      out.tokens.emplace_back(tokenizer_.token(id));
      PieceType type = PieceType::normal;
      if (tokenizer_.is_special(id)) {
        type = PieceType::control;
      } else if (added_.contains(id)) {
        type = PieceType::user_defined;
      }
      out.types.push_back(type);
    }
    return out;
  }

  static std::vector<std::pair<std::string, std::string>> merges(const JsonField& model) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const auto& merge : model.at("merges").value()) {
      if (merge.is_string()) {  // "left right", or the tokenizer would not have loaded
        const auto& line = merge.get_ref<const std::string&>();
        const auto space = line.find(' ', 1);
        out.emplace_back(line.substr(0, space), line.substr(space + 1));
      } else {
        out.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      }
    }
    return out;
  }

  TokenizerKeys& keys_;
  const Tokenizer& tokenizer_;
  JsonField root_;
  std::unordered_set<std::uint64_t> added_;
  std::unordered_set<std::string> space_takers_;  ///< added tokens that take the white space after them
};

/// A tokenizer.model: BPE by score ("llama") or unigram ("t5").
void write_sentencepiece(TokenizerKeys& keys, std::string_view model, std::uint64_t rows,
                         std::span<const std::uint32_t> stop_tokens) {
  const text::SentencePieceFile file = text::read_sentencepiece_file(model, keys.label());
  GgufPairs& pairs = keys.pairs();
  const bool unigram = file.kind == text::SentencePieceFile::Kind::unigram;
  if (file.white_space_is_suffix) keys.refuse("white space is a suffix");
  if (!unigram && !file.byte_fallback) keys.refuse("BPE without bytes for unknown characters");
  pairs.set_string("tokenizer.ggml.model", unigram ? "t5" : "llama");
  pairs.set_boolean("tokenizer.ggml.add_space_prefix", file.add_dummy_prefix);
  pairs.set_boolean("tokenizer.ggml.remove_extra_whitespaces", file.remove_extra_white_space);
  if (unigram && !file.charsmap.empty())
    pairs.set("tokenizer.ggml.precompiled_charsmap",
              {GgufType::array, GgufType::u8, file.charsmap.size(), std::as_bytes(std::span(file.charsmap))});
  GgufTokens tokens;
  tokens.tokens.assign(file.pieces.begin(), file.pieces.end());
  tokens.types = file.types;
  tokens.scores = file.scores;
  keys.put_tokens(std::move(tokens), rows);
  keys.put_ends();
  keys.put_ids(stop_tokens);
  keys.check();
}

}  // namespace

void put_gguf_tokenizer(GgufPairs& pairs, const ModelSource& source, std::uint64_t rows,
                        std::span<const std::uint32_t> stop_tokens) {
  if (source.tokenizer_json()) {
    const std::string label = (source.path() / "tokenizer.json").string();
    const auto tokenizer = load_tokenizer_json(*source.tokenizer_json(), source.tokenizer_config().value_or(""), label);
    TokenizerKeys keys(pairs, label, *tokenizer);
    const nlohmann::json document = parse_json_sorted(*source.tokenizer_json(), label);
    JsonWriter(keys, document).write(rows, stop_tokens);
  } else if (source.sentencepiece_model()) {
    const std::string label = (source.path() / "tokenizer.model").string();
    const std::string& model = *source.sentencepiece_model();
    const auto tokenizer = load_sentencepiece_model(std::as_bytes(std::span(model)), label);
    TokenizerKeys keys(pairs, label, *tokenizer);
    write_sentencepiece(keys, model, rows, stop_tokens);
  } else {
    pairs.set_string("tokenizer.ggml.model", "none");
  }
  if (source.chat_template()) pairs.set_string("tokenizer.chat_template", *source.chat_template());
}

}  // namespace candor
