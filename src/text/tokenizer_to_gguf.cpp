#include "text/tokenizer_to_gguf.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "formats/gguf.h"
#include "text/gguf_pre_tokenizers.h"
#include "text/json_fields.h"
#include "text/sentencepiece.h"
#include "text/tokenizer.h"

namespace candor {
namespace {

using text::JsonField;
using text::PieceType;

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Texts on which the written tokenizer must give the ids of the original.
constexpr std::array<std::string_view, 12> kProbes{
    "Hello, world!",
    " leading and trailing spaces  ",
    "tabs\tand\nlines\r\n\r\n  indented\n",
    "It's they'll I'VE 'tis 3.14159 1234567890 0x1F",
    "na\xc3\xafve caf\xc3\xa9 cafe\xcc\x81 \xc3\x85ngstr\xc3\xb6m",
    "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82, \xce\xba\xcf\x8c\xcf\x83\xce\xbc\xce\xb5",
    "\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c "
    "\xe3\x81\x93\xe3\x82\x93\xe3\x81\xab\xe3\x81\xa1\xe3\x81\xaf",
    "\xd8\xa7\xd9\x84\xd8\xb3\xd9\x84\xd8\xa7\xd9\x85 "
    "\xe0\xa4\xa8\xe0\xa4\xae\xe0\xa4\xb8\xe0\xa5\x8d\xe0\xa4\xa4\xe0\xa5\x87",
    "\xf0\x9f\x98\x80\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb \xe2\x80\x94 \xe2\x82\xac\xc2\xbd\xc2\xb2",
    "#include <vector>\nint main() { return a[i] != b->c; }  // x\n",
    "<|im_start|>user\nHi<|im_end|>\n<s></s>",
    "WHITE\xc2\xa0SPACE\xe2\x80\x83\xe3\x80\x80  \x7f"};

class TokenizerWriter {
 public:
  TokenizerWriter(GgufPairs& pairs, const ModelSource& source)
      : pairs_(pairs),
        label_((source.path() / "tokenizer.json").string()),
        document_(parse_json_sorted(*source.tokenizer_json(), label_)),
        root_(document_, label_ + ": "),
        tokenizer_(load_tokenizer_json(*source.tokenizer_json(), source.tokenizer_config().value_or(""), label_)) {}

  void write(std::uint64_t rows, std::span<const std::uint32_t> stop_tokens) {
    put_model();
    put_tokens(rows);
    put_merges();
    put_ends();
    put_ids(stop_tokens);
    check();
  }

 private:
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::unsupported, "{}: {}, which GGUF's keys cannot say", label_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  void put_model() {
    const JsonField model = root_.at("model");
    const std::string type = model.string_or_empty("type");
    if (type != "BPE" && !(type.empty() && model.find("merges"))) refuse("the vocabulary is of type \"{}\"", type);
    if (model.boolean_or("byte_fallback", false) || !model.string_or_empty("continuing_subword_prefix").empty() ||
        !model.string_or_empty("end_of_word_suffix").empty())
      refuse("the vocabulary is not byte-level");
    pairs_.set_string("tokenizer.ggml.model", "gpt2");
    const std::vector<std::string> patterns = read_patterns();
    const auto* known =
        text::find_gguf_pre_tokenizer(patterns, model.boolean_or("ignore_merges", false), normalizes_to_nfc());
    if (!known) refuse("words are cut by {}", fmt::join(patterns, " and then "));
    pairs_.set_string("tokenizer.ggml.pre", known->name);
  }

  bool normalizes_to_nfc() const {
    const auto normalizer = root_.find("normalizer");
    if (!normalizer) return false;
    const std::string type = normalizer->string_or_empty("type");
    if (type != "NFC") refuse("the normalizer is {}", type);
    return true;
  }

  /// The patterns of the pre-tokenizer's steps, the last of which spells bytes.
  std::vector<std::string> read_patterns() {
    const auto field = root_.find("pre_tokenizer");
    if (!field) refuse("there is no pre-tokenizer");
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
      pairs_.set_boolean("tokenizer.ggml.add_space_prefix", step.boolean_or("add_prefix_space", true));
    } else if (type == "Digits" && !last && step.boolean_or("individual_digits", false)) {
      patterns.emplace_back(R"(\p{N})");
    } else if (type == "Split" && !last) {
      const auto regex = step.at("pattern").find("Regex");
      if (!regex || step.string_or_empty("behavior") != "Isolated" || step.boolean_or("invert", false))
        refuse("{} is no split by a regular expression into isolated pieces", step.path());
      patterns.push_back(regex->string());
    } else {
      refuse("the pre-tokenizer has a step {} as number {}", printable(type), patterns.size());
    }
  }

  void put_tokens(std::uint64_t rows) {
    std::vector<std::string> tokens;
    std::vector<std::int32_t> types(rows, static_cast<std::int32_t>(PieceType::normal));
    if (tokenizer_->vocabulary_size() > rows)
      fail(ErrorCode::format, "{}: has {} tokens, but the model only {} rows for them", label_,
           tokenizer_->vocabulary_size(), rows);
    for (std::uint32_t id = 0; id < rows; ++id) {
      tokens.emplace_back(tokenizer_->token(id));
      if (!tokens.back().empty()) continue;
      tokens.back() = fmt::format("[PAD{}]", id);  // the name that converters give rows without a token
      types[id] = static_cast<std::int32_t>(PieceType::unused);
    }
    if (const auto added = root_.find("added_tokens"))
      for (const JsonField& token : added->elements()) {
        if (token.boolean_or("single_word", false) || token.boolean_or("lstrip", false) ||
            token.boolean_or("rstrip", false))
          refuse("the added token \"{}\" takes the white space around it", printable(token.at("content").string()));
      }
    for (std::uint32_t id = 0; id < rows; ++id)
      if (types[id] == static_cast<std::int32_t>(PieceType::normal) && is_added(id))
        types[id] =
            static_cast<std::int32_t>(tokenizer_->is_special(id) ? PieceType::control : PieceType::user_defined);
    pairs_.set_strings("tokenizer.ggml.tokens", tokens);
    pairs_.set_i32s("tokenizer.ggml.token_type", types);
  }

  bool is_added(std::uint32_t id) {
    if (added_.empty() && root_.find("added_tokens"))
      for (const JsonField& token : root_.at("added_tokens").elements()) added_.push_back(token.at("id").integer());
    return tokenizer_->is_special(id) || std::find(added_.begin(), added_.end(), id) != added_.end();
  }

  void put_merges() {
    std::vector<std::string> lines;
    for (const auto& merge : root_.at("model").at("merges").value()) {
      if (merge.is_string()) {
        lines.push_back(merge.get<std::string>());
      } else {  // a pair of strings, or the tokenizer would not have loaded
        lines.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
      }
    }
    pairs_.set_strings("tokenizer.ggml.merges", lines);
  }

  /// What is put around a text.
  void put_ends() {
    std::vector<std::uint32_t> ends = tokenizer_->encode("");
    const bool bos = tokenizer_->adds_bos();
    if (bos) ends.erase(ends.begin());
    const bool eos = !ends.empty() && tokenizer_->eos_id() == ends.back();
    if (eos) ends.pop_back();
    if (!ends.empty()) refuse("{} other tokens than BOS and EOS are put around a text", ends.size());
    pairs_.set_boolean("tokenizer.ggml.add_bos_token", bos);
    pairs_.set_boolean("tokenizer.ggml.add_eos_token", eos);
  }

  void put_ids(std::span<const std::uint32_t> stop_tokens) {
    const auto put = [&](std::string_view name, std::optional<std::uint32_t> id) {
      if (id) pairs_.set_u32(fmt::format("tokenizer.ggml.{}_token_id", name), *id);
    };
    put("bos", tokenizer_->bos_id());
    put("padding", tokenizer_->pad_id());
    put("unknown", tokenizer_->unk_id());
    if (stop_tokens.size() > 2) refuse("{} tokens end an answer", stop_tokens.size());
    put("eos", stop_tokens.empty() ? tokenizer_->eos_id() : stop_tokens[0]);
    if (stop_tokens.size() > 1) put("eot", stop_tokens[1]);
  }

  /// Reads the keys back. Texts that the original refuses to encode are no evidence and are passed over.
  void check() const {
    const std::string file = layout_gguf("tokenizer", pairs_, {}).files.front().header;
    const GgufContent content = parse_gguf(std::as_bytes(std::span(file)), label_);
    const auto written = load_tokenizer_gguf(content.metadata, label_);
    for (const std::string_view probe : kProbes)
      if (written->encode(probe) != tokenizer_->encode(probe))
        refuse("\"{}\" gets other tokens from what was written", printable(probe));
  }

  GgufPairs& pairs_;
  std::string label_;
  nlohmann::json document_;
  JsonField root_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::uint64_t> added_;
};

}  // namespace

void put_gguf_tokenizer(GgufPairs& pairs, const ModelSource& source, std::uint64_t rows,
                        std::span<const std::uint32_t> stop_tokens) {
  if (source.tokenizer_json()) {
    TokenizerWriter(pairs, source).write(rows, stop_tokens);
  } else if (source.sentencepiece_model()) {
    fail(ErrorCode::unsupported, "{}: SentencePiece vocabularies are not written to GGUF yet; convert to an artifact",
         (source.path() / "tokenizer.model").string());
  } else {
    pairs.set_string("tokenizer.ggml.model", "none");
  }
  if (source.chat_template()) pairs.set_string("tokenizer.chat_template", *source.chat_template());
}

}  // namespace candor
