// What is measured of texts: perplexity in windows, vectors, and documents ranked by cosine or by a classifier's score.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>
#include <random>

#include "base/error.h"
#include "engine/embedding.h"
#include "engine/engine_fixture.h"
#include "engine/perplexity.h"
#include "models/model_folder.h"

namespace candor {
namespace {

const std::filesystem::path kStories = kShared / "models/stories260K";

std::string story() {
  const std::string text = read_file(kStories / "greedy-golden.txt", 1 << 20);
  return text.substr(text.find("Once upon a time"), 500);
}

TEST(PerplexityOfText, InOneWindowIsTheSumOverItsTokens) {
  SKIP_WITHOUT(kStories);
  Engine engine(kStories / "stories260K-f32.gguf", options(runtime::RowSelection::all));
  const std::string text = story();
  const auto tokens = engine.tokenizer().encode(text, {.add_special = true, .parse_special = false});
  ASSERT_LT(tokens.size(), 500u);
  const std::vector<float> logits = engine.logits(tokens);
  const std::size_t vocabulary = engine.model().compiled().vocabulary;
  double nats = 0;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    double sum = 0;
    for (std::size_t n = 0; n < vocabulary; ++n) sum += std::exp(double{logits[i * vocabulary + n]});
    nats -= std::log(std::exp(double{logits[i * vocabulary + tokens[i + 1]]}) / sum);
  }
  std::uint64_t done = 0;
  const Perplexity result =
      perplexity_of_text(engine, text, {512, 0, [&](std::uint64_t scored, std::uint64_t) { done = scored; }});
  EXPECT_NEAR(result.nats, nats, 1e-6 * nats);
  EXPECT_EQ(result.tokens, tokens.size() - 1);
  EXPECT_EQ(done, result.tokens);
  EXPECT_EQ(result.bytes, text.size()) << "the first token is BOS";
  EXPECT_NEAR(result.per_token(), std::exp(nats / static_cast<double>(result.tokens)), 1e-5);
  EXPECT_NEAR(result.bits_per_byte(), nats / std::numbers::ln2 / static_cast<double>(text.size()), 1e-6);
  EXPECT_LT(result.per_token(), 3) << "its own greedy text surprises it little";
}

TEST(PerplexityOfText, OverlappingWindowsScoreEachTokenOnce) {
  SKIP_WITHOUT(kStories);
  Engine engine(kStories / "stories260K-f32.gguf", options(runtime::RowSelection::all));
  const std::string text = story();
  const Perplexity whole = perplexity_of_text(engine, text, {512, 0, {}});
  const Perplexity windows = perplexity_of_text(engine, text, {48, 16, {}});
  EXPECT_EQ(windows.tokens, whole.tokens);
  EXPECT_EQ(windows.window, 48u);
  EXPECT_GT(windows.nats, whole.nats * 0.9);
  EXPECT_LT(windows.nats, whole.nats * 3) << "less is seen, but never nothing";
  std::string shuffled = text;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937_64(1));
  EXPECT_GT(perplexity_of_text(engine, shuffled, {512, 0, {}}).per_token(), 10 * whole.per_token());
}

TEST(PerplexityOfText, RefusesWhatCannotBeMeasured) {
  SKIP_WITHOUT(kStories);
  Engine engine(kStories / "stories260K-f32.gguf", options(runtime::RowSelection::all));
  EXPECT_THROW((void)perplexity_of_text(engine, "", {}), Error);
  EXPECT_THROW((void)perplexity_of_text(engine, "Once upon", {100000, 0, {}}), Error);
  EXPECT_THROW((void)perplexity_of_text(engine, "Once upon", {16, 16, {}}), Error);
}

constexpr const char* kVocabulary[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "lamp",
                                       "light", "ship",  "bread", "oven",  "shine"};

/// Gives the reference encoder a head that scores pairs.
void add_classifier(ModelFolder& folder) {
  std::map<std::string, ModelFolder::Tensor> named;
  for (auto& [name, tensor] : folder.tensors) named["bert." + name] = std::move(tensor);
  folder.tensors = std::move(named);
  auto& weight = folder.tensors["classifier.weight"];
  weight.shape = {1, 64};
  for (int i = 0; i < 64; ++i) weight.values.push_back(static_cast<float>(i % 7 - 3));
  folder.tensors["classifier.bias"] = {{1}, {0.25F}};
}

/// Writes the encoder with a tokenizer of ten words.
std::filesystem::path write_encoder(ModelFolder& folder) {
  Json words = Json::object();
  for (std::size_t i = 0; i < std::size(kVocabulary); ++i) words[kVocabulary[i]] = i;
  const auto piece = [](const char* kind, const char* id, int type) {
    return Json{{kind, {{"id", id}, {"type_id", type}}}};
  };
  Json special = Json::object();
  for (const int id : {2, 3})
    special[kVocabulary[id]] = {{"id", kVocabulary[id]}, {"ids", {id}}, {"tokens", {kVocabulary[id]}}};
  const Json pair = {piece("SpecialToken", "[CLS]", 0), piece("Sequence", "A", 0), piece("SpecialToken", "[SEP]", 0),
                     piece("Sequence", "B", 1), piece("SpecialToken", "[SEP]", 1)};
  Json added = Json::array();
  for (int id = 0; id < 4; ++id)
    added.push_back({{"id", id},
                     {"content", kVocabulary[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  const Json tokenizer = {{"version", "1.0"},
                          {"truncation", nullptr},
                          {"padding", nullptr},
                          {"added_tokens", added},
                          {"normalizer",
                           {{"type", "BertNormalizer"},
                            {"clean_text", true},
                            {"handle_chinese_chars", true},
                            {"strip_accents", nullptr},
                            {"lowercase", true}}},
                          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                          {"post_processor",
                           {{"type", "TemplateProcessing"},
                            {"single", {pair[0], pair[1], pair[2]}},
                            {"pair", pair},
                            {"special_tokens", special}}},
                          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
                          {"model",
                           {{"type", "WordPiece"},
                            {"unk_token", "[UNK]"},
                            {"continuing_subword_prefix", "##"},
                            {"max_input_chars_per_word", 100},
                            {"vocab", words}}}};
  const auto path = folder.write();
  std::ofstream(path / "tokenizer.json") << tokenizer.dump();
  return path;
}

TEST(Ranking, ByCosineForModelsThatEmbed) {
  SKIP_WITHOUT(kShared / "goldens/hf/bert");
  ModelFolder folder(kShared / "goldens/hf/bert");
  EngineOptions setup = options();
  setup.plan.pooling = "mean,normalize";
  Engine engine(write_encoder(folder), setup);
  const TextVector query = embed_text(engine, "Lamp light");
  EXPECT_EQ(query.tokens, 4u);
  ASSERT_EQ(query.values.size(), 64u);
  const std::vector<std::string> documents{"bread oven", "lamp light", "ship"};
  const Ranking ranking = rank_documents(engine, "Lamp light", documents);
  EXPECT_EQ(ranking.method, RankMethod::cosine);
  ASSERT_EQ(ranking.documents.size(), 3u);
  EXPECT_EQ(ranking.documents[0].index, 1u);
  EXPECT_NEAR(ranking.documents[0].score, 1, 1e-6);
  for (const RankedDocument& document : ranking.documents) {
    const TextVector vector = embed_text(engine, documents[document.index]);
    double product = 0;
    for (std::size_t i = 0; i < 64; ++i) product += double{vector.values[i]} * double{query.values[i]};
    EXPECT_NEAR(document.score, product, 1e-6);
  }
}

TEST(Ranking, ByTheScoreOfAPairForClassifiers) {
  SKIP_WITHOUT(kShared / "goldens/hf/bert");
  ModelFolder folder(kShared / "goldens/hf/bert");
  add_classifier(folder);
  Engine engine(write_encoder(folder), options());
  const std::vector<std::string> documents{"bread oven", "light shine", "ship"};
  const Ranking ranking = rank_documents(engine, "lamp", documents);
  EXPECT_EQ(ranking.method, RankMethod::score);
  const std::vector<std::uint32_t> tokens{2, 4, 3, 5, 9, 3}, types{0, 0, 0, 1, 1, 1};
  const float wanted = engine.session().embedding(tokens, types).front();
  EXPECT_NE(wanted, engine.session().embedding(tokens).front()) << "types count";
  for (std::size_t i = 0; i < 3; ++i) {
    if (i > 0) {
      EXPECT_GE(ranking.documents[i - 1].score, ranking.documents[i].score);
    }
    if (ranking.documents[i].index == 1) {
      EXPECT_EQ(ranking.documents[i].score, double{wanted});
    }
  }
}

}  // namespace
}  // namespace candor
