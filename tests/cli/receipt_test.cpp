// Receipts: what run and logits write, replay computes again; whatever was changed in between is named.
#include <fmt/format.h>

#include <filesystem>
#include <functional>

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

class Receipts : public testing::Test {
 protected:
  void SetUp() override { CANDOR_SKIP_WITHOUT_SHARED(); }

  [[nodiscard]] std::string path(const char* name) const { return (folder_.path() / name).string(); }

  /// A receipt of a short story, sampled.
  [[nodiscard]] std::string story(const char* name = "story.json", const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"run",    kStories,        "Once upon", "--raw",     "-n",
                                       "12",     "--temperature", "0.75",      "--seed",    "7",
                                       "--stop", "zzz",           "--quiet",   "--receipt", path(name)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return path(name);
  }

  [[nodiscard]] static Json read(const std::string& file) { return parse_json(read_file(file, 1 << 24), file); }

  /// Writes a changed copy whose own digest holds, as somebody who means harm would.
  [[nodiscard]] std::string changed(const std::string& file, const std::function<void(Json&)>& change) const {
    Json json = read(file);
    change(json);
    json.erase("receiptDigest");
    json["receiptDigest"] = canonical_digest(json);
    return folder_.write("changed.json", to_js_json(json)).string();
  }

  TestFolder folder_;
};

TEST_F(Receipts, HoldWhatReproducesTheAnswer) {
  const std::string file = story("story.json", {"--verify", "header", "--threads", "1"});
  const Json receipt = read(file);
  const Json plan = parse_json(run_program({"plan", "show", kStories, "--json"}).out, "plan");
  EXPECT_EQ(receipt["schema"], "candor.receipt/v1");
  EXPECT_EQ(receipt["program"].get<std::string>() + "\n", run_program({"--version"}).out);
  EXPECT_EQ(receipt["command"], "run");
  EXPECT_EQ(receipt["model"]["plan"], plan["planDigest"]);
  EXPECT_EQ(receipt["model"]["manifest"], plan["manifestDigest"]);
  for (const Json& step : plan["steps"])
    EXPECT_EQ(receipt["model"]["kernels"][step["kernel"].get<std::string>() + "#" + step["entry"].get<std::string>()],
              step["digest"]);
  EXPECT_THAT(receipt["model"]["weights"]["stories260K-f32.gguf"]["digest"].get<std::string>(), StartsWith("sha256:"));
  EXPECT_THAT(receipt["model"]["tokenizer"].get<std::string>(), StartsWith("sha256:"));
  EXPECT_TRUE(receipt["model"]["chatTemplate"].is_null());
  EXPECT_EQ(receipt["execution"]["backend"]["threads"], 1);
  EXPECT_EQ(receipt["execution"]["verification"]["mode"], "header");
  EXPECT_EQ(receipt["request"]["sampler"]["seed"], 7);
  EXPECT_EQ(receipt["request"]["sampler"]["temperature"], 0.75);
  EXPECT_EQ(receipt["request"]["maxTokens"], 12);
  EXPECT_EQ(receipt["request"]["stop"], Json::array({"zzz"}));
  EXPECT_GE(receipt["request"]["prompt"].size(), 2u);
  EXPECT_EQ(receipt["answer"]["tokens"].size(), 12u);
  EXPECT_EQ(receipt["answer"]["stop"]["reason"], "length");
}

TEST_F(Receipts, AreReplayedToTheSameTokensWhereverTheyRun) {
  const std::string file = story();
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--threads", "1", "--isa", "portable"}, {"--prefill-chunk", "1"}, {kStories}}) {
    std::vector<std::string> arguments{"replay", file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "The answer is the same: 12 tokens, length.\n");
  }
  const Json json = parse_json(run_program({"replay", file, "--json"}).out, "replay");
  EXPECT_EQ(json["same"], true);
  EXPECT_EQ(json["tokens"], read(file)["answer"]["tokens"]);
  EXPECT_TRUE(json["digestsThatDiffer"].empty());
}

TEST_F(Receipts, KeepTheOverlay) {
  const std::string file = story("f16.json", {"--session", "kvcache.kvDtype=f16"});
  EXPECT_EQ(read(file)["plan"]["session"]["kvcache"]["kvDtype"], "f16");
  EXPECT_EQ(run_program({"replay", file}).status, 0);
  EXPECT_NE(read(file)["model"]["plan"], read(story())["model"]["plan"]);
}

TEST_F(Receipts, AnAnswerThatIsAnotherIsNamedByItsToken) {
  const std::string file = story();
  const Json tokens = read(file)["answer"]["tokens"];
  const auto other = changed(file, [](Json& json) { json["answer"]["tokens"][4] = 1; });
  const Outcome outcome = run_program({"replay", other});
  EXPECT_EQ(outcome.status, 11) << outcome.err;
  EXPECT_EQ(outcome.out, fmt::format("The answer differs: the first that differs is number 5: token 1 in the receipt, "
                                     "token {} now.\n",
                                     to_js_json(tokens[4])));
  const auto longer = changed(file, [](Json& json) { json["answer"]["tokens"].push_back(1); });
  EXPECT_THAT(run_program({"replay", longer}).out, HasSubstr("number 13: token 1 in the receipt, the end now"));
  const auto reason = changed(file, [](Json& json) { json["answer"]["stop"]["reason"] = "stop_token"; });
  EXPECT_EQ(run_program({"replay", reason}).status, 11);
}

TEST_F(Receipts, OfAnotherModelNameTheDigestsThatDiffer) {
  const std::string file = story();
  const Outcome outcome = run_program({"replay", file, kLexicon});
  expect_error(outcome, 7, "this is not what the receipt is of");
  EXPECT_THAT(outcome.err, HasSubstr("plan: \"sha256:"));
  // One digest that is another: said, and with --anyway run.
  const std::string digest = "sha256:" + std::string(64, 'a');
  const auto kernel = changed(file, [&](Json& json) { json["model"]["kernels"].begin().value() = digest; });
  const Outcome refused = run_program({"replay", kernel});
  expect_error(refused, 7, digest);
  EXPECT_THAT(refused.err, HasSubstr("kernels.cpu/"));
  EXPECT_THAT(refused.err, Not(HasSubstr("weights")));
  const Outcome anyway = run_program({"replay", kernel, "--anyway"});
  EXPECT_EQ(anyway.status, 7);
  EXPECT_THAT(anyway.out, HasSubstr("The answer is the same"));
  EXPECT_THAT(anyway.err, HasSubstr(digest));
  const auto weights = changed(file, [&](Json& json) { json["model"]["weights"].begin().value()["digest"] = digest; });
  expect_error(run_program({"replay", weights}), 7, "weights.stories260K-f32.gguf.digest");
  const auto gone = changed(file, [](Json& json) { json["path"] = "/no/such/model"; });
  expect_error(run_program({"replay", gone}), 3, "/no/such/model");
  EXPECT_EQ(run_program({"replay", gone, kStories}).status, 0);
}

TEST_F(Receipts, ThatAreDamagedAreRefused) {
  const std::string file = story();
  const std::string text = read_file(file, 1 << 24);
  const auto write = [&](const std::string& content) { return folder_.write("damaged.json", content).string(); };
  std::string edited = text;
  edited.replace(edited.find("\"seed\": 7"), 9, "\"seed\": 8");
  expect_error(run_program({"replay", write(edited)}), 7, "it was changed after it was written");
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, text.size() / 2, text.size() - 3})
    expect_error(run_program({"replay", write(text.substr(0, size))}), 4, "not valid JSON");
  expect_error(run_program({"replay", write("[]")}), 4, "no receipt");
  expect_error(run_program({"replay", write(R"({"schema": "candor.receipt/v9"})")}), 5, "candor.receipt/v9");
  expect_error(run_program({"replay", write(R"({"schema": "candor.receipt/v1"})")}), 7, "receiptDigest is missing");
  expect_error(run_program({"replay", path("none.json")}), 3, "none.json");
  expect_error(run_program({"replay"}), 2, "RECEIPT");
}

TEST_F(Receipts, ThatAskForTooMuchOrAreOfTheWrongTypeAreRefusedByField) {
  const std::string file = story();
  const auto refuses = [&](const char* message, int status, const std::function<void(Json&)>& change) {
    SCOPED_TRACE(message);
    expect_error(run_program({"replay", changed(file, change)}), status, message);
  };
  refuses("request.maxTokens must be a whole number from 0 to 16777216; got 1e+300", 4,
          [](Json& json) { json["request"]["maxTokens"] = 1e300; });
  refuses("request.prompt[1] must be a token id; got -1", 4, [](Json& json) { json["request"]["prompt"][1] = -1; });
  refuses("request.prompt[0] must be a token id; got 1.5", 4, [](Json& json) { json["request"]["prompt"][0] = 1.5; });
  refuses("request.prompt must be a list of token ids; got \"x\"", 4,
          [](Json& json) { json["request"]["prompt"] = "x"; });
  refuses("outside the vocabulary of 512", 2, [](Json& json) { json["request"]["prompt"][0] = 4000000; });
  refuses("there are no tokens", 2, [](Json& json) { json["request"]["prompt"] = Json::array(); });
  refuses("request.stop has 1025 entries, more than 1024", 4,
          [](Json& json) { json["request"]["stop"] = Json::array_t(1025, Json("x")); });
  refuses("request.sampler.topP must be a number from 0 to 1; got null", 4,
          [](Json& json) { json["request"]["sampler"]["topP"] = nullptr; });
  refuses("request.sampler.seed must be a whole number from 0 to 9007199254740991; got -1", 4,
          [](Json& json) { json["request"]["sampler"]["seed"] = -1; });
  refuses("execution.context must be a whole number", 4, [](Json& json) { json["execution"]["context"] = 1e18; });
  refuses("a context of 16777216 positions exceeds the model's 512", 8,
          [](Json& json) { json["plan"]["context"] = 16777216; });
  refuses("model.weights.x.bytes must be a whole number", 4, [](Json& json) {
    json["model"]["weights"]["x"] = {{"bytes", -5}, {"digest", ""}};
  });
  refuses("model.plan must be \"sha256:\" and 64", 4, [](Json& json) { json["model"]["plan"] = "sha256:"; });
  refuses("model.kernels has 65537 entries, more than 65536", 4, [](Json& json) {
    Json::object_t many;
    for (int i = 0; i < 65537; ++i) many.emplace_back(fmt::format("k{}", i), Json());
    json["model"]["kernels"] = std::move(many);
  });
  refuses("plan.rows must be last or all; got \"some\"", 4, [](Json& json) { json["plan"]["rows"] = "some"; });
  refuses("session.kvcache.x is unknown", 6, [](Json& json) { json["plan"]["session"] = {{"kvcache", {{"x", 1}}}}; });
  refuses("receipt.answer is missing", 4, [](Json& json) { json.erase("answer"); });
  refuses("receipt.command must be run or logits; got \"train\"", 4, [](Json& json) { json["command"] = "train"; });
}

TEST_F(Receipts, OfLogitsHoldTheirDigest) {
  const std::string file = path("logits.json");
  ASSERT_EQ(run_program({"logits", kLlama, "--tokens", "1,2,3", "--receipt", file}).status, 0);
  EXPECT_EQ(read(file)["answer"]["shape"], Json::array({3, 320}));
  const Outcome same = run_program({"replay", file, "--threads", "1"});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_EQ(same.out, "The logits of 3 positions are the same to the bit.\n");
  const auto other = changed(file, [](Json& json) { json["answer"]["digest"] = "sha256:" + std::string(64, '0'); });
  EXPECT_EQ(run_program({"replay", other}).status, 11);
  const auto shape = changed(file, [](Json& json) { json["answer"]["shape"] = {1e300, 1e300}; });
  expect_error(run_program({"replay", shape}), 4, "answer.shape[0] must be a whole number");
}

TEST_F(Receipts, AreComparedByPlanDiff) {
  const std::string file = story();
  const std::string other = story("f16.json", {"--session", "kvcache.kvDtype=f16"});
  const auto changes = [](const std::vector<std::string>& arguments) {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::vector<std::string> subjects;
    const Json document = parse_json(outcome.out, "diff");
    for (const Json& change : document["changes"]) subjects.push_back(change["subject"]);
    return subjects;
  };
  EXPECT_THAT(changes({"plan", "diff", file, file, "--json"}), testing::IsEmpty());
  EXPECT_THAT(changes({"plan", "diff", file, other, "--json"}),
              testing::IsSupersetOf({std::string("model.plan"), std::string("plan.session.kvcache.kvDtype")}));
  EXPECT_THAT(changes({"plan", "diff", kStories, file, "--json"}), testing::IsEmpty());
  EXPECT_THAT(changes({"plan", "diff", file, kLexicon, "--json"}), testing::Contains("tokenizer"));
  expect_error(run_program({"plan", "diff", file, kStories, "--session", "kvcache.kvDtype=f16"}), 2, "are for models");
  const std::string overlay = folder_.write("overlay.json", R"({"session": {}})").string();
  expect_error(run_program({"plan", "diff", file, overlay}), 2, "compare two of a kind");
}

TEST_F(Receipts, AreOfOnePrompt) {
  expect_error(run_program({"logits", kLlama, "--tokens", "1", "--receipt", "/no/such/folder/x"}), 3, "--receipt");
  // Nothing is left beside the file.
  (void)story();
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder_.path())) files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, 1u);
}

}  // namespace
}  // namespace candor
