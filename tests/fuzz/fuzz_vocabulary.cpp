// Valid tokenizers with one or two texts or numbers changed that carry meaning: the spelling of tokens, merges, scores,
// types and ids, in GGUF's keys and in tokenizer.json. They load or are refused, and what loads encodes and decodes.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"
#include "choices.h"
#include "formats/gguf_writer.h"
#include "text/tokenizer.h"

namespace candor {
namespace {

/// Texts that vocabularies give a meaning to, and ones that none should hold.
std::string telling_text(Choices& choices) {
  static const std::vector<std::string> kTelling = {"",
                                                    " ",
                                                    "\xe2\x96\x81",
                                                    "\xe2\x96\x81\xe2\x96\x81",
                                                    "<0x-1>",
                                                    "<0xZZ>",
                                                    "<0x00>",
                                                    "<0xFF>",
                                                    "<0x100>",
                                                    "<s>",
                                                    "</s>",
                                                    "\xff",
                                                    "\xc4\xa0",
                                                    "a",
                                                    "ab",
                                                    "b a",
                                                    "a  b",
                                                    "##",
                                                    "##ab",
                                                    "[UNK]",
                                                    "\n",
                                                    std::string("\0", 1),
                                                    "a b c",
                                                    " a",
                                                    "a ",
                                                    "\xe4\xb8"};
  const std::size_t choice = choices.below(kTelling.size() + 1);
  return choice < kTelling.size() ? kTelling[choice] : std::string(choices.below(5000), 'a');
}

struct Vocabulary {
  std::string model, pre;
  std::vector<std::string> tokens, merges;
  std::vector<float> scores;
  std::vector<std::int32_t> types;
};

std::vector<Vocabulary> valid_vocabularies() {
  Vocabulary pieces{"llama", "", {"<unk>", "<s>", "</s>"}, {}, {0, 0, 0}, {2, 3, 3}};
  for (int byte = 0; byte < 256; ++byte) {
    pieces.tokens.push_back(fmt::format("<0x{:02X}>", byte));
    pieces.scores.push_back(0);
    pieces.types.push_back(6);
  }
  for (const char* piece : {"\xe2\x96\x81", "H", "e", "l", "o", "He", "ll", "llo", "Hello", "\xe2\x96\x81w"}) {
    pieces.tokens.emplace_back(piece);
    pieces.scores.push_back(-static_cast<float>(pieces.scores.size()));
    pieces.types.push_back(1);
  }
  Vocabulary bytes{"gpt2",
                   "gpt-2",
                   {"H", "e", "l", "o", "\xc4\xa0", "He", "ll", "llo", "Hello", "<s>"},
                   {"H e", "l l", "ll o", "He llo"},
                   {},
                   {1, 1, 1, 1, 1, 1, 1, 1, 1, 3}};
  Vocabulary words{"bert", "", {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "\xe2\x96\x81hello", "\xe2\x96\x81w", "orld"},
                   {},     {}, {3, 3, 3, 3, 1, 1, 1}};
  return {pieces, bytes, words};
}

GgufPairs perturbed_keys(Choices& choices) {
  static const std::vector<Vocabulary> valid = valid_vocabularies();
  Vocabulary chosen = valid[choices.below(valid.size())];
  GgufPairs ids;
  const std::size_t changes = 1 + choices.below(2);
  for (std::size_t i = 0; i < changes; ++i) {
    static constexpr const char* kIds[] = {"bos", "eos", "unknown", "padding", "seperator", "cls", "mask", "eot"};
    switch (choices.below(7)) {
      case 0:
        chosen.tokens[choices.below(chosen.tokens.size())] = telling_text(choices);
        break;
      case 1:
        if (!chosen.merges.empty()) chosen.merges[choices.below(chosen.merges.size())] = telling_text(choices);
        break;
      case 2:
        if (!chosen.scores.empty())
          chosen.scores[choices.below(chosen.scores.size())] =
              std::bit_cast<float>(static_cast<std::uint32_t>(choices.number(4)));
        break;
      case 3:
        if (!chosen.types.empty())
          chosen.types[choices.below(chosen.types.size())] = static_cast<std::int32_t>(choices.value());
        break;
      case 4:
        ids.set_u32(fmt::format("tokenizer.ggml.{}_token_id", kIds[choices.below(std::size(kIds))]),
                    static_cast<std::uint32_t>(choices.value()));
        break;
      case 5:
        chosen.tokens.resize(choices.below(chosen.tokens.size() + 3));
        if (chosen.tokens.empty()) chosen.tokens.emplace_back();
        break;
      default:
        ids.set_boolean(choices.below(2) == 0 ? "tokenizer.ggml.add_bos_token" : "tokenizer.ggml.add_space_prefix",
                        choices.below(2) == 0);
    }
  }
  ids.set_string("tokenizer.ggml.model", chosen.model);
  if (!chosen.pre.empty()) ids.set_string("tokenizer.ggml.pre", chosen.pre);
  ids.set_strings("tokenizer.ggml.tokens", chosen.tokens);
  if (!chosen.merges.empty()) ids.set_strings("tokenizer.ggml.merges", chosen.merges);
  if (!chosen.scores.empty()) ids.set_f32s("tokenizer.ggml.scores", chosen.scores);
  ids.set_i32s("tokenizer.ggml.token_type", chosen.types);
  return ids;
}

Json valid_tokenizer_json() {
  return parse_json(R"({
    "added_tokens": [{"id": 9, "content": "<s>", "single_word": false, "lstrip": true, "rstrip": false,
                      "normalized": false, "special": true}],
    "normalizer": {"type": "Replace", "pattern": {"String": "x"}, "content": "y"},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
    "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
                       "special_tokens": {"<s>": {"id": "<s>", "ids": [9], "tokens": ["<s>"]}}},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "unk_token": null, "byte_fallback": false, "ignore_merges": false,
              "vocab": {"H": 0, "e": 1, "l": 2, "o": 3, "Ġ": 4, "He": 5, "ll": 6, "llo": 7, "Hello": 8},
              "merges": [["H", "e"], ["l", "l"], ["ll", "o"], ["He", "llo"]]}})",
                    "valid");
}

void use(const Tokenizer& tokenizer) {
  const auto ids = tokenizer.encode("Hello,  world! 123 \xe4\xb8\xad <s>\n");
  (void)tokenizer.decode(ids);
  for (std::uint32_t id = 0; id < std::min<std::uint32_t>(tokenizer.vocabulary_size(), 300); ++id)
    (void)tokenizer.token_bytes(id);
}

void run(Choices& choices) {
  if (choices.below(3) != 0) {
    const std::string file = layout_gguf("f", perturbed_keys(choices), {}).files.front().header;
    use(*load_tokenizer_gguf(parse_gguf(std::as_bytes(std::span(file)), "f").metadata, "f"));
    return;
  }
  static const Json valid = valid_tokenizer_json();
  Json changed = valid;
  const std::size_t changes = 1 + choices.below(2);
  for (std::size_t i = 0; i < changes; ++i) {
    std::size_t n = choices.below(64);
    const bool text = choices.below(2) == 0;
    if (!text)
      perturb_leaf(changed, 64, choices);
    else if (Json* leaf = find_leaf(changed, n); leaf && leaf->is_string())
      *leaf = telling_text(choices);
  }
  use(*load_tokenizer_json(changed.dump(-1, ' ', false, Json::error_handler_t::replace), "", "f"));
}

}  // namespace
}  // namespace candor

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  candor::Choices choices(data, size);
  try {
    candor::run(choices);
  } catch (const candor::Error&) {
  }
  return 0;
}
