#include "text/tokenizer_json_stages.h"

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/limits.h"
#include "text/base64.h"

namespace candor::text {
namespace {

template <typename Reader>
struct Component {
  std::string_view type;
  Reader read;
};

/// Finds the reader of a component by its type.
template <typename Reader, std::size_t N>
const Reader& reader_of(const std::array<Component<Reader>, N>& known, const JsonField& field) {
  const std::string& type = field.at("type").string();
  std::string names;
  for (const auto& component : known) {
    if (component.type == type) return component.read;
    names += names.empty() ? "" : ", ";
    names += component.type;
  }
  fail(ErrorCode::unsupported, "{}: the type \"{}\" is not known here; known are {}", field.path(), printable(type),
       names);
}

/// A pattern given as {"String": …} or {"Regex": …}.
Pattern read_pattern(const JsonField& field) {
  if (const auto text = field.find("String")) return Pattern::literal(text->string());
  if (const auto regex = field.find("Regex")) return Pattern::regex(regex->string(), regex->path());
  fail(ErrorCode::format, "{}: expected {{\"String\": …}} or {{\"Regex\": …}}", field.path());
}

SplitBehavior read_behavior(const JsonField& field) {
  static constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors{
      {{"Removed", SplitBehavior::removed},
       {"Isolated", SplitBehavior::isolated},
       {"MergedWithPrevious", SplitBehavior::merged_with_previous},
       {"MergedWithNext", SplitBehavior::merged_with_next},
       {"Contiguous", SplitBehavior::contiguous}}};
  for (const auto& [name, behavior] : kBehaviors)
    if (name == field.string()) return behavior;
  fail(ErrorCode::format,
       "{}: the behavior \"{}\" is not one of Removed, Isolated, MergedWithPrevious, MergedWithNext, "
       "Contiguous",
       field.path(), printable(field.string()));
}

// Normalizers.

using NormalizerSteps = std::vector<NormalizerStep>;
using NormalizerReader = void (*)(const JsonField&, NormalizerSteps&);
void read_normalizer_steps(const JsonField& field, NormalizerSteps& steps);

template <unicode::Form form>
void read_form(const JsonField&, NormalizerSteps& steps) {
  steps.emplace_back(UnicodeForm{form});
}

template <typename Step>
void read_plain(const JsonField&, NormalizerSteps& steps) {
  steps.emplace_back(Step{});
}

void read_bert_normalizer(const JsonField& field, NormalizerSteps& steps) {
  BertNormalizer step;
  step.clean_text = field.boolean_or("clean_text", true);
  step.space_ideographs = field.boolean_or("handle_chinese_chars", true);
  step.lowercase = field.boolean_or("lowercase", true);
  step.strip_accents = field.boolean_or("strip_accents", step.lowercase);
  steps.emplace_back(step);
}

void read_strip(const JsonField& field, NormalizerSteps& steps) {
  steps.emplace_back(StripWhiteSpace{field.at("strip_left").boolean(), field.at("strip_right").boolean()});
}

void read_prepend(const JsonField& field, NormalizerSteps& steps) {
  steps.emplace_back(Prepend{field.at("prepend").string()});
}

void read_replace(const JsonField& field, NormalizerSteps& steps) {
  steps.emplace_back(Replace{read_pattern(field.at("pattern")), field.at("content").string()});
}

void read_precompiled(const JsonField& field, NormalizerSteps& steps) {
  const auto blob = field.find("precompiled_charsmap");
  if (!blob) return;  // null: the identity
  steps.emplace_back(Precompiled{Charsmap(decode_base64(blob->string(), blob->path()), blob->path())});
}

void read_normalizer_sequence(const JsonField& field, NormalizerSteps& steps) {
  for (const auto& element : field.at("normalizers").elements()) read_normalizer_steps(element, steps);
}

constexpr std::array<Component<NormalizerReader>, 14> kNormalizers{{{"NFC", read_form<unicode::Form::nfc>},
                                                                    {"NFD", read_form<unicode::Form::nfd>},
                                                                    {"NFKC", read_form<unicode::Form::nfkc>},
                                                                    {"NFKD", read_form<unicode::Form::nfkd>},
                                                                    {"Lowercase", read_plain<Lowercase>},
                                                                    {"StripAccents", read_plain<StripAccents>},
                                                                    {"Nmt", read_plain<Nmt>},
                                                                    {"ByteLevel", read_plain<SpellBytes>},
                                                                    {"BertNormalizer", read_bert_normalizer},
                                                                    {"Strip", read_strip},
                                                                    {"Prepend", read_prepend},
                                                                    {"Replace", read_replace},
                                                                    {"Precompiled", read_precompiled},
                                                                    {"Sequence", read_normalizer_sequence}}};

void read_normalizer_steps(const JsonField& field, NormalizerSteps& steps) {
  reader_of(kNormalizers, field)(field, steps);
}

// Pre-tokenizers.

using PreTokenizerSteps = std::vector<PreTokenizerStep>;
using PreTokenizerReader = void (*)(const JsonField&, PreTokenizerSteps&);
void read_pre_tokenizer_steps(const JsonField& field, PreTokenizerSteps& steps);

Metaspace::Scheme read_scheme(const JsonField& field) {
  const auto scheme = field.find("prepend_scheme");
  const bool add = field.boolean_or("add_prefix_space", true);
  if (!scheme) return add ? Metaspace::Scheme::always : Metaspace::Scheme::never;
  const std::string& name = scheme->string();
  if (name == "never") return Metaspace::Scheme::never;
  if (!add) fail(ErrorCode::format, "{}: \"{}\" contradicts add_prefix_space: false", scheme->path(), printable(name));
  if (name == "always") return Metaspace::Scheme::always;
  if (name == "first") return Metaspace::Scheme::first;
  fail(ErrorCode::format, "{}: \"{}\" is not one of always, first, never", scheme->path(), printable(name));
}

void read_metaspace(const JsonField& field, PreTokenizerSteps& steps) {
  steps.emplace_back(
      Metaspace{field.at("replacement").character(), read_scheme(field), field.boolean_or("split", true)});
}

void read_byte_level(const JsonField& field, PreTokenizerSteps& steps) {
  ByteLevelSplit step;
  step.add_prefix_space = field.boolean_or("add_prefix_space", true);
  if (field.boolean_or("use_regex", true)) step.pattern = gpt2_pattern();
  steps.emplace_back(std::move(step));
}

void read_split(const JsonField& field, PreTokenizerSteps& steps) {
  steps.emplace_back(PatternSplit{read_pattern(field.at("pattern")), read_behavior(field.at("behavior")),
                                  field.boolean_or("invert", false)});
}

void read_whitespace(const JsonField& field, PreTokenizerSteps& steps) {
  static constexpr std::string_view kWords =
      R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}\t-\r \x{85}\p{Z}]+)";
  steps.emplace_back(PatternSplit{Pattern::pcre2(kWords, field.path()), SplitBehavior::removed, true});
}

void read_whitespace_split(const JsonField&, PreTokenizerSteps& steps) {
  steps.emplace_back(CharacterSplit{CharacterSplit::Class::white_space, SplitBehavior::removed});
}

void read_punctuation(const JsonField& field, PreTokenizerSteps& steps) {
  const auto behavior = field.find("behavior");
  steps.emplace_back(CharacterSplit{CharacterSplit::Class::punctuation,
                                    behavior ? read_behavior(*behavior) : SplitBehavior::isolated});
}

void read_digits(const JsonField& field, PreTokenizerSteps& steps) {
  const bool individual = field.boolean_or("individual_digits", false);
  steps.emplace_back(
      CharacterSplit{CharacterSplit::Class::number, individual ? SplitBehavior::isolated : SplitBehavior::contiguous});
}

void read_bert_pre_tokenizer(const JsonField&, PreTokenizerSteps& steps) {
  steps.emplace_back(CharacterSplit{CharacterSplit::Class::white_space, SplitBehavior::removed});
  steps.emplace_back(CharacterSplit{CharacterSplit::Class::punctuation, SplitBehavior::isolated});
}

void read_delimiter_split(const JsonField& field, PreTokenizerSteps& steps) {
  std::string delimiter;
  unicode::append(delimiter, field.at("delimiter").character());
  steps.emplace_back(PatternSplit{Pattern::literal(delimiter), SplitBehavior::removed, false});
}

void read_fixed_length(const JsonField& field, PreTokenizerSteps& steps) {
  const auto length = field.at("length");
  if (length.integer() == 0) fail(ErrorCode::format, "{}: pieces of no characters", length.path());
  steps.emplace_back(FixedLengthSplit{length.integer()});
}

void read_pre_tokenizer_sequence(const JsonField& field, PreTokenizerSteps& steps) {
  for (const auto& element : field.at("pretokenizers").elements()) read_pre_tokenizer_steps(element, steps);
}

constexpr std::array<Component<PreTokenizerReader>, 11> kPreTokenizers{{{"ByteLevel", read_byte_level},
                                                                        {"Split", read_split},
                                                                        {"Metaspace", read_metaspace},
                                                                        {"Whitespace", read_whitespace},
                                                                        {"WhitespaceSplit", read_whitespace_split},
                                                                        {"Punctuation", read_punctuation},
                                                                        {"Digits", read_digits},
                                                                        {"BertPreTokenizer", read_bert_pre_tokenizer},
                                                                        {"CharDelimiterSplit", read_delimiter_split},
                                                                        {"FixedLength", read_fixed_length},
                                                                        {"Sequence", read_pre_tokenizer_sequence}}};

void read_pre_tokenizer_steps(const JsonField& field, PreTokenizerSteps& steps) {
  reader_of(kPreTokenizers, field)(field, steps);
}

// Post-processors.

using PostProcessorReader = PostProcessor (*)(const JsonField&);
PostProcessor read_one_post_processor(const JsonField& field);

std::uint32_t read_id(const JsonField& field) {
  const std::uint64_t id = field.integer();
  if (id >= limits::vocabulary)
    fail(ErrorCode::format, "{}: token id {} is above the limit of {}", field.path(), id, limits::vocabulary - 1);
  return static_cast<std::uint32_t>(id);
}

/// A token given as ["[SEP]", 102].
std::uint32_t read_token_pair(const JsonField& field) {
  const auto elements = field.elements();
  if (elements.size() != 2) fail(ErrorCode::format, "{}: expected [token, id]", field.path());
  return read_id(elements[1]);
}

PostProcessor read_cls_sep(const JsonField& field) {
  return {{read_token_pair(field.at("cls"))}, {read_token_pair(field.at("sep"))}};
}

PostProcessor read_byte_level_processor(const JsonField&) {
  return {};
}  // concerns offsets only

PostProcessor read_template(const JsonField& field) {
  PostProcessor result;
  bool seen_sequence = false;
  for (const auto& piece : field.at("single").elements()) {
    if (const auto sequence = piece.find("Sequence")) {
      if (seen_sequence || sequence->at("id").string() != "A")
        fail(ErrorCode::unsupported, "{}: a template of one sequence must hold sequence A once", piece.path());
      seen_sequence = true;
      continue;
    }
    const std::string& name = piece.at("SpecialToken").at("id").string();
    const JsonField token = field.at("special_tokens").at(name.c_str());
    auto& ids = seen_sequence ? result.after : result.before;
    for (const auto& id : token.at("ids").elements()) ids.push_back(read_id(id));
  }
  if (!seen_sequence) fail(ErrorCode::format, "{}: the template leaves out the text (sequence A)", field.path());
  return result;
}

PostProcessor read_post_processor_sequence(const JsonField& field) {
  PostProcessor result;
  for (const auto& element : field.at("processors").elements()) {
    PostProcessor outer = read_one_post_processor(element);
    result.before.insert(result.before.begin(), outer.before.begin(), outer.before.end());
    result.after.insert(result.after.end(), outer.after.begin(), outer.after.end());
  }
  return result;
}

constexpr std::array<Component<PostProcessorReader>, 5> kPostProcessors{{{"TemplateProcessing", read_template},
                                                                         {"BertProcessing", read_cls_sep},
                                                                         {"RobertaProcessing", read_cls_sep},
                                                                         {"ByteLevel", read_byte_level_processor},
                                                                         {"Sequence", read_post_processor_sequence}}};

PostProcessor read_one_post_processor(const JsonField& field) {
  return reader_of(kPostProcessors, field)(field);
}

// Decoders.

using DecoderSteps = std::vector<DecoderStep>;
using DecoderReader = void (*)(const JsonField&, DecoderSteps&);
void read_decoder_steps(const JsonField& field, DecoderSteps& steps);

template <typename Step>
void read_plain_decoder(const JsonField&, DecoderSteps& steps) {
  steps.emplace_back(Step{});
}

void read_metaspace_decoder(const JsonField& field, DecoderSteps& steps) {
  steps.emplace_back(
      MetaspaceDecode{field.at("replacement").character(), read_scheme(field) != Metaspace::Scheme::never});
}

void read_word_piece_decoder(const JsonField& field, DecoderSteps& steps) {
  steps.emplace_back(WordPieceDecode{field.at("prefix").string(), field.boolean_or("cleanup", true)});
}

void read_replace_decoder(const JsonField& field, DecoderSteps& steps) {
  steps.emplace_back(ReplaceDecode{read_pattern(field.at("pattern")), field.at("content").string()});
}

void read_strip_decoder(const JsonField& field, DecoderSteps& steps) {
  steps.emplace_back(
      StripDecode{field.at("content").character(), field.at("start").integer(), field.at("stop").integer()});
}

void read_decoder_sequence(const JsonField& field, DecoderSteps& steps) {
  for (const auto& element : field.at("decoders").elements()) read_decoder_steps(element, steps);
}

constexpr std::array<Component<DecoderReader>, 8> kDecoders{{{"ByteLevel", read_plain_decoder<ByteLevelDecode>},
                                                             {"ByteFallback", read_plain_decoder<ByteFallbackDecode>},
                                                             {"Fuse", read_plain_decoder<FuseDecode>},
                                                             {"Metaspace", read_metaspace_decoder},
                                                             {"WordPiece", read_word_piece_decoder},
                                                             {"Replace", read_replace_decoder},
                                                             {"Strip", read_strip_decoder},
                                                             {"Sequence", read_decoder_sequence}}};

void read_decoder_steps(const JsonField& field, DecoderSteps& steps) {
  reader_of(kDecoders, field)(field, steps);
}

}  // namespace

Normalizer read_normalizer(const std::optional<JsonField>& field) {
  NormalizerSteps steps;
  if (field) read_normalizer_steps(*field, steps);
  return Normalizer(std::move(steps));
}

PreTokenizer read_pre_tokenizer(const std::optional<JsonField>& field, std::string_view label) {
  PreTokenizerSteps steps;
  if (field) read_pre_tokenizer_steps(*field, steps);
  return PreTokenizer(std::move(steps), label);
}

PostProcessor read_post_processor(const std::optional<JsonField>& field) {
  return field ? read_one_post_processor(*field) : PostProcessor{};
}

Decoder read_decoder(const std::optional<JsonField>& field, std::string_view label) {
  DecoderSteps steps;
  if (field) {
    read_decoder_steps(*field, steps);
  } else {
    steps.emplace_back(SpaceJoinDecode{});
  }
  return Decoder(std::move(steps), label);
}

}  // namespace candor::text
