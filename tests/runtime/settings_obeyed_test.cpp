// Session settings change what runs, and show in the Program: KV cache layouts, the decode loop, and what is refused
// because it would do nothing.
#include <gmock/gmock.h>

#include "kernels/kernel_ref.h"
#include "runtime/generate.h"
#include "runtime/tiny_llama.h"

namespace candor::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SettingsTest : public TinyLlama {
 protected:
  /// A patch that gives every attention step this window.
  static std::string window_patch(std::uint32_t window) {
    const CompiledModel model = compile_model(kTinyLlama, {});
    Json patch{{"set", Json::array()}};
    for (const plan::ResolvedStep& step : model.plan.prefill) {
      if (step.op != "attention") continue;
      Json constants = step.raw["constants"];
      constants["window"] = window;
      patch["set"].push_back({{"id", step.id}, {"constants", std::move(constants)}});
    }
    return to_js_json(patch);
  }

  /// Greedy tokens after a prompt of nine.
  struct Run {
    GenerationResult result;
    std::vector<std::size_t> decoded_at_delivery;  ///< decode runs made when each token arrived
    std::size_t decoded = 0;
  };

  static Run generate_with(std::string_view session_settings, std::vector<std::uint32_t> stop_tokens,
                           std::uint32_t max_tokens = 20) {
    LoadedModel model = load(plan(session_settings, {}, RowSelection::last));
    Session session(model);
    Run run;
    session.observe([&](Phase phase, std::size_t instruction) {
      if (phase == Phase::decode && instruction == 0) ++run.decoded;
    });
    Sequence sequence;
    const auto prompt = some_tokens(9);
    GenerationRequest request;
    request.prompt = prompt;
    request.max_tokens = max_tokens;
    request.stop_tokens = stop_tokens;
    run.result = generate(session, sequence, request, [&](std::uint32_t) {
      run.decoded_at_delivery.push_back(run.decoded);
      return true;
    });
    // The last token of a full length is delivered without being computed; nothing past the answer stays.
    EXPECT_LE(sequence.tokens.size(), prompt.size() + run.result.tokens.size());
    EXPECT_GE(sequence.tokens.size() + 1, prompt.size() + run.result.tokens.size());
    return run;
  }
};

TEST_F(SettingsTest, LayoutsGiveTheSameBits) {
  LoadedModel contiguous = load(plan());
  LoadedModel paged = load(plan(R"({"kvcache": {"layout": "paged", "pageSize": 16}})"));
  EXPECT_EQ(contiguous.program().limits.pages, 1u);
  EXPECT_EQ(paged.program().limits.pages, 16u);
  EXPECT_EQ(paged.program().limits.page_positions, 16u);
  EXPECT_EQ(paged.program().summary()["limits"]["layout"], "paged");
  const auto tokens = some_tokens(100);
  EXPECT_TRUE(same_bits(logits(contiguous, tokens), logits(paged, tokens)));
}

TEST_F(SettingsTest, SlidingKeepsTheWindowAndGivesTheSameBitsInLessMemory) {
  const std::string patch = window_patch(24);
  LoadedModel contiguous = load(plan({}, patch));
  LoadedModel sliding = load(plan(R"({"kvcache": {"layout": "sliding", "pageSize": 16}})", patch));
  const ProgramLimits& limits = sliding.program().limits;
  EXPECT_EQ(limits.window, 24u);
  EXPECT_EQ(limits.pages, 3u);  // 24 - 1 seen, 1 that may be taken back, 8 rows: 32 positions, anywhere in a page
  EXPECT_EQ(sliding.program().kv_bytes() * 16, contiguous.program().kv_bytes() * 3);
  const auto tokens = some_tokens(200);
  EXPECT_TRUE(same_bits(logits(contiguous, tokens), logits(sliding, tokens)));
  // A window that is larger than the steps' keeps more and changes nothing.
  LoadedModel wide = load(plan(R"({"kvcache": {"layout": "sliding", "pageSize": 32, "windowSize": 50}})", patch));
  EXPECT_EQ(wide.program().limits.window, 50u);
  EXPECT_TRUE(same_bits(logits(contiguous, tokens), logits(wide, tokens)));
}

TEST_F(SettingsTest, SlidingRefusesAttentionThatSeesMore) {
  EXPECT_THAT(refusal([] { (void)bound(plan(R"({"kvcache": {"layout": "sliding"}})")); }),
              HasSubstr("sees every position; use layout paged, or patch the step's constant \"window\""));
  EXPECT_THAT(
      refusal([] { (void)bound(plan(R"({"kvcache": {"layout": "sliding", "windowSize": 16}})", window_patch(24))); }),
      HasSubstr("keeps 16 positions (windowSize), but step"));
}

TEST_F(SettingsTest, SlidingRefusesToGoBackToWhatItDropped) {
  LoadedModel model = load(plan(R"({"kvcache": {"layout": "sliding", "pageSize": 16}})", window_patch(24)));
  Session session(model);
  Sequence sequence;
  session.compute(sequence, some_tokens(150), Phase::prefill);
  session.truncate(sequence, 149);  // the decode loop may take a token back
  EXPECT_EQ(sequence.tokens.size(), 149u);
  EXPECT_THAT(refusal([&] { session.truncate(sequence, 60); }), HasSubstr("has dropped positions before"));
  EXPECT_EQ(sequence.tokens.size(), 149u);
  session.truncate(sequence, 0);
  session.compute(sequence, some_tokens(150), Phase::prefill);
}

TEST_F(SettingsTest, KvDtypeChangesPlanProgramAndMemory) {
  const CompiledModel full = compile_model(kTinyLlama, plan());
  const CompiledModel half = compile_model(kTinyLlama, plan(R"({"kvcache": {"kvDtype": "f16"}})"));
  EXPECT_NE(full.plan_digest, half.plan_digest);
  const Program a = bound(plan());
  const Program b = bound(plan(R"({"kvcache": {"kvDtype": "f16"}})"));
  for (const ProgramKv& cache : b.kv) EXPECT_EQ(cache.encoding, Encoding::f16);
  EXPECT_EQ(a.kv_bytes(), b.kv_bytes() * 2);
  EXPECT_EQ(a.packed_bytes(), b.packed_bytes());
}

TEST_F(SettingsTest, AnEightBitCacheTakesAFourthAndIsNearlyTheSame) {
  LoadedModel full = load(plan());
  LoadedModel narrow = load(plan(R"({"kvcache": {"encoding": "q8_0"}})"));
  EXPECT_NE(full.compiled().plan_digest, narrow.compiled().plan_digest);
  for (const ProgramKv& cache : narrow.program().kv) EXPECT_EQ(cache.encoding, Encoding::q8_0);
  // Heads of 16 columns: a scale of two bytes for 16.
  EXPECT_EQ(narrow.program().kv_bytes() * 64, full.program().kv_bytes() * 18);
  const auto tokens = some_tokens(60);
  const auto a = logits(full, tokens), b = logits(narrow, tokens);
  float scale = 0, difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    scale = std::max(scale, std::abs(a[i]));
    difference = std::max(difference, std::abs(a[i] - b[i]));
  }
  EXPECT_GT(difference, 0);
  EXPECT_LT(difference, 0.05F * scale);
  EXPECT_THAT(refusal([] { (void)compile_model(kTinyLlama, plan(R"({"kvcache": {"encoding": "q4_0"}})")); }),
              HasSubstr("q4_0"));
}

TEST_F(SettingsTest, MaxSeqLenIsTheContext) {
  EXPECT_EQ(bound(plan(R"({"kvcache": {"maxSeqLen": 64}})")).limits.context, 64u);
  EXPECT_THAT(refusal([] { (void)bound(plan(R"({"kvcache": {"maxSeqLen": 1000}})")); }),
              HasSubstr("a context of 1000 positions exceeds the model's 256"));
  LoadOptions options = load_options();
  options.context = 32;
  const CompiledModel model = compile_model(kTinyLlama, plan(R"({"kvcache": {"maxSeqLen": 64}})"));
  EXPECT_THAT(refusal([&] { (void)bind_model(model, *make_backend("cpu", options), options); }),
              HasSubstr("give one of them"));
}

TEST_F(SettingsTest, WhatWouldDoNothingIsRefusedWithTheWayThatWorks) {
  const auto refused = [](std::string_view session) {
    return refusal([&] { (void)compile_model(kTinyLlama, plan(session)); });
  };
  EXPECT_THAT(refused(R"({"kvcache": {"pageSize": 64}})"), HasSubstr("set kvcache.layout to paged or sliding too"));
  EXPECT_THAT(refused(R"({"kvcache": {"layout": "paged", "windowSize": 64}})"),
              HasSubstr("layout paged keeps every position; set kvcache.layout to sliding too"));
  EXPECT_THAT(refused(R"({"kvcache": {"layout": "ring"}})"), HasSubstr("contiguous, paged or sliding"));
  EXPECT_THAT(refused(R"({"kvcache": {"pagesize": 64}})"), HasSubstr("session.kvcache.pagesize is unknown"));
  EXPECT_THAT(refused(R"({"decodeLoop": {"batchsize": 64}})"), HasSubstr("session.decodeLoop.batchsize is unknown"));
  EXPECT_THAT(refused(R"({"decodeLoop": {"ringStaging": 2}})"), HasSubstr("would do nothing"));
  EXPECT_THAT(refused(R"({"decodeLoop": {"disableCommandBatching": true}})"), HasSubstr("would do nothing"));
  EXPECT_THAT(refused(R"({"decodeLoop": {"readbackInterval": 4, "ringTokens": 3}})"),
              HasSubstr("ringTokens=3 is too small: 4 batches wait"));
  EXPECT_THAT(refused(R"({"decodeLoop": {"readbackInterval": 4, "ringStop": 3, "stopCheckMode": "batch"}})"),
              HasSubstr("ringStop=3 is too small"));
  EXPECT_THAT(refused(R"({"kvcache": null})"), HasSubstr("would wipe the manifest's kvcache"));
  EXPECT_THAT(refused(R"({"compute": {"defaults": {"mathDtype": "f16"}}})"), HasSubstr("executionPatch"));
  EXPECT_THAT(refused(R"({"speed": 11})"), HasSubstr("session.speed is unknown"));
}

TEST_F(SettingsTest, AnAddedStepBringsTheProfileOfItsKernel) {
  LoadedModel plain = load(plan());
  const auto& steps = plain.compiled().plan.prefill;
  const auto head = std::find_if(steps.begin(), steps.end(), [](const auto& step) { return step.op == "lm_head"; });
  ASSERT_NE(head, steps.end());
  Json step{{"id", "doubled"},           {"phase", "both"},
            {"section", "postLayer"},    {"op", "scale"},
            {"src", head->dst},          {"dst", head->dst},
            {"kernel", "cpu/scale.cpp"}, {"entry", "main"},
            {"layers", "all"},           {"constants", {{"scale", 2}}}};
  step["kernelRef"] = kernels::build_kernel_ref(*plain.compiled().registry, "cpu/scale.cpp", "main").to_json();
  Json entry{{"step", step}, {"insertAfter", head->id}};
  const auto patched = [&] { return plan({}, to_js_json(Json{{"add", Json::array({entry})}})); };
  EXPECT_THAT(refusal([&] { (void)compile_model(kTinyLlama, patched()); }), HasSubstr("kernelProfiles"));
  entry["profile"] = Json::object();
  LoadedModel doubled = load(patched());
  const auto tokens = some_tokens(5);
  std::vector<float> expected = logits(plain, tokens);
  for (float& value : expected) value *= 2;
  EXPECT_TRUE(same_bits(logits(doubled, tokens), expected));
  entry["profile"] = {{"precisoin", 1}};
  EXPECT_THAT(refusal([&] { (void)compile_model(kTinyLlama, patched()); }),
              HasSubstr("executionPatch.add[0].profile.precisoin is unknown"));
  entry["profile"] = 1;
  EXPECT_THAT(refusal([&] { (void)compile_model(kTinyLlama, patched()); }), HasSubstr("must be an object"));
}

TEST_F(SettingsTest, TheDecodeLoopShowsInTheProgram) {
  const Json loop =
      bound(
          plan(R"({"decodeLoop": {"batchSize": 2, "readbackInterval": 3, "stopCheckMode": "batch", "ringTokens": 5}})"))
          .summary()["decodeLoop"];
  EXPECT_EQ(loop["batchSize"], 2);
  EXPECT_EQ(loop["readbackInterval"], 3);
  EXPECT_EQ(loop["stopCheckMode"], "batch");
  EXPECT_EQ(loop["ringTokens"], 5);
  EXPECT_EQ(loop["ringStop"], 3);
  EXPECT_EQ(loop["ringStaging"], 1);
}

TEST_F(SettingsTest, TokensArriveAtReadBacksAndAreTheSame) {
  const Run each = generate_with({}, {}, 12);
  ASSERT_EQ(each.result.tokens.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(each.decoded_at_delivery[i], i);
  const Run held = generate_with(R"({"decodeLoop": {"batchSize": 2, "readbackInterval": 2}})", {}, 12);
  EXPECT_EQ(held.result.tokens, each.result.tokens);
  EXPECT_THAT(held.decoded_at_delivery, ElementsAre(3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11));
}

TEST_F(SettingsTest, StopChecksPerTokenEndAtOnceAndPerBatchAtTheReadBack) {
  const std::vector<std::uint32_t> tokens = generate_with({}, {}, 20).result.tokens;
  // A token that has not come before, so that it ends the run where it stands.
  std::size_t at = 5;
  while (at < tokens.size() && std::find(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(at),
                                         tokens[at]) != tokens.begin() + static_cast<std::ptrdiff_t>(at))
    ++at;
  ASSERT_LT(at, 17u);
  const std::vector<std::uint32_t> expected(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(at));
  const Run once = generate_with(R"({"decodeLoop": {"batchSize": 8, "stopCheckMode": "per-token"}})", {tokens[at]});
  EXPECT_EQ(once.result.tokens, expected);
  EXPECT_EQ(once.result.reason, StopReason::stop_token);
  EXPECT_EQ(once.decoded, at);  // prefill gives the first token, so the stop token is decode's at-th
  const Run batch = generate_with(R"({"decodeLoop": {"batchSize": 8, "stopCheckMode": "batch"}})", {tokens[at]});
  EXPECT_EQ(batch.result.tokens, expected);
  EXPECT_EQ(batch.decoded, (at / 8 + 1) * 8 - 1);
}

}  // namespace
}  // namespace candor::runtime
