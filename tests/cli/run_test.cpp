// candor run: the answer alone on standard output, the same for the same seed, refused where it cannot be right.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "cli/program.h"
#include "formats/test_folder.h"

namespace candor {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Run : public testing::Test {
 protected:
  void SetUp() override { CANDOR_SKIP_WITHOUT_SHARED(); }
};

TEST_F(Run, AnswersThroughTheChatTemplate) {
  const Json samples = parse_json(read_file(kLexicon + "/samples.json", 1 << 20), "samples.json");
  const Json& first = samples["prompts"][0];
  const Outcome outcome = run_program({"run", kLexicon, first["q"].get<std::string>()});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, first["a"].get<std::string>() + "\n");
  EXPECT_THAT(outcome.err, HasSubstr("seed 0"));
  EXPECT_THAT(outcome.err, HasSubstr("plan "));
}

TEST_F(Run, PromptsFromAllPlacesAreTheSame) {
  const Outcome positional = run_program({"run", kLexicon, "Define lighthouse.", "--quiet"});
  ASSERT_EQ(positional.status, 0) << positional.err;
  EXPECT_EQ(positional.err, "");
  EXPECT_EQ(run_program({"run", kLexicon, "-p", "Define lighthouse.", "--quiet"}).out, positional.out);
  EXPECT_EQ(run_program({"run", kLexicon, "--quiet"}, "Define lighthouse.\n").out, positional.out);
}

TEST_F(Run, PublishedStoryFromBos) {
  const Outcome outcome = run_program({"run", kStories, "--raw", "-p", "", "--ignore-eos", "-n", "200", "--quiet"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::string golden = read_file(fs::path(kStories).parent_path() / "greedy-golden.txt", 1 << 20);
  golden.erase(0, golden.find("Once upon"));  // a line about the first logits comes first
  const std::string answer = outcome.out.substr(0, outcome.out.size() - 1);
  EXPECT_GT(answer.size(), 400u);
  EXPECT_EQ(golden.substr(0, answer.size()), answer);
}

TEST_F(Run, TextGoesInAsItIsWithoutTemplateAndThatIsSaid) {
  const Outcome outcome = run_program({"run", kStories, "Once upon a time", "-n", "5"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("no chat template"));
  const Outcome raw = run_program({"run", kStories, "Once upon a time", "-n", "5", "--raw"});
  EXPECT_EQ(raw.out, outcome.out);
  EXPECT_THAT(raw.err, Not(HasSubstr("no chat template")));
  expect_error(run_program({"run", kStories, "Once", "--system", "Be brief."}), 2, "--system");
}

TEST_F(Run, JsonHasWhatReproducesTheRun) {
  const Outcome outcome = run_program({"run", kLexicon, "Define lighthouse.", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const Json json = parse_json(outcome.out, "run");
  EXPECT_EQ(json["stop"]["reason"], "stop_token");
  EXPECT_EQ(json["stop"]["text"], "<|im_end|>");
  EXPECT_EQ(json["seed"], 0);
  EXPECT_THAT(json["planDigest"].get<std::string>(), StartsWith("sha256:"));
  EXPECT_THAT(json["prompt"]["text"].get<std::string>(), HasSubstr("Define lighthouse."));
  EXPECT_GT(json["stats"]["bytesPerToken"].get<double>(), 1e6);
  EXPECT_TRUE(json["backend"].is_object());
  EXPECT_EQ(run_program({"run", kLexicon, "Define lighthouse.", "--quiet"}).out,
            json["text"].get<std::string>() + "\n");
}

TEST_F(Run, SeedReproducesASampledAnswer) {
  const std::vector<std::string> sampled{"run", kLexicon, "Define lighthouse.", "--temperature", "1.5", "-n",
                                         "20",  "--json"};
  auto with_seed = [&](const std::string& seed) {
    auto arguments = sampled;
    arguments.insert(arguments.end(), {"--seed", seed});
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return parse_json(outcome.out, "run");
  };
  const Json random = with_seed("random");
  const Json again = with_seed(to_js_json(random["seed"]));
  EXPECT_EQ(again["tokens"], random["tokens"]);
  EXPECT_NE(with_seed("1")["tokens"], with_seed("2")["tokens"]);
}

TEST_F(Run, ResultsDoNotDependOnThreadsOrChunks) {
  const Outcome one = run_program({"run", kLexicon, "Define lighthouse.", "--threads", "1", "--quiet"});
  const Outcome two =
      run_program({"run", kLexicon, "Define lighthouse.", "--threads", "2", "--prefill-chunk", "3", "--quiet"});
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_EQ(one.out, two.out);
}

TEST_F(Run, StopStringsAndLengthEndTheAnswer) {
  const Json whole = parse_json(run_program({"run", kLexicon, "Define lighthouse.", "--json"}).out, "run");
  const std::string text = whole["text"].get<std::string>();
  ASSERT_GT(text.size(), 20u);
  const std::string stop = text.substr(10, 4);
  const Json stopped =
      parse_json(run_program({"run", kLexicon, "Define lighthouse.", "--json", "--stop", stop}).out, "run");
  EXPECT_EQ(stopped["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(stopped["stop"]["reason"], "stop_string");
  EXPECT_EQ(stopped["stop"]["text"], stop);
  const Json cut = parse_json(run_program({"run", kLexicon, "Define lighthouse.", "--json", "-n", "2"}).out, "run");
  EXPECT_EQ(cut["tokens"].size(), 2u);
  EXPECT_EQ(cut["stop"]["reason"], "length");
}

TEST_F(Run, StopStringsWithBracketsAreTextsNotLists) {
  const Outcome outcome = run_program({"run", kStories, "Once", "-n", "3", "--stop", "[a,b]", "--quiet"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(Run, PromptLongerThanTheContextNamesBothNumbers) {
  const Outcome outcome = run_program({"run", kStories, "Once upon a time there was", "--context", "4"});
  EXPECT_EQ(outcome.status, 8);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("do not fit the context of 4"));
  expect_error(run_program({"run", kStories, "Once", "--context", "1000000"}), 8, "1000000");
}

TEST_F(Run, EmptyPromptOfAChatModelIsRefused) {
  expect_error(run_program({"run", kLexicon, ""}), 2, "empty");
  expect_error(run_program({"run", kLexicon}, ""), 2, "empty");
}

TEST_F(Run, ModelWithoutTokenizerSaysWhatWorks) {
  expect_error(run_program({"run", kLlama, "hello"}), 5, "candor logits");
}

TEST_F(Run, OverlaysThatWouldDoNothingAreRefused) {
  expect_error(run_program({"run", kLexicon, "x", "--session", "compute.defaults.mathDtype=f16"}), 6, "executionPatch");
  expect_error(run_program({"run", kLexicon, "x", "--session", "kvcache=null"}), 6, "kvcache");
  expect_error(run_program({"run", kLexicon, "x", "--session", "kvcahce.kvDtype=f16"}), 6, "kvcahce");
  expect_error(run_program({"run", kLexicon, "x", "--session", "kvcache.kvDType=f16"}), 6, "kvDType");
  expect_error(run_program({"run", kLexicon, "x", "--session", "kvcache"}), 2, "kvcache");
}

TEST_F(Run, DoubledBosIsSaid) {
  const Outcome outcome = run_program({"run", kStories, "<s>Once", "--raw", "-n", "1"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("twice"));
}

TEST_F(Run, AnInterruptEndsTheAnswerWithItsStatus) {
  const TestFolder folder;
  const std::string receipt = (folder.path() / "receipt.json").string();
  const Outcome outcome = interrupt_program(
      {"run", kLexicon, "Define lighthouse.", "--ignore-eos", "-n", "900", "--threads", "1", "--receipt", receipt});
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("stopped"));
  EXPECT_FALSE(outcome.out.empty());
  // What was said until then is an answer like any other, and can be had again.
  const Outcome again = run_program({"replay", receipt});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("The answer is the same"));
}

TEST_F(Run, APromptThatIsNoUtf8IsBlamedItselfWithTheByte) {
  expect_error(run_program({"run", kLexicon, "abc\xff"}), 9, "the prompt is not UTF-8 at byte 3 (0xff)");
  expect_error(run_program({"run", kStories, "\xc3", "--raw"}), 9, "the prompt is not UTF-8 at byte 0 (0xc3)");
  expect_error(run_program({"run", kLexicon, "abc", "--system", "d\xff"}), 9, "--system is not UTF-8 at byte 1");
}

TEST_F(Run, FilesThatCannotBeWrittenAreRefusedBeforeTheAnswer) {
  expect_error(run_program({"run", kLexicon, "Define lighthouse.", "--receipt", "/no/such/folder/x"}), 3,
               "--receipt /no/such/folder/x: nothing can be written in /no/such/folder");
  expect_error(run_program({"run", kLexicon, "Define lighthouse.", "--receipt", "/tmp"}), 3, "not a regular file");
  expect_error(run_program({"run", kLexicon, "Define lighthouse.", "--probe", "attention:0", "--probe-out",
                            "/no/such/folder/x"}),
               3, "--probe-out /no/such/folder/x");
}

TEST_F(Run, OutputsNeitherReplaceTheModelNorEachOther) {
  expect_error(run_program({"run", kLexicon, "Define lighthouse.", "--receipt", kLexicon + "/config.json"}), 2,
               "would be written into the model");
  expect_error(run_program({"logits", kStories, "--tokens", "1,2", "--out", kStories}), 2,
               "would be written into the model");
  expect_error(run_program({"logits", kLexicon, "--tokens", "1,2", "--out", "same", "--receipt", "./same"}), 2,
               "--out and --receipt both name ./same");
  expect_error(run_program({"run", kLexicon, "Define lighthouse.", "--receipt", ""}), 2,
               "--receipt \"\": names nothing");
}

TEST_F(Run, APipeIsRefusedNotWaitedFor) {
  const std::string pipe = testing::TempDir() + "candor_pipe_" + std::to_string(::getpid()) + ".gguf";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error(run_program({"run", pipe, "x"}), 4, "is not a regular file");
  expect_error(run_program({"run", kLexicon, "x", "--overlay", pipe}), 4, "is not a regular file");
  ::unlink(pipe.c_str());
}

}  // namespace
}  // namespace candor
