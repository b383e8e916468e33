// tokenizer.json: what is refused and how it is said, and the parts that the comparison with Hugging Face's library
// (tests/text/huggingface) does not reach.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/limits.h"
#include "text/tokenizer.h"

namespace candor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<std::uint32_t>;

/// A byte-level BPE of a few letters, with `extra` fields beside the model.
std::string small_json(const std::string& extra = "", const std::string& model_extra = "") {
  return fmt::format(R"({{{} "model":{{"type":"BPE",{} "vocab":{{"a":0,"b":1,"ab":2,"Ġ":3,"Ġab":4,"c":5}},)"
                     R"("merges":["a b",["Ġ","ab"]]}},)"
                     R"("pre_tokenizer":{{"type":"ByteLevel","add_prefix_space":false,"use_regex":true}},)"
                     R"("decoder":{{"type":"ByteLevel"}}}})",
                     extra, model_extra);
}

std::string error_of(const std::string& json, const std::string& config = "") {
  try {
    (void)load_tokenizer_json(json, config, "test.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TokenizerJson, MergesByRank) {
  const auto tokenizer = load_tokenizer_json(small_json(), "", "test.json");
  EXPECT_EQ(tokenizer->encode("ab abcb"), (Ids{2, 4, 5, 1}));
  EXPECT_EQ(tokenizer->decode(Ids{2, 4, 5, 1}), "ab abcb");
  EXPECT_EQ(tokenizer->token(4), "Ġab");
  EXPECT_EQ(tokenizer->token_bytes(4), " ab");
  EXPECT_EQ(tokenizer->id_of("Ġab"), 4u);
  EXPECT_EQ(tokenizer->id_of("zz"), std::nullopt);
  EXPECT_EQ(tokenizer->vocabulary_size(), 6u);
  EXPECT_EQ(tokenizer->token(77), "");
  EXPECT_EQ(tokenizer->decode(Ids{2, 77}), "ab");
}

TEST(TokenizerJson, SpecialTokensAreParsedOnlyWhenAllowed) {
  const auto tokenizer = load_tokenizer_json(
      small_json(R"("added_tokens":[{"id":6,"content":"<a>","special":true},{"id":7,"content":"cc"}],)"), "",
      "test.json");
  EXPECT_EQ(tokenizer->encode("a<a>cc"), (Ids{0, 6, 7}));
  EXPECT_EQ(tokenizer->encode("<a>cc", {.parse_special = false}), (Ids{0, 7}));
  EXPECT_TRUE(tokenizer->is_special(6));
  EXPECT_FALSE(tokenizer->is_special(7));
  EXPECT_EQ(tokenizer->decode(Ids{0, 6, 7}, true), "acc");
  EXPECT_EQ(tokenizer->decode(Ids{0, 6, 7}, false), "a<a>cc");
}

TEST(TokenizerJson, ConfigNamesTokensAndDecidesAboutBos) {
  const std::string added = R"("added_tokens":[{"id":6,"content":"<s>","special":true}],)";
  const auto with =
      load_tokenizer_json(small_json(added), R"({"bos_token":{"content":"<s>"},"add_bos_token":true})", "t");
  EXPECT_EQ(with->encode("a"), (Ids{6, 0}));
  EXPECT_TRUE(with->adds_bos());
  EXPECT_EQ(with->bos_id(), 6u);
  const auto without = load_tokenizer_json(small_json(added), R"({"bos_token":"<s>"})", "t");
  EXPECT_EQ(without->encode("a"), (Ids{0}));
  EXPECT_FALSE(without->adds_bos());
  EXPECT_NE(with->digest(), without->digest());
  EXPECT_THAT(error_of(small_json(), R"({"bos_token":"<s>"})"), HasSubstr("\"<s>\" is not in the vocabulary"));
}

TEST(TokenizerJson, NamesWhatItDoesNotKnow) {
  const auto with = [](const std::string& extra) { return error_of(small_json(extra)); };
  EXPECT_THAT(with(R"("normalizer":{"type":"Wat"},)"),
              HasSubstr("test.json: normalizer: the type \"Wat\" is not known"));
  EXPECT_THAT(with(R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"X"}]},)"),
              HasSubstr("normalizer.normalizers[1]: the type \"X\""));
  EXPECT_THAT(with(R"("post_processor":{"type":"X"},)"), HasSubstr("post_processor: the type \"X\""));
  EXPECT_THAT(error_of(R"({"model":{"type":"X"}})"),
              HasSubstr("model: the type \"X\" is not known here; known are BPE"));
  EXPECT_THAT(error_of(R"({"model":{"type":"BPE","vocab":{},"merges":[]},"decoder":{"type":"CTC"}})"),
              HasSubstr("decoder: the type \"CTC\" is not known"));
  EXPECT_THAT(error_of(R"({"model":{"type":"BPE","vocab":{},"merges":[]},"pre_tokenizer":{"type":"UnicodeScripts"}})"),
              HasSubstr("\"UnicodeScripts\" is not known"));
}

TEST(TokenizerJson, RefusesContradictions) {
  EXPECT_THAT(error_of("{}"), HasSubstr("\"model\" is missing"));
  EXPECT_THAT(error_of("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(error_of(R"({"model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}})"), HasSubstr("belongs to"));
  EXPECT_THAT(error_of(R"({"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}})"), HasSubstr("non-negative"));
  EXPECT_THAT(error_of(R"({"model":{"type":"BPE","vocab":{"a":4294967295},"merges":[]}})"), HasSubstr("limit"));
  EXPECT_THAT(error_of(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a x"]}})"),
              HasSubstr("the vocabulary lacks"));
  EXPECT_THAT(error_of(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}})"), HasSubstr("merges[0]"));
  EXPECT_THAT(error_of(small_json(R"("added_tokens":[{"id":9,"content":"a"}],)")),
              HasSubstr("the vocabulary gives it 0"));
  EXPECT_THAT(error_of(small_json(R"("added_tokens":[{"id":0,"content":"x"}],)")), HasSubstr("belongs to \"a\""));
  EXPECT_THAT(error_of(small_json(R"("post_processor":{"type":"BertProcessing","sep":["x",99],"cls":["y",0]},)")),
              HasSubstr("token 99, which does not exist"));
  EXPECT_THAT(error_of(R"({"model":{"type":"Unigram","unk_id":3,"vocab":[["a",-1]]}})"), HasSubstr("unk_id"));
}

TEST(TokenizerJson, RefusesTextThatIsNotUtf8OrTooLong) {
  const auto tokenizer = load_tokenizer_json(small_json(), "", "test.json");
  EXPECT_THROW((void)tokenizer->encode("a\xff"), Error);
  EXPECT_THROW((void)tokenizer->encode("\xed\xa0\x80"), Error);
  EXPECT_THROW((void)tokenizer->encode(std::string(limits::prompt_bytes + 1, 'a')), Error);
}

TEST(TokenizerJson, AMissingUnknownTokenIsAnError) {
  const auto tokenizer =
      load_tokenizer_json(R"({"model":{"type":"WordLevel","unk_token":"?","vocab":{"a":0}}})", "", "t");
  EXPECT_EQ(tokenizer->encode("a"), (Ids{0}));
  EXPECT_THROW((void)tokenizer->encode("b"), Error);
}

TEST(TokenizerJson, AHostilePatternStopsWithAnError) {
  const auto tokenizer = load_tokenizer_json(
      R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"pre_tokenizer":{"type":"Split","behavior":"Isolated",)"
      R"("pattern":{"Regex":"(?:a|aa)+c"}}})",
      "", "t");
  try {
    (void)tokenizer->encode(std::string(200, 'a') + "bc");
    FAIL() << "a pattern that backtracks without end was matched";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::text);
    EXPECT_THAT(error.what(), HasSubstr("cannot be matched"));
  }
}

TEST(TokenizerJson, DescribesItself) {
  const auto description = load_tokenizer_json(small_json(), "", "test.json")->describe();
  EXPECT_EQ(description["model"], "BPE");
  EXPECT_EQ(description["source"], "tokenizer.json");
  EXPECT_EQ(description["vocabulary_size"], 6);
  EXPECT_EQ(description["pre_tokenizer"], nlohmann::ordered_json::array({"ByteLevel"}));
  EXPECT_THAT(description["digest"].get<std::string>(), HasSubstr("sha256:"));
}

TEST(TokenizerJson, ThreadsShareOneTokenizer) {
  const auto tokenizer = load_tokenizer_json(small_json(), "", "test.json");
  const Ids expected = tokenizer->encode("ab abcb ab");
  std::vector<std::thread> threads;
  std::vector<int> different(4);
  for (int& count : different)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) count += tokenizer->encode("ab abcb ab") != expected ? 1 : 0;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(different, ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace candor
