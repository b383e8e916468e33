// candor plan, kernels and rebind: what they say is what the plan holds, and a pin that does not hold is refused.
#include <fmt/format.h>

#include <cstring>
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
  for (const char* unknown : {"foo", "kvIO.foo", "precision"})
    expect_error(run_program({"plan", "why", kLlama, fmt::format("q_proj.{}", unknown)}), 2,
                 fmt::format("has no field \"{}\" to explain; the fields are inputDtype, mathDtype", unknown));
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

TEST_F(Plan, DiffOfACacheDtypeNamesPlanProgramAndMemoryAndNothingElse) {
  const Json same = json_of(run_program({"plan", "diff", kLlama, "--json"}));
  EXPECT_TRUE(same["changes"].empty());
  EXPECT_EQ(same["before"], same["after"]);
  const Json changed = json_of(run_program({"plan", "diff", kLlama, "--session", "kvcache.kvDtype=f16", "--json"}));
  std::vector<std::string> lines;
  for (const Json& change : changed["changes"])
    lines.push_back(change["where"].get<std::string>() + " " + change.value("field", change.value("subject", "")));
  EXPECT_THAT(lines,
              testing::ElementsAre("session kvcache.kvDtype", "prefill kvIO.readDtype", "prefill kvIO.writeDtype",
                                   "decode kvIO.readDtype", "decode kvIO.writeDtype", "program memory.kvCache",
                                   "program kv of layers 0-2.encoding", "program kv of layers 0-2.pageBytes"));
  const Json& memory = changed["changes"][5];
  EXPECT_EQ(std::stoull(memory["before"].get<std::string>()), 2 * std::stoull(memory["after"].get<std::string>()));
}

TEST_F(Plan, DiffOfFilesByWhatTheyHold) {
  const std::string overlay = folder_.write("overlay.json", R"({"session": {"kvcache": {"kvDtype": "f16"}}})").string();
  const std::string other = folder_.write("other.json", R"({"session": {"kvcache": {"layout": "paged"}}})").string();
  // A model with an overlay is the model under that overlay.
  const Json laid = json_of(run_program({"plan", "diff", kLlama, overlay, "--json"}));
  EXPECT_EQ(laid, json_of(run_program({"plan", "diff", kLlama, "--overlay", overlay, "--json"})));
  // Two overlays differ as texts, and on a model in what they touch.
  EXPECT_EQ(json_of(run_program({"plan", "diff", overlay, other, "--json"}))["changes"].size(), 2u);
  EXPECT_GT(json_of(run_program({"plan", "diff", overlay, other, "--on", kLlama, "--json"}))["changes"].size(), 8u);
  // Manifests are compared as they are written, also where one does not compile.
  const std::string manifest =
      folder_.write("a.json", R"({"inference": {"execution": {"steps": [{"id": "x", "op": "a"}, {"id": "y"}]}}})")
          .string();
  const std::string edited =
      folder_.write("b.json", R"({"inference": {"execution": {"steps": [{"id": "y"}, {"id": "x", "op": "b"}]}}})")
          .string();
  const Json steps = json_of(run_program({"plan", "diff", manifest, edited, "--json"}));
  ASSERT_EQ(steps["changes"].size(), 1u);
  EXPECT_EQ(steps["changes"][0]["subject"], "inference.execution.steps.x.op");
  // Answers leave their times out.
  const std::string answer = folder_.write("c.json", R"({"planDigest": "a", "seed": 1, "stats": {"s": 1}})").string();
  const std::string again = folder_.write("d.json", R"({"planDigest": "a", "seed": 2, "stats": {"s": 2}})").string();
  EXPECT_EQ(json_of(run_program({"plan", "diff", answer, again, "--json"}))["changes"].size(), 1u);

  expect_error(run_program({"plan", "diff", manifest, overlay}), 2, "compare two of a kind");
  expect_error(run_program({"plan", "diff", kLlama, overlay, "--session", "a=1"}), 2, "are for models");
  expect_error(run_program({"plan", "diff", kLlama, "--on", kLlama}), 2, "it is for two overlays");
  const std::string broken = folder_.write("e.json", "{").string();
  expect_error(run_program({"plan", "diff", broken, overlay}), 4, "e.json");
  const std::string nothing = folder_.write("f.json", "[1]").string();
  expect_error(run_program({"plan", "diff", nothing, overlay}), 2, "neither a manifest");
  expect_error(run_program({"plan", "diff", "no-such.json"}), 3, "no-such.json");
}

TEST_F(Plan, DiffOfTwoModelsNamesTensorsAndWhoReadsThem) {
  const std::string converted = artifact({"--no-golden", "--quant", "f16"});
  const Json json = json_of(run_program({"plan", "diff", kLlama, converted, "--json"}));
  bool found = false;
  for (const Json& change : json["changes"]) {
    if (change["where"] != "tensors" || change["subject"] != "model.layers.1.mlp.up_proj.weight") continue;
    found = true;
    EXPECT_EQ(change["field"], "encoding");
    EXPECT_EQ(change["after"], "\"f16\"");
    EXPECT_THAT(change["touches"][0].get<std::string>(), HasSubstr("up_proj"));
  }
  EXPECT_TRUE(found);
}

TEST_F(Plan, LintOfTheOriginalsPresetsSaysWhatWouldMendThem) {
  const std::string registry = CANDOR_SHARED_DIR "/reference/original-registry";
  const Outcome outcome = run_program({"plan", "lint", "--registry", registry, "--json"});
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  const Json reports = parse_json(outcome.out, "output");
  EXPECT_EQ(reports.size(), 14u);
  std::size_t compiled = 0;
  for (const auto& [id, report] : reports.items()) {
    SCOPED_TRACE(id);
    if (report["refused"].is_null()) {
      ++compiled;
      EXPECT_TRUE(report["findings"].empty());
      EXPECT_GE(report["steps"].get<int>(), 31);
      continue;
    }
    EXPECT_THAT(id, StartsWith("gemma2-"));
    const std::string file = id.ends_with("f16a") ? "sample_f16.wgsl" : "sample.wgsl";
    EXPECT_THAT(report["refused"].get<std::string>(), HasSubstr(file + "#apply_softcap"));
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_EQ(report["findings"][0]["subject"], "sampling[0] softcap");
    EXPECT_THAT(report["findings"][0]["remedy"].get<std::string>(), HasSubstr("tried, and the path gives "));
  }
  EXPECT_EQ(compiled, 9u);
  EXPECT_EQ(run_program({"plan", "lint", "--registry", registry, "--kernel-path", "gemma3-q4k-dequant-f32a"}).status,
            0);
  expect_error(run_program({"plan", "lint", "--registry", registry, "--kernel-path", "gemma9"}), 3, "gemma9");
  expect_error(run_program({"plan", "lint"}), 2, "nothing to lint");
  expect_error(run_program({"plan", "lint", "--registry", "/no/such"}), 3, "/no/such");
  const std::string rules = CANDOR_SOURCE_DIR "/kernel_paths/cpu.json";
  expect_error(run_program({"plan", "lint", "--kernel-path", rules}), 2, "holds rules");
}

TEST_F(Plan, LintOfAModelAndItsOverlay) {
  const Outcome clean = run_program({"plan", "lint", kLlama});
  EXPECT_EQ(clean.status, 0) << clean.out;
  const Outcome wiped = run_program({"plan", "lint", kLlama, "--session", "kvcache=null", "--json"});
  EXPECT_EQ(wiped.status, 6);
  const Json json = parse_json(wiped.out, "output");
  EXPECT_THAT(json["refused"].get<std::string>(), HasSubstr("would wipe"));
  EXPECT_EQ(json["findings"][0]["code"], "null-wipes-session");
}

/// The older format's steps do not describe all of a computation, so a model is refused with what is missing.
TEST_F(Plan, AKernelPathOfStepsIsReadAndRefusedForWhatItLacks) {
  const auto path = folder_.write("path.json", R"({"id": "mine", "name": "Mine", "activationDtype": "f32",
      "preLayer": [{"op": "embed", "kernel": "cpu/gather.cpp", "weights": "model.embed_tokens.weight"}],
      "decode": {"steps": [{"op": "attention", "kernel": "cpu/attention.cpp"}]}})");
  expect_error(run_program({"plan", "show", kLlama, "--kernel-path", path}), 6, "preLayer_both_0_embed");
  const auto unknown = folder_.write("unknown.json", R"({"id": "mine", "decode": {"steps": [
      {"op": "attention", "kernel": "cpu/no_such.cpp"}]}})");
  expect_error(run_program({"plan", "show", kLlama, "--kernel-path", unknown}), 6, "cpu/no_such.cpp");
  expect_error(run_program({"plan", "show", kLlama, "--registry", folder_.path().string()}), 3, "registry.json");
}

TEST_F(Plan, GraphIsAPictureOfEveryStepWithOneLayerDrawn) {
  const Json shown = json_of(run_program({"plan", "show", kLlama, "--phase", "decode", "--json"}));
  const Outcome svg = run_program({"plan", "graph", kLlama});
  ASSERT_EQ(svg.status, 0) << svg.err;
  EXPECT_THAT(svg.out, StartsWith("<svg "));
  EXPECT_THAT(svg.out, testing::EndsWith("</svg>\n"));
  EXPECT_THAT(svg.out, HasSubstr("layers 0–2, 3 times"));
  std::size_t boxes = 0;
  for (std::size_t at = svg.out.find("rx=\"5\""); at != std::string::npos; at = svg.out.find("rx=\"5\"", at + 1))
    ++boxes;
  EXPECT_EQ(boxes, shown["steps"].size());
}

TEST_F(Plan, CompareNamesTheFirstStepThatDiffers) {
  const std::vector<std::string> base{"compare", kLlama, "--tokens", "1,2,3,4,5", "--threads", "1"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  };
  const Json same = json_of(with({"--json", "--other-isa", "portable"}));
  EXPECT_TRUE(same["first"].is_null());
  const Outcome differs = with({"--json", "--session", "kvcache.kvDtype=f16"});
  EXPECT_EQ(differs.status, 11) << differs.err;
  const Json json = parse_json(differs.out, "output");
  EXPECT_EQ(json["first"]["op"], "attention");
  EXPECT_EQ(json["first"]["layer"], 0);
  EXPECT_EQ(json["steps"].size(), same["steps"].size());
  const Outcome text = with({"--session", "kvcache.kvDtype=f16"});
  EXPECT_EQ(text.status, 11) << text.err;
  EXPECT_THAT(text.out, HasSubstr("The first step that differs is " + json["first"]["step"].get<std::string>() +
                                  " (attention) in layer 0"));
  const Outcome bounded = with({"--session", "kvcache.kvDtype=f16", "--bound", "0.5"});
  EXPECT_EQ(bounded.status, 0) << bounded.err;
  EXPECT_THAT(bounded.out, HasSubstr("No step differs by more than 0.5"));
  expect_error(with({"--bound", "-1"}), 2, "--bound");
  expect_error(run_program({"compare", kLlama, "--tokens", "1,999999"}), 2, "999999");
  expect_error(run_program({"compare", kLlama, "--text", ""}), 5, "no tokenizer");
  expect_error(run_program({"compare", kLlama, "--tokens", "1,2,3", "--context", "2"}), 8, "the context of 2");
  expect_error(run_program({"compare", kLlama}), 2, "--tokens");
  expect_error(run_program({"compare", kLlama, "no-such-model", "--tokens", "1"}), 3, "no-such-model");
}

TEST_F(Plan, ProbesShowAndSaveWhatAStepWrote) {
  const std::string file = (folder_.path() / "probe.safetensors").string();
  const Json json = json_of(run_program({"logits", kLlama, "--tokens", "1,2,3", "--probe", "attention:1", "--probe",
                                         "lm_head", "--probe-out", file, "--json"}));
  ASSERT_EQ(json["probes"].size(), 2u);
  EXPECT_EQ(json["probes"][0]["layer"], 1);
  EXPECT_EQ(json["probes"][0]["shape"], Json::array({3, 64}));
  EXPECT_EQ(json["probes"][1]["shape"], Json::array({3, 320}));
  EXPECT_FALSE(json.contains("file"));
  const std::string bytes = read_file(file, 1 << 24);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const Json header = parse_json(bytes.substr(8, length), "header");
  const std::string name = "prefill." + json["probes"][0]["step"].get<std::string>() + ".1";
  EXPECT_EQ(header[name]["dtype"], "F32");
  EXPECT_EQ(header[name]["shape"], Json::array({3, 64}));
  EXPECT_EQ(header["__metadata__"]["planDigest"], json["planDigest"]);
  EXPECT_EQ(bytes.size(), 8 + length + (3 * 64 + 3 * 320) * 4);

  expect_error(run_program({"logits", kLlama, "--tokens", "1"}), 2, "--probe");
  expect_error(run_program({"logits", kLlama, "--tokens", "1", "--probe-out", file, "--out", file + ".out"}), 2,
               "no step is probed");
  expect_error(run_program({"logits", kLlama, "--tokens", "1", "--probe", "nothing"}), 3, "the ops are");
  expect_error(run_program({"logits", kLlama, "--tokens", "1", "--probe", "attention:-1"}), 2, "counted from 0");
  expect_error(run_program({"logits", kLlama, "--tokens", "1", "--probe", "attention:99999999999"}), 2,
               "counted from 0");
  expect_error(run_program({"logits", kLlama, "--tokens", "1", "--probe", "attention:3"}), 2, "it runs in 0, 1, 2");
}

/// Writes a manifest back, with its own digest mended or as it was.
void write_manifest(const fs::path& path, Json manifest, bool sealed) {
  if (sealed) {
    manifest.erase("manifestDigest");
    manifest["manifestDigest"] = canonical_digest(manifest);
  }
  write_file_atomically(path, to_js_json(manifest, 2));
}

/// "sha256:…" with another last digit.
std::string edited(std::string digest) {
  digest.back() = digest.back() == '0' ? '1' : '0';
  return digest;
}

TEST_F(Plan, EditedDigestIsRefusedWithStepExpectedAndFound) {
  const fs::path manifest = fs::path(artifact({"--no-golden"})) / "manifest.json";
  const std::string model = manifest.parent_path().string();
  const std::string out = (folder_.path() / "x").string();
  const Json original = parse_json(read_file(manifest, 1 << 24), "manifest");
  Json json = original;
  Json& step = json["inference"]["execution"]["steps"][3];
  const std::string expected = step["kernelRef"]["digest"].get<std::string>();
  step["kernelRef"]["digest"] = edited(expected);
  const std::vector<std::vector<std::string>> commands{
      {"plan", "show", model}, {"run", model, "hello"},      {"verify", model},
      {"inspect", model},      {"rebind", model, "--check"}, {"logits", model, "--tokens", "1,2", "--out", out}};
  // As a person edits it, the manifest's own digest does not hold either; both are said.
  write_manifest(manifest, json, false);
  for (const auto& command : commands) {
    SCOPED_TRACE(command.front());
    const Outcome outcome = run_program(command);
    expect_error(outcome, 7, "it was changed after it was written");
    EXPECT_THAT(outcome.err, HasSubstr(fmt::format("step \"{}\"", step["id"].get<std::string>())));
    EXPECT_THAT(outcome.err, HasSubstr(fmt::format("expected to be {}; found {}", expected, edited(expected))));
  }
  // With that digest mended, what is found is the pin alone, and rebind the remedy.
  write_manifest(manifest, json, true);
  for (const auto& command : commands) {
    SCOPED_TRACE(command.front());
    const Outcome outcome = run_program(command);
    EXPECT_EQ(outcome.status, command.front() == "inspect" ? 0 : 7) << outcome.err;
    if (command.front() == "inspect" || command.front() == "rebind") continue;
    EXPECT_THAT(outcome.err, HasSubstr(fmt::format("expected to be {}; found {}", expected, edited(expected))));
    EXPECT_THAT(outcome.err, HasSubstr("candor rebind"));
  }
  // Any other change is the seal's.
  json = original;
  json["inference"]["execution"]["steps"][3]["note"] = "changed";
  write_manifest(manifest, json, false);
  const Outcome other = run_program({"plan", "show", model});
  expect_error(other, 7, "it was changed after it was written");
  EXPECT_THAT(other.err, testing::Not(HasSubstr("expected to be")));
}

/// A step's pin or a profile's alone, in whatever digit: rebind --check and run agree, and rebind mends it.
TEST_F(Plan, RebindAndRunAgreeOnEveryPin) {
  const fs::path manifest = fs::path(artifact({"--no-golden"})) / "manifest.json";
  const std::string model = manifest.parent_path().string();
  const Json original = parse_json(read_file(manifest, 1 << 24), "manifest");
  for (const bool of_step : {true, false}) {
    for (const char* field : {"digest", "version"}) {
      SCOPED_TRACE(fmt::format("{} of a {}", field, of_step ? "step" : "profile"));
      Json json = original;
      Json& ref = of_step ? json["inference"]["execution"]["steps"][3]["kernelRef"]
                          : json["inference"]["sessionDefaults"]["compute"]["kernelProfiles"][1]["kernelRef"];
      ref[field] = std::string_view(field) == "digest" ? edited(ref["digest"].get<std::string>()) : "1.0.1";
      write_manifest(manifest, json, true);
      expect_error(run_program({"plan", "show", model}), 7, "candor rebind");
      const Outcome check = run_program({"rebind", model, "--check"});
      EXPECT_EQ(check.status, 7) << check.err;
      EXPECT_THAT(check.out, HasSubstr(of_step ? "layer_" : "kernel profile 1"));
      EXPECT_EQ(run_program({"rebind", model}).status, 0);
      EXPECT_EQ(run_program({"rebind", model, "--check"}).status, 0);
      EXPECT_EQ(run_program({"plan", "show", model}).status, 0);
    }
  }
}

TEST_F(Plan, SettingsThatRepeatTheManifestChangeNothing) {
  const Json plain = json_of(run_program({"plan", "show", kLlama, "--json"}));
  for (const char* setting : {"kvcache={}", "compute={}", "decodeLoop={}", "compute.defaults={}", "decodeLoop=null",
                              "kvcache.kvDtype=f32", "compute.defaults.mathDtype=f32"}) {
    SCOPED_TRACE(setting);
    const Json same = json_of(run_program({"plan", "diff", kLlama, "--session", setting, "--json"}));
    EXPECT_EQ(same["before"], plain["planDigest"]);
    EXPECT_EQ(same["after"], same["before"]);
    EXPECT_TRUE(same["changes"].empty());
  }
  for (const char* setting : {"decodeLoop.batchSize=4", "kvcache.maxSeqLen=64", "kvcache.layout=paged"}) {
    SCOPED_TRACE(setting);
    const Json other = json_of(run_program({"plan", "diff", kLlama, "--session", setting, "--json"}));
    EXPECT_NE(other["after"], other["before"]);
    EXPECT_FALSE(other["changes"].empty());
  }
}

TEST_F(Plan, TheDigestOfLogitsIsThatOfAllRows) {
  const Json logits =
      json_of(run_program({"logits", kLlama, "--tokens", "1", "--out", (folder_.path() / "x").string(), "--json"}));
  const Json diff = json_of(run_program({"plan", "diff", kLlama, "--rows", "all", "--json"}));
  EXPECT_EQ(diff["after"], logits["planDigest"]);
  EXPECT_NE(diff["before"], diff["after"]);
  ASSERT_FALSE(diff["changes"].empty());
  EXPECT_EQ(diff["changes"][0]["field"], "constants.rows");
}

/// The same answer whether the overlay or the manifest asks for it.
TEST_F(Plan, SettingsThatNoBackendObeysAreRefusedFromEverywhere) {
  const fs::path manifest = fs::path(artifact({"--no-golden"})) / "manifest.json";
  const std::string model = manifest.parent_path().string();
  const Json original = parse_json(read_file(manifest, 1 << 24), "manifest");
  for (const char* setting : {"ringStaging=2", "disableCommandBatching=true"}) {
    SCOPED_TRACE(setting);
    const Outcome overlaid = run_program({"plan", "show", model, "--session", std::string("decodeLoop.") + setting});
    expect_error(overlaid, 6, std::string("session.decodeLoop.") + setting + " would do nothing");
    Json json = original;
    const std::string_view text = setting;
    const std::string key(text.substr(0, text.find('=')));
    json["inference"]["sessionDefaults"]["decodeLoop"] = {{key, parse_json(text.substr(text.find('=') + 1), key)}};
    write_manifest(manifest, json, true);
    EXPECT_EQ(run_program({"plan", "show", model}).err, overlaid.err);
    write_manifest(manifest, original, true);
  }
}

TEST_F(Plan, CompareOfModelsWithNothingInCommonIsAnError) {
  expect_error(run_program({"compare", kLlama, kLexicon, "--tokens", "1,2"}), 6, "there is nothing to compare");
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
