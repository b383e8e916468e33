// candor plan, kernels and rebind: what they say is what the plan holds, and a pin that does not hold is refused.
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "cli/program.h"
#include "formats/test_folder.h"

namespace candor {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kLlama = CANDOR_SHARED_DIR "/goldens/hf/llama";

Json json_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return parse_json(outcome.out, "output");
}

class Plan : public testing::Test {
 protected:
  void SetUp() override { CANDOR_SKIP_WITHOUT_SHARED(); }

  /// An artifact made of the tiny Llama.
  [[nodiscard]] std::string artifact(const std::vector<std::string>& options = {}) const {
    const std::string path = (folder_.path() / "llama").string();
    std::vector<std::string> arguments{"convert", kLlama, path};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return path;
  }

  TestFolder folder_;
};

TEST_F(Plan, ShowListsStepsWithKernelsAndDtypes) {
  const Outcome text = run_program({"plan", "show", kLlama});
  ASSERT_EQ(text.status, 0) << text.err;
  const Json json = json_of(run_program({"plan", "show", kLlama, "--json"}));
  EXPECT_THAT(text.out, HasSubstr(json["planDigest"].get<std::string>()));
  std::size_t attention = 0;
  for (const Json& step : json["steps"]) {
    EXPECT_THAT(text.out, HasSubstr(step["id"].get<std::string>()));
    EXPECT_THAT(step["digest"].get<std::string>(), StartsWith("sha256:"));
    if (step["op"] == "attention") ++attention;
  }
  EXPECT_EQ(attention, 1u);
}

TEST_F(Plan, ShowOfOneLayerHasItsWeights) {
  const Outcome outcome = run_program({"plan", "show", kLlama, "--layer", "1", "--phase", "decode"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("model.layers.1.self_attn.q_proj.weight"));
  expect_error(run_program({"plan", "show", kLlama, "--layer", "99"}), 2, "99");
}

TEST_F(Plan, WhyNamesTheSourceAndWhatLost) {
  const Json plain = json_of(run_program({"plan", "why", kLlama, "q_proj.mathDtype", "--json"}));
  const Json& field = plain["explanations"][0]["fields"]["mathDtype"];
  EXPECT_EQ(field["source"], "manifest");
  EXPECT_EQ(field["place"], "sessionDefaults.compute.defaults.mathDtype");

  const std::string id = plain["explanations"][0]["step"].get<std::string>();
  const auto patch = folder_.write(
      "patch.json", R"({"set": [{"id": ")" + id + R"(", "precision": {"mathDtype": "f32", "accumDtype": "f32"}}]})");
  const Json patched = json_of(run_program({"plan", "why", kLlama, id, "--patch", patch, "--json"}));
  const Json& changed = patched["explanations"][0]["fields"]["mathDtype"];
  EXPECT_EQ(changed["source"], "runtime.patch");
  EXPECT_EQ(changed["place"], "executionPatch.set[0].precision.mathDtype");
  ASSERT_GE(changed["lost"].size(), 1u);
  EXPECT_EQ(changed["lost"][0]["source"], "manifest");
  EXPECT_NE(patched["planDigest"], plain["planDigest"]);

  expect_error(run_program({"plan", "why", kLlama, "no_such_step"}), 3, "no_such_step");
  expect_error(run_program({"plan", "why", kLlama, "q_proj.kvIO.readDtype"}), 2, "attention");
}

TEST_F(Plan, ExportIsWhatTheDigestIsOf) {
  const Outcome outcome = run_program({"plan", "export", kLlama});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ("sha256:" + sha256_hex(outcome.out) + "\n", outcome.err);
}

TEST_F(Plan, ProgramKnowsItsMemory) {
  const Json json = json_of(run_program({"plan", "program", kLlama, "--json"}));
  EXPECT_GT(json["memory"]["kvCache"].get<double>(), 0);
  EXPECT_FALSE(json["prefill"].empty());
  const Json decode = json_of(run_program({"plan", "program", kLlama, "--json", "--phase", "decode", "--layer", "0"}));
  EXPECT_FALSE(decode.contains("prefill"));
  for (const Json& instruction : decode["decode"]) EXPECT_EQ(instruction["layer"], 0);
  EXPECT_EQ(run_program({"plan", "program", kLlama}).status, 0);
}

TEST_F(Plan, DiffShowsWhatAnOverlayChanges) {
  const Json same = json_of(run_program({"plan", "diff", kLlama, "--json"}));
  EXPECT_TRUE(same["changes"].empty());
  const Json changed = json_of(run_program({"plan", "diff", kLlama, "--session", "kvcache.kvDtype=f16", "--json"}));
  EXPECT_FALSE(changed["changes"].empty());
}

TEST_F(Plan, EditedDigestIsRefusedWithStepExpectedAndFound) {
  const fs::path manifest = fs::path(artifact({"--no-golden"})) / "manifest.json";
  Json json = parse_json(read_file(manifest, 1 << 24), "manifest");
  Json& step = json["inference"]["execution"]["steps"][3];
  std::string digest = step["kernelRef"]["digest"].get<std::string>();
  const std::string expected = digest;
  digest.back() = digest.back() == '0' ? '1' : '0';
  step["kernelRef"]["digest"] = digest;
  json.erase("manifestDigest");
  // The manifest's own digest is mended, so that what is found is the pin.
  json["manifestDigest"] = canonical_digest(json);
  write_file_atomically(manifest, to_js_json(json, 2));

  const std::string model = manifest.parent_path().string();
  const Outcome outcome = run_program({"plan", "show", model});
  expect_error(outcome, 7, step["id"].get<std::string>());
  EXPECT_THAT(outcome.err, HasSubstr(digest));
  EXPECT_THAT(outcome.err, HasSubstr(expected));
  expect_error(run_program({"logits", model, "--tokens", "1,2", "--out", (folder_.path() / "x").string()}), 7, digest);
}

TEST_F(Plan, RebindPinsAnewWhatWentStale) {
  const std::string model = artifact();
  EXPECT_EQ(run_program({"rebind", model, "--check"}).status, 0);
  const fs::path manifest = fs::path(model) / "manifest.json";
  Json json = parse_json(read_file(manifest, 1 << 24), "manifest");
  ASSERT_TRUE(json.contains("golden"));
  Json& ref = json["inference"]["execution"]["steps"][3]["kernelRef"];
  ref["digest"] = "sha256:" + std::string(64, '0');
  json.erase("manifestDigest");
  json["manifestDigest"] = canonical_digest(json);
  write_file_atomically(manifest, to_js_json(json, 2));

  const std::string before = read_file(manifest, 1 << 24);
  EXPECT_EQ(run_program({"rebind", model, "--check"}).status, 7);
  EXPECT_EQ(read_file(manifest, 1 << 24), before);
  const Outcome outcome = run_program({"rebind", model});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("the same bits"));
  EXPECT_EQ(run_program({"rebind", model, "--check"}).status, 0);
  EXPECT_EQ(run_program({"plan", "show", model}).status, 0);
}

TEST_F(Plan, RebindRefusesWhereGoldenLogitsMove) {
  const std::string model = artifact();
  const fs::path manifest = fs::path(model) / "manifest.json";
  Json json = parse_json(read_file(manifest, 1 << 24), "manifest");
  json["inference"]["execution"]["steps"][3]["kernelRef"]["digest"] = "sha256:" + std::string(64, '0');
  json["golden"]["largest"][2]["logit"] = json["golden"]["largest"][2]["logit"].get<double>() * 2 + 1;
  json.erase("manifestDigest");
  json["manifestDigest"] = canonical_digest(json);
  const std::string before = to_js_json(json, 2);
  write_file_atomically(manifest, before);
  const Outcome outcome = run_program({"rebind", model});
  EXPECT_EQ(outcome.status, 7);
  EXPECT_THAT(outcome.err, HasSubstr("--tolerance"));
  EXPECT_EQ(read_file(manifest, 1 << 24), before);
  EXPECT_EQ(run_program({"rebind", model, "--tolerance", "1"}).status, 0);
}

TEST(Kernels, ListAndVerify) {
  const Json json = json_of(run_program({"kernels", "list", "--json"}));
  EXPECT_GT(json["kernels"].size(), 10u);
  const Json some = json_of(run_program({"kernels", "list", "matmul", "--json"}));
  EXPECT_LT(some["kernels"].size(), json["kernels"].size());
  expect_error(run_program({"kernels", "list", "matmull"}), 3, "matmull");
  EXPECT_EQ(run_program({"kernels", "verify", CANDOR_SOURCE_DIR "/src"}).status, 0);
  expect_error(run_program({"kernels", "verify", CANDOR_SOURCE_DIR "/docs"}), 3, "kernels");
}

TEST(Kernels, VerifyFindsAChangedSource) {
  const TestFolder folder;
  fs::copy(CANDOR_SOURCE_DIR "/src", folder.path() / "src", fs::copy_options::recursive);
  const fs::path kernel = folder.path() / "src/kernels/cpu/rmsnorm.cpp";
  write_file_atomically(kernel, read_file(kernel, 1 << 24) + "// changed\n");
  const Outcome outcome = run_program({"kernels", "verify", (folder.path() / "src").string()});
  EXPECT_EQ(outcome.status, 7);
  EXPECT_THAT(outcome.out, HasSubstr("cpu/rmsnorm.cpp#main"));
}

}  // namespace
}  // namespace candor
