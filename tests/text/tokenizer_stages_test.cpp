// The parts of a tokenizer on their own: merging, patterns, Unicode, tries, protocol buffers, SentencePiece's rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <random>

#include "base/error.h"
#include "text/added_tokens.h"
#include "text/base64.h"
#include "text/byte_level.h"
#include "text/byte_trie.h"
#include "text/charsmap.h"
#include "text/gguf_pre_tokenizers.h"
#include "text/merge.h"
#include "text/oniguruma.h"
#include "text/pattern.h"
#include "text/protobuf.h"
#include "text/sentencepiece.h"
#include "text/tokenizer.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

namespace candor::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::uint32_t> ids(const std::vector<Symbol>& symbols) {
  std::vector<std::uint32_t> ids;
  for (const auto& symbol : symbols) ids.push_back(symbol.id);
  return ids;
}

/// The definition: again and again, the lowest rank, the leftmost of equals.
std::vector<Symbol> merged_naively(std::vector<Symbol> symbols,
                                   const std::function<Merge(const Symbol&, const Symbol&)>& rule) {
  while (true) {
    Merge best;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
      if (const Merge merge = rule(symbols[i], symbols[i + 1]); merge.rank < best.rank) best = merge, at = i;
    if (best.rank == Merge::kNone) return symbols;
    symbols[at] = joined(symbols[at], symbols[at + 1], best.id);
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(MergeSymbols, BothWaysAgreeWithTheDefinition) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, Merge> rules;
    const std::uint32_t ranks = round % 3 == 0 ? 3 : 40;  // few ranks: many ties
    for (std::uint32_t i = 0; i < 30; ++i)
      rules[{random() % 12, random() % 12}] = {static_cast<std::uint32_t>(random() % ranks),
                                               static_cast<std::uint32_t>(random() % 12)};
    const auto rule = [&](const Symbol& left, const Symbol& right) {
      const auto found = rules.find({left.id, right.id});
      return found == rules.end() ? Merge{} : found->second;
    };
    std::vector<Symbol> word;
    for (std::uint32_t i = 0; i < 1 + random() % kShortWord; ++i)
      word.push_back({static_cast<std::uint32_t>(random() % 4), i, 1, false});
    const auto expected = ids(merged_naively(word, rule));
    auto by_scan = word;
    merge_short(by_scan, rule);
    auto by_queue = word;
    merge_long(by_queue, rule);
    EXPECT_EQ(ids(by_scan), expected);
    EXPECT_EQ(ids(by_queue), expected);
  }
}

TEST(MergeQueue, GivesPairsByRankThenPosition) {
  std::mt19937 random(4);
  MergeQueue queue;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> expected;
  for (int i = 0; i < 2000; ++i) {
    const std::pair<std::uint32_t, std::uint32_t> entry{random() % 50, random() % 1000};
    queue.push(entry.first, entry.second);
    expected.push_back(entry);
  }
  std::sort(expected.begin(), expected.end());
  std::uint32_t rank = 0;
  std::uint32_t position = 0;
  for (const auto& entry : expected) {
    ASSERT_TRUE(queue.pop(rank, position));
    EXPECT_EQ(std::pair(rank, position), entry);
  }
  EXPECT_FALSE(queue.pop(rank, position));
}

TEST(MergeSymbols, TimeGrowsLikeTheWord) {
  // Doubling merges, as vocabularies have for runs of one letter.
  const auto rule = [](const Symbol& left, const Symbol& right) {
    return left.id == right.id && left.id < 12 ? Merge{left.id, left.id + 1} : Merge{};
  };
  const auto seconds = [&](std::uint32_t length) {
    std::vector<Symbol> word(length, Symbol{0, 0, 1, false});
    const auto start = std::chrono::steady_clock::now();
    merge_long(word, rule);
    EXPECT_LT(word.size(), length / 1000);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  (void)seconds(1u << 16);
  // Sixteen times the length; a quadratic loop would take 256 times as long. The machine may be busy.
  EXPECT_LT(seconds(1u << 20), 100 * seconds(1u << 16));
}

std::vector<std::string> matches(const Pattern& pattern, std::string_view text) {
  std::vector<std::string> found;
  pattern.for_each_match(
      text, [&](Pattern::Span span) { found.emplace_back(text.substr(span.begin, span.end - span.begin)); });
  return found;
}

TEST(Oniguruma, MeansTheSameInPcre2) {
  const auto of = [](std::string_view pattern, std::string_view text) {
    return matches(Pattern::regex(pattern, "t"), text);
  };
  EXPECT_THAT(of(R"(\s)", "a \u00a0\u180e\u0085"), ElementsAre(" ", "\u00a0", "\u0085"));
  EXPECT_THAT(of(R"(\d{1,3}+)", "1234 5"), ElementsAre("1234", "5"));  // repeats the interval
  EXPECT_THAT(of(R"(x{,2}y)", "xxxy"), ElementsAre("xxy"));
  EXPECT_THAT(of(R"([\p{L}&&[^a-z]]+)", "abCDé1x"), ElementsAre("CDé"));
  EXPECT_THAT(of(R"([^a-c&&[a-z]]+)", "abcdef"), ElementsAre("def"));
  EXPECT_THAT(of(R"([a[bc]]+)", "abcd"), ElementsAre("abc"));
  EXPECT_THAT(of(R"(\h+)", "xyz12afg"), ElementsAre("12af"));
  EXPECT_THAT(of(R"(\p{Han}+|\p{^Greek})", "中。α"), ElementsAre("中", "。"));  // not the script's extensions
  EXPECT_THAT(of(R"(\w+)", "a_é½ b"), ElementsAre("a_é½", "b"));
  EXPECT_THAT(of(R"((?i:'s|'ll))", "'S'LL'x"), ElementsAre("'S", "'LL"));
  EXPECT_THAT(of(R"((?m:a.b))", "a\nb"), ElementsAre("a\nb"));
  EXPECT_THAT(of(R"(\u4e2d)", "中文"), ElementsAre("中"));
  EXPECT_THAT(of(R"((?=\d))", "12"), ElementsAre("", ""));
}

TEST(Oniguruma, RefusesWhatHasNoEquivalent) {
  for (const char* pattern :
       {R"(\y)", R"((?~ab))", R"(\g<1>)", R"(\O)", "[[:cntrl:]]", "a(?i)b", R"(\)", "[a", R"([\W])"}) {
    try {
      (void)pcre2_from_oniguruma(pattern, "t");
      FAIL() << pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << pattern;
    }
  }
  EXPECT_THROW((void)Pattern::regex("(", "t"), Error);
}

TEST(GgufPreTokenizers, AllCompileAndAnUnknownNameIsRefused) {
  for (const char* name :
       {"gpt-2", "starcoder", "llama-bpe", "qwen2", "qwen35", "seed-coder", "bailingmoe", "gpt-4o", "tekken",
        "deepseek-llm", "deepseek-coder", "deepseek-v3", "falcon", "bloom", "viking", "superbpe"})
    for (const auto pattern : gguf_pre_tokenizer(name, "t").patterns)
      EXPECT_NO_THROW((void)Pattern::regex(pattern, name));
  try {
    (void)gguf_pre_tokenizer("no-such", "model.gguf");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"no-such\" is not known here; known are gpt-2"));
  }
}

TEST(Unicode, Utf8Helpers) {
  EXPECT_EQ(unicode::to_valid_utf8("a\xe4\xb8"), "a\xef\xbf\xbd");
  EXPECT_EQ(unicode::to_valid_utf8("\xf0\x9f\x98x\xff"), "\xef\xbf\xbdx\xef\xbf\xbd");
  EXPECT_EQ(unicode::to_valid_utf8("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(unicode::incomplete_suffix("a\xe4\xb8"), 2u);
  EXPECT_EQ(unicode::incomplete_suffix("a\xf0\x9f\x98"), 3u);
  EXPECT_EQ(unicode::incomplete_suffix("中"), 0u);
  EXPECT_EQ(unicode::incomplete_suffix("\xed\xa0"), 0u);
  EXPECT_EQ(unicode::incomplete_suffix("\xff"), 0u);
  EXPECT_EQ(unicode::length("a中😀"), 3u);
  EXPECT_EQ(unicode::last("a中").value, U'中');
}

TEST(Unicode, NormalizesAndLowers) {
  EXPECT_EQ(unicode::normalize("e\u0301\u1112\u1161\u11ab", unicode::Form::nfc), "é한");
  EXPECT_EQ(unicode::normalize("é", unicode::Form::nfd), "e\u0301");
  EXPECT_EQ(unicode::normalize("ﬁ①", unicode::Form::nfkc), "fi1");
  std::string lower;
  for (const char32_t c : U"ÀİΣ")
    if (c != 0) unicode::append_lower_case(lower, c);
  EXPECT_EQ(lower, "ài\u0307σ");
  EXPECT_EQ(unicode::first_grapheme_length("e\u0301x"), 3u);
}

TEST(ByteLevel, SpellsEveryByteAndBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(byte_level::read(byte_level::spell(bytes)), bytes);
  EXPECT_EQ(byte_level::spell(" \n"), "ĠĊ");
  EXPECT_EQ(byte_level::read("▁"), std::nullopt);
}

TEST(ByteTrie, FindsPrefixes) {
  const ByteTrie trie({{"a", 1}, {"abc", 2}, {"b", 3}, {"", 9}, {"\xff", 4}});
  EXPECT_EQ(trie.longest("abcd")->value, 2u);
  EXPECT_EQ(trie.longest("abx")->length, 1u);
  EXPECT_EQ(trie.longest("\xffx")->value, 4u);
  EXPECT_FALSE(trie.longest("c"));
  EXPECT_FALSE(ByteTrie().longest("a"));
}

TEST(AddedTokens, FlagsAreHonoured) {
  const auto split = [](AddedToken token, std::string_view text) {
    token.id = 7;
    std::vector<std::string> parts;
    AddedTokenSet({token}).split(
        text, false, [&](std::size_t begin, std::size_t end) { parts.emplace_back(text.substr(begin, end - begin)); },
        [&](std::uint32_t id) { parts.push_back(std::to_string(id)); });
    return parts;
  };
  EXPECT_THAT(split({.content = "<m>"}, "a <m> b"), ElementsAre("a ", "7", " b"));
  EXPECT_THAT(split({.content = "<m>", .lstrip = true}, "a <m> b"), ElementsAre("a", "7", " b"));
  EXPECT_THAT(split({.content = "<m>", .rstrip = true}, "a <m> b"), ElementsAre("a ", "7", "b"));
  EXPECT_THAT(split({.content = "ing", .single_word = true}, "ing sing ing"), ElementsAre("7", " sing ", "7"));
}

TEST(Base64, DecodesOrRefuses) {
  EXPECT_EQ(decode_base64("YWJjZA==", "t"), "abcd");
  EXPECT_THROW((void)decode_base64("YWJjZA", "t"), Error);
  EXPECT_THROW((void)decode_base64("Y$==", "t"), Error);
}

TEST(Charsmap, RefusesABrokenHeader) {
  EXPECT_THROW(Charsmap("ab", "t"), Error);
  EXPECT_THROW(Charsmap(std::string("\xff\xff\xff\x7f____", 8), "t"), Error);
  EXPECT_FALSE(Charsmap("", "t").longest("a"));
}

// A writer of SentencePiece models, as small as the tests need.
std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(0x80 | (value & 0x7f));
  return out + static_cast<char>(value);
}
std::string field(std::uint32_t number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string field(std::uint32_t number, std::uint64_t value) {
  return varint(number << 3) + varint(value);
}
std::string piece(const std::string& text, float score, PieceType type = PieceType::normal) {
  std::string bits(4, '\0');
  std::memcpy(bits.data(), &score, 4);
  return field(1, field(1, text) + varint(2 << 3 | 5) + bits + field(3, static_cast<std::uint64_t>(type)));
}
std::string specials() {
  return piece("<unk>", 0, PieceType::unknown) + piece("<s>", 0, PieceType::control) +
         piece("</s>", 0, PieceType::control);
}
std::unique_ptr<Tokenizer> load(const std::string& model) {
  return load_sentencepiece_model(std::as_bytes(std::span(model)), "test.model");
}

using Ids = std::vector<std::uint32_t>;

TEST(SentencePiece, BpeMergesByScoreAndKeepsUserDefinedPieces) {
  const std::string pieces = specials() + piece("<x>", 0, PieceType::user_defined) + piece("a", -9) + piece("b", -9) +
                             piece("ab", -2) + piece("ba", -1) + piece("▁", -9) + piece("xx", -1, PieceType::unused) +
                             piece("x", -8);
  const auto tokenizer = load(pieces + field(2, field(3, 2)) + field(3, field(4, 0)));
  EXPECT_EQ(tokenizer->encode("aba"), (Ids{1, 8, 4, 7}));                            // ▁ a ba
  EXPECT_EQ(tokenizer->encode("a<x>b", {.add_special = false}), (Ids{8, 4, 3, 5}));  // frozen
  EXPECT_EQ(tokenizer->encode("xx", {.add_special = false}), (Ids{8, 10, 10}));      // unused: taken apart
  EXPECT_EQ(tokenizer->encode("zz", {.add_special = false}), (Ids{8, 0}));           // unknowns fuse
  EXPECT_EQ(tokenizer->encode("a</s>", {.add_special = false}), (Ids{8, 4, 2}));
  EXPECT_EQ(tokenizer->decode(Ids{1, 8, 4, 7}), "aba");
}

TEST(SentencePiece, UnigramFindsTheBestCover) {
  const std::string pieces =
      specials() + piece("▁", -3) + piece("a", -3) + piece("b", -3) + piece("ab", -4) + piece("▁ab", -4.5);
  const auto tokenizer = load(pieces + field(2, field(3, 1)) + field(3, field(4, 1)));
  EXPECT_EQ(tokenizer->encode("  ab   b ", {.add_special = false}), (Ids{7, 3, 5}));  // extra spaces go
  EXPECT_EQ(tokenizer->encode("aq", {.add_special = false}), (Ids{3, 4, 0}));
  EXPECT_EQ(tokenizer->encode("", {.add_special = false}), (Ids{}));
}

TEST(SentencePiece, EveryTruncationIsAnErrorOrAModel) {
  const std::string model = specials() + piece("a", -1) + field(2, field(3, 2)) + field(3, field(4, 0));
  for (std::size_t size = 0; size < model.size(); ++size) {
    try {
      (void)load(model.substr(0, size));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::format) << error.what();
    }
  }
  EXPECT_THROW((void)load(model + field(2, field(3, 3))), Error);  // word model
  EXPECT_THROW((void)load(model + field(3, field(5, 0))), Error);  // white space not escaped
  EXPECT_THROW((void)load(""), Error);
}

TEST(Protobuf, ChecksLengths) {
  const std::string short_text = field(1, std::string("abc")).substr(0, 3);
  ProtobufReader truncated(short_text, "t");
  EXPECT_THROW((void)truncated.next(), Error);
  const std::string group_start = varint(1 << 3 | 3);
  ProtobufReader group(group_start, "t");
  EXPECT_THROW((void)group.next(), Error);
  const std::string long_number(11, '\x80');
  ProtobufReader endless(long_number, "t");
  EXPECT_THROW((void)endless.next(), Error);
}

TEST(Vocabulary, KeepsTokensBothWays) {
  Vocabulary vocabulary;
  for (std::uint32_t id = 0; id < 5000; ++id) vocabulary.add("token" + std::to_string(id), id, "t");
  vocabulary.add("far", 9000, "t");
  for (std::uint32_t id = 0; id < 5000; ++id) ASSERT_EQ(vocabulary.find("token" + std::to_string(id)), id);
  EXPECT_EQ(vocabulary.token(9000), "far");
  EXPECT_FALSE(vocabulary.contains(8000));
  EXPECT_EQ(vocabulary.size(), 9001u);
  EXPECT_EQ(vocabulary.count(), 5001u);
}

}  // namespace
}  // namespace candor::text
