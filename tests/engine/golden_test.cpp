// Whole models against published or independently computed answers. Reference data lie beside the checkout; where they
// are absent the tests say so and skip.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/limits.h"
#include "engine/engine.h"
#include "engine/engine_fixture.h"
#include "engine/expected.h"

namespace candor {
namespace {

class HuggingFaceGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(HuggingFaceGolden, LogitsAndGreedyTokens) {
  const auto folder = kShared / "goldens/hf" / GetParam();
  SKIP_WITHOUT(folder);
  const Expected expected(folder);
  Engine engine(folder, options(runtime::RowSelection::all));
  expect_parity(expected, engine.logits(forced_tokens(expected)));
}

INSTANTIATE_TEST_SUITE_P(Families, HuggingFaceGolden,
                         ::testing::Values("gemma2", "gemma3", "gpt2", "lfm2", "llama", "llama3-rope", "mistral-swa",
                                           "mixtral", "phi3", "phi3-longrope", "qwen2", "qwen3", "qwen3-moe"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Stories260K, PublishedGreedyTextExactly) {
  const auto model = kShared / "models/stories260K";
  SKIP_WITHOUT(model);
  Engine engine(model / "stories260K-f32.gguf", options());
  TextRequest request;
  request.prompt = engine.encode_raw("");
  request.max_tokens = 200;
  const TextResult result = engine.generate(request, {});
  EXPECT_EQ(result.tokens.size(), 200u);
  const std::string published = read_file(model / "greedy-golden.txt", 1 << 20);
  const auto start = published.find("Once upon a time");
  ASSERT_NE(start, std::string::npos);
  EXPECT_GT(result.text.size(), 400u);
  EXPECT_EQ(result.text, published.substr(start, result.text.size()));
}

class SameBits : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(SameBits, WhateverThreadsChunksAndInstructionSet) {
  SKIP_WITHOUT(GetParam());
  expect_same_bits_however_run(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Models, SameBits,
                         ::testing::Values(kShared / "models/stories260K/stories260K-f32.gguf",
                                           kShared / "goldens/hf/llama"));

TEST(Decode, YieldsTheTokensThatPrefillWould) {
  const auto model = kShared / "goldens/hf/llama";
  SKIP_WITHOUT(model);
  Engine engine(model, options());
  runtime::Session& session = engine.session();
  const std::vector<std::uint32_t> prompt{5, 17, 101, 7};
  runtime::Sequence decoded;
  std::vector<std::uint32_t> tokens = prompt;
  std::uint32_t next = session.prefill(decoded, prompt);
  for (int i = 0; i < 20; ++i) {
    tokens.push_back(next);
    runtime::Sequence* const one = &decoded;
    next = session.decode({&one, 1}, {&next, 1}).front();
    session.truncate(decoded, static_cast<std::uint32_t>(tokens.size()));
  }
  session.truncate(decoded, 0);
  runtime::Sequence prefilled;
  EXPECT_EQ(session.prefill(prefilled, tokens), next);
}

TEST(Context, APromptThatDoesNotFitIsRefusedWithBothNumbers) {
  const auto model = kShared / "goldens/hf/llama";
  SKIP_WITHOUT(model);
  EngineOptions setup = options();
  setup.load.context = 16;
  Engine engine(model, setup);
  runtime::Sequence sequence;
  const std::vector<std::uint32_t> tokens(17, 1);
  try {
    (void)engine.session().prefill(sequence, tokens);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::resource);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("17 tokens do not fit the context of 16"));
  }
  EXPECT_TRUE(sequence.tokens.empty());
  setup.load.context = 100000;
  EXPECT_THROW(Engine(model, setup), Error);
}

TEST(Tokens, OutsideTheVocabularyAreRefused) {
  const auto model = kShared / "goldens/hf/llama";
  SKIP_WITHOUT(model);
  Engine engine(model, options(runtime::RowSelection::all));
  const std::vector<std::uint32_t> tokens{1, 320};
  EXPECT_THROW((void)engine.logits(tokens), Error);
  EXPECT_THROW((void)engine.logits({}), Error);
}

}  // namespace
}  // namespace candor
