// The product's default model, from its checkpoint and as it is shipped: what it knows, and that its bits do not depend
// on how it is run.
#include <filesystem>

#include "base/json.h"
#include "engine/engine_fixture.h"

namespace candor {
namespace {

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

class LexiconBits : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(LexiconBits, AreTheSameWhateverThreadsChunksAndInstructionSet) {
  SKIP_WITHOUT(GetParam());
  expect_same_bits_however_run(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Models, LexiconBits,
                         ::testing::Values(kShared / "models/lexicon-26m", kSource / "models/lexicon-26m"),
                         [](const auto& parameter) { return parameter.index == 0 ? "Shards" : "Artifact"; });

}  // namespace
}  // namespace candor
