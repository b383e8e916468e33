// The product's default model, from its checkpoint and as it is shipped: what it knows, and that its bits do not depend
// on how it is run.
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "base/json.h"
#include "engine/engine_fixture.h"
#include "engine/weight_encodings.h"

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

/// How many of the 200 words get their definition word for word.
int definitions_known(Engine& engine, const Json& data) {
  int right = 0;
  for (const Json& entry : data["define"])
    if (answer(engine, "Define " + entry["w"].get<std::string>() + ".") == entry["expected"].get<std::string>())
      ++right;
  return right;
}

class Lexicon : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Lexicon, KnowsTheDefinitionsAndAnswersThePrompts) {
  SKIP_WITHOUT(GetParam());
  SKIP_WITHOUT(kShared / "models/lexicon-26m");
  Engine engine(GetParam(), options());
  const Json data = samples();
  const int right = definitions_known(engine, data);
  EXPECT_EQ(data["define"].size(), 200u);
  EXPECT_GE(right, 198);
  RecordProperty("definitions", right);
  for (const Json& entry : data["prompts"])
    EXPECT_EQ(answer(engine, entry["q"].get<std::string>()), entry["a"].get<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Models, Lexicon,
                         ::testing::Values(kShared / "models/lexicon-26m", kSource / "models/lexicon-26m"),
                         [](const auto& parameter) { return parameter.index == 0 ? "Shards" : "Artifact"; });

/// A row of the table in docs/formats/quantization.md.
struct DocumentedMix {
  std::string megabytes;  ///< of the artifact, one decimal
  int definitions = 0, llama_cpp = 0, prompts = 0;
};

DocumentedMix documented(std::string_view mix) {
  const std::string text = read_file(kSource / "docs/formats/quantization.md", 1 << 20);
  const std::string start = fmt::format("\n| `{}` | ", mix);
  const auto found = text.find(start);
  if (found == std::string::npos) throw std::runtime_error("no row for " + std::string(mix));
  std::istringstream row(text.substr(found + start.size()));
  DocumentedMix out;
  std::string unit, bar;
  row >> out.megabytes >> unit >> bar >> out.definitions >> bar >> out.llama_cpp >> bar >> out.prompts;
  return out;
}

int prompts_answered(Engine& engine, const Json& data) {
  int same = 0;
  for (const Json& entry : data["prompts"])
    if (answer(engine, entry["q"].get<std::string>()) == entry["a"].get<std::string>()) ++same;
  return same;
}

std::uint64_t bytes_below(const std::filesystem::path& folder) {
  std::uint64_t total = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) total += entry.file_size();
  return total;
}

class LexiconQuantized : public ::testing::TestWithParam<QuantMix> {};

/// Results are the same bits everywhere, so the documented counts are exact; none may be below llama.cpp's own
/// quantization of this model.
TEST_P(LexiconQuantized, IsWhatTheDocumentationSays) {
  const std::filesystem::path checkpoint = kShared / "models/lexicon-26m";
  SKIP_WITHOUT(checkpoint);
  const TestFolder folder;
  ConvertOptions choices;
  choices.output = folder.path() / "artifact";
  choices.mix = GetParam();
  choices.make_header = [](const ModelSource& planned) { return runtime::generate_manifest(planned, {}); };
  ThreadPool pool(2);
  (void)convert(ModelSource::open(checkpoint), choices, pool);
  Engine engine(choices.output, options());
  const Json data = samples();
  const DocumentedMix wanted = documented(to_string(GetParam()));
  EXPECT_EQ(definitions_known(engine, data), wanted.definitions);
  EXPECT_GE(wanted.definitions, wanted.llama_cpp);
  EXPECT_EQ(prompts_answered(engine, data), wanted.prompts);
  EXPECT_EQ(fmt::format("{:.1f}", static_cast<double>(bytes_below(choices.output)) / 1e6), wanted.megabytes);
}

INSTANTIATE_TEST_SUITE_P(Mixes, LexiconQuantized, ::testing::Values(QuantMix::q8_0, QuantMix::q6_k, QuantMix::q4_k_m),
                         [](const auto& parameter) { return std::string(to_string(parameter.param)); });

class LexiconBits : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(LexiconBits, AreTheSameWhateverThreadsChunksAndInstructionSet) {
  SKIP_WITHOUT(GetParam());
  expect_same_bits_however_run(GetParam());
}

TEST(LexiconInCompany, TheArtifactGivesTheSameBits) {
  expect_same_bits_in_company(kSource / "models/lexicon-26m");
}

class LexiconWeights : public ::testing::TestWithParam<Encoding> {};

TEST_P(LexiconWeights, GiveTheSameBitsHoweverRun) {
  const std::filesystem::path checkpoint = kShared / "models/lexicon-26m";
  SKIP_WITHOUT(checkpoint);
  const TestFolder folder;
  ASSERT_GT(encode_matrices(checkpoint, GetParam(), folder.path() / "artifact"), 0u);
  expect_same_bits_however_run(folder.path() / "artifact");
  expect_same_bits_in_company(folder.path() / "artifact");
}

INSTANTIATE_TEST_SUITE_P(Encodings, LexiconWeights,
                         ::testing::Values(Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0, Encoding::q4_0,
                                           Encoding::q4_k, Encoding::q5_k, Encoding::q6_k),
                         [](const auto& parameter) { return std::string(to_string(parameter.param)); });

INSTANTIATE_TEST_SUITE_P(Models, LexiconBits,
                         ::testing::Values(kShared / "models/lexicon-26m", kSource / "models/lexicon-26m"),
                         [](const auto& parameter) { return parameter.index == 0 ? "Shards" : "Artifact"; });

}  // namespace
}  // namespace candor
