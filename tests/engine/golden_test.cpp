// Whole models against published or independently computed answers. Reference data lie beside the checkout; where they
// are absent the tests say so and skip.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/limits.h"
#include "engine/engine.h"
#include "formats/safetensors.h"

namespace candor {
namespace {

const std::filesystem::path kShared = CANDOR_SHARED_DIR;
const std::filesystem::path kSource = CANDOR_SOURCE_DIR;

#define SKIP_WITHOUT(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no reference data at " << (path)

EngineOptions options(runtime::RowSelection rows = runtime::RowSelection::last, unsigned threads = 2,
                      std::uint32_t prefill_rows = runtime::kDefaultPrefillRows) {
  EngineOptions out;
  out.plan.rows = rows;
  out.load.threads = threads;
  out.load.prefill_rows = prefill_rows;
  return out;
}

/// The tensors of a safetensors file, as values of T.
class Expected {
 public:
  explicit Expected(const std::filesystem::path& path) : file_(path) {
    for (const TensorInfo& tensor : parse_safetensors(file_.bytes(), path.string()).tensors)
      tensors_.emplace(tensor.name, tensor);
  }
  template <typename T>
  std::vector<T> get(const std::string& name) const {
    const TensorInfo& tensor = tensors_.at(name);
    std::vector<T> out(tensor.elements());
    EXPECT_EQ(tensor.bytes, out.size() * sizeof(T));
    std::memcpy(out.data(), file_.bytes().data() + tensor.extents[0].offset, tensor.bytes);
    return out;
  }

 private:
  MappedFile file_;
  std::map<std::string, TensorInfo> tensors_;
};

double largest_error(const std::vector<float>& got, const std::vector<float>& wanted) {
  EXPECT_EQ(got.size(), wanted.size());
  double largest = 0;
  double scale = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(got[i]) - wanted[i]));
    scale = std::max(scale, std::abs(static_cast<double>(wanted[i])));
  }
  return largest / scale;
}

std::size_t argmax(std::span<const float> row) {
  return static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

class HuggingFaceGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(HuggingFaceGolden, LogitsAndGreedyTokens) {
  const auto folder = kShared / "goldens/hf" / GetParam();
  SKIP_WITHOUT(folder);
  const Expected expected(folder / "expected.safetensors");
  std::vector<std::uint32_t> tokens;
  for (const std::int32_t id : expected.get<std::int32_t>("input_ids"))
    tokens.push_back(static_cast<std::uint32_t>(id));
  const std::size_t prompt = tokens.size();
  const auto greedy = expected.get<std::int32_t>("greedy_ids");
  const auto gap = expected.get<float>("greedy_gap");
  for (const std::int32_t id : greedy) tokens.push_back(static_cast<std::uint32_t>(id));

  Engine engine(folder, options(runtime::RowSelection::all));
  const std::vector<float> logits = engine.logits(tokens);
  const std::size_t vocabulary = engine.model().compiled().vocabulary;
  const std::vector<float> wanted = expected.get<float>("logits");
  EXPECT_LE(largest_error({logits.begin(), logits.begin() + static_cast<long>(wanted.size())}, wanted), 2e-5);
  // Teacher-forced, so that one tie does not spoil the rest.
  for (std::size_t i = 0; i < greedy.size(); ++i) {
    const auto row = std::span(logits).subspan((prompt - 1 + i) * vocabulary, vocabulary);
    if (gap[i] >= 0.002F) {
      EXPECT_EQ(argmax(row), static_cast<std::size_t>(greedy[i])) << "greedy token " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, HuggingFaceGolden, ::testing::Values("llama", "llama3-rope"));

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

Json samples() {
  return parse_json(read_file(kShared / "models/lexicon-26m/samples.json", 1 << 22), "samples.json");
}

std::string answer(Engine& engine, const std::string& question) {
  ChatInput chat;
  chat.messages.push_back({{"role", "user"}, {"content", question}});
  TextRequest request;
  request.prompt = engine.encode_chat(chat);
  return engine.generate(request, {}).text;
}

class Lexicon : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Lexicon, KnowsTheDefinitionsAndAnswersThePrompts) {
  SKIP_WITHOUT(GetParam());
  SKIP_WITHOUT(kShared / "models/lexicon-26m");
  Engine engine(GetParam(), options());
  const Json data = samples();
  int right = 0;
  for (const Json& entry : data["define"])
    if (answer(engine, "Define " + entry["w"].get<std::string>() + ".") == entry["expected"].get<std::string>())
      ++right;
  EXPECT_EQ(data["define"].size(), 200u);
  EXPECT_GE(right, 198);
  RecordProperty("definitions", right);
  for (const Json& entry : data["prompts"])
    EXPECT_EQ(answer(engine, entry["q"].get<std::string>()), entry["a"].get<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Models, Lexicon,
                         ::testing::Values(kShared / "models/lexicon-26m", kSource / "models/lexicon-26m"),
                         [](const auto& parameter) { return parameter.index == 0 ? "Shards" : "Artifact"; });

class SameBits : public ::testing::TestWithParam<std::filesystem::path> {};

std::vector<float> logits_with(const std::filesystem::path& model, std::span<const std::uint32_t> tokens,
                               unsigned threads, std::uint32_t prefill_rows, std::string isa = {}) {
  EngineOptions setup = options(runtime::RowSelection::all, threads, prefill_rows);
  setup.load.isa = std::move(isa);
  return Engine(model, setup).logits(tokens);
}

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << what;
}

TEST_P(SameBits, WhateverThreadsChunksAndInstructionSet) {
  SKIP_WITHOUT(GetParam());
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < 45; ++i) tokens.push_back((i * 37 + 11) % 300);
  const auto once = logits_with(GetParam(), tokens, 1, 256);
  for (const unsigned threads : {2u, 4u})
    expect_same_bits(once, logits_with(GetParam(), tokens, threads, 256), std::to_string(threads) + " threads");
  for (const std::uint32_t rows : {7u, 1u})
    expect_same_bits(once, logits_with(GetParam(), tokens, 2, rows), "chunks of " + std::to_string(rows));
  expect_same_bits(once, logits_with(GetParam(), tokens, 2, 16, "portable"), "portable kernels");
}

INSTANTIATE_TEST_SUITE_P(Models, SameBits,
                         ::testing::Values(kShared / "models/lexicon-26m", kSource / "models/lexicon-26m",
                                           kShared / "models/stories260K/stories260K-f32.gguf",
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
