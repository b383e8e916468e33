// Probes see what each step wrote, and a comparison of two plans names the step at which they part.
#include "runtime/probe.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "runtime/compare.h"
#include "runtime/tiny_llama.h"

namespace candor::runtime {
namespace {

using ::testing::HasSubstr;

class ProbeTest : public TinyLlama {
 protected:
  /// What `probes` saw while `tokens` were computed.
  static std::vector<ProbedStep> probe(LoadedModel& model, const std::vector<std::string>& names,
                                       const std::vector<std::uint32_t>& tokens) {
    Probes probes(model.program(), names, true);
    Session session(model);
    session.observe([&](Phase phase, std::size_t instruction) { probes.read(model.backend(), phase, instruction); });
    Sequence sequence;
    session.compute(sequence, tokens, Phase::prefill);
    std::vector<ProbedStep> seen;
    for (const ProbedStep& step : probes.steps())
      if (step.rows > 0) seen.push_back(step);
    return seen;
  }
};

TEST_F(ProbeTest, TheLastStepsValuesAreTheLogits) {
  LoadedModel model = load(plan());
  const auto tokens = some_tokens(19);
  const auto seen = probe(model, {"lm_head"}, tokens);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].rows, 19u);
  EXPECT_EQ(seen[0].cols, 320u);
  EXPECT_EQ(seen[0].layer, -1);
  EXPECT_TRUE(same_bits(seen[0].values, logits(model, tokens)));
}

TEST_F(ProbeTest, ChunksChangeNothing) {
  LoadedModel once = load(plan(), 64);
  LoadedModel chunked = load(plan(), 3);
  const auto tokens = some_tokens(20);
  const auto a = probe(once, {"all"}, tokens);
  const auto b = probe(chunked, {"all"}, tokens);
  ASSERT_EQ(a.size(), once.program().phase(Phase::prefill).instructions.size());
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same_bits(a[i].values, b[i].values)) << a[i].step;
}

TEST_F(ProbeTest, AnIdAnOpASlotAndTheEndOfAnIdMeanSteps) {
  LoadedModel model = load(plan());
  const auto tokens = some_tokens(3);
  const auto by_op = probe(model, {"attention"}, tokens);
  ASSERT_EQ(by_op.size(), 3u);
  const auto by_id = probe(model, {by_op[0].step + ":1"}, tokens);
  ASSERT_EQ(by_id.size(), 1u);
  EXPECT_EQ(by_id[0].layer, 1);
  EXPECT_TRUE(same_bits(by_id[0].values, by_op[1].values));
  const auto by_slot = probe(model, {"state:2"}, tokens);
  EXPECT_GT(by_slot.size(), 1u);
  for (const ProbedStep& step : by_slot) EXPECT_EQ(step.slot, "state");
  const std::string ending = by_op[0].step.substr(by_op[0].step.find('_', 6) + 1);
  EXPECT_EQ(probe(model, {ending + ":0"}, tokens).size(), 1u);
  EXPECT_EQ(probe(model, {"attention:0", "attention:0", "attention"}, tokens).size(), 3u);
}

TEST_F(ProbeTest, NamesThatMeanNothingAreRefused) {
  const Program program = bound(plan());
  const auto refused = [&](const std::string& name) {
    return refusal([&] { (void)Probes(program, std::vector<std::string>{name}, false); });
  };
  EXPECT_THAT(refused("attension"), HasSubstr("no step has this id, op or slot; the ops are"));
  EXPECT_THAT(refused("attention:9"), HasSubstr("it does not run in layer 9; it runs in 0, 1, 2"));
  EXPECT_THAT(refused("lm_head:0"), HasSubstr("it runs outside the layers; leave :0 out"));
  EXPECT_THAT(refused(""), HasSubstr("no step has this id"));
  EXPECT_THAT(refused("attention:"), HasSubstr("no step has this id"));
}

TEST(ValueStatistics, LeaveOutWhatIsNotFiniteAndCountIt) {
  ValueStatistics statistics;
  const float infinity = std::numeric_limits<float>::infinity();
  statistics.add(std::vector<float>{3, -4, infinity, std::nanf(""), -infinity});
  statistics.add(std::vector<float>{1});
  EXPECT_EQ(statistics.count(), 3u);
  EXPECT_EQ(statistics.not_finite(), 3u);
  EXPECT_EQ(statistics.smallest(), -4);
  EXPECT_EQ(statistics.largest(), 3);
  EXPECT_DOUBLE_EQ(statistics.mean(), 0);
  EXPECT_DOUBLE_EQ(statistics.rms(), std::sqrt(26.0 / 3));
  EXPECT_EQ(ValueStatistics().rms(), 0);
}

TEST_F(ProbeTest, TheSamePlanComparesEqualOnEveryInstructionSet) {
  LoadedModel model = load(plan());
  LoadOptions options = load_options();
  options.isa = "portable";
  LoadedModel portable(compile_model(kTinyLlama, plan()), options);
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    const Comparison comparison = compare(model, portable, some_tokens(21), phase);
    EXPECT_EQ(comparison.steps.size(), model.program().phase(phase).instructions.size());
    EXPECT_TRUE(comparison.unmatched.empty());
    EXPECT_EQ(comparison.first_above(0), nullptr);
    for (const StepDifference& step : comparison.steps) EXPECT_EQ(step.values, 21u * step.cols) << step.step_a;
  }
}

TEST_F(ProbeTest, AnotherCacheDtypePartsAtTheFirstAttention) {
  LoadedModel model = load(plan());
  LoadedModel half = load(plan(R"({"kvcache": {"kvDtype": "f16"}})"));
  const Comparison comparison = compare(model, half, some_tokens(21), Phase::prefill);
  const StepDifference* first = comparison.first_above(0);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->op, "attention");
  EXPECT_EQ(first->layer, 0);
  EXPECT_EQ(first->first_row, 0u);
  EXPECT_GT(first->relative(), 1e-6);
  EXPECT_LT(first->relative(), 2e-3);
  EXPECT_LT(first->rms(), first->largest);
  EXPECT_EQ(comparison.first_above(1), nullptr);
}

TEST_F(ProbeTest, AStepThatOnlyOnePlanHasIsNamedAndTheRestCompared) {
  LoadedModel model = load(plan());
  std::string id;
  for (const Instruction& instruction : model.program().phase(Phase::prefill).instructions)
    if (instruction.op == "ffn_residual") id = instruction.step;
  ASSERT_FALSE(id.empty());
  PlanOptions options = plan();
  options.execution_patch = {{"remove", {{{"id", id}}}}};
  // Without the residual the layer's output slot is another one, so the next layer reads what attention left.
  LoadedModel without(compile_model(kTinyLlama, options), load_options());
  const Comparison comparison = compare(model, without, some_tokens(5), Phase::prefill);
  EXPECT_EQ(comparison.unmatched.size(), 3u);
  for (const UnmatchedStep& step : comparison.unmatched) {
    EXPECT_EQ(step.step, id);
    EXPECT_TRUE(step.in_a);
    EXPECT_EQ(step.reason, "only in A");
  }
  const StepDifference* first = comparison.first_above(0);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->layer, 1);
}

}  // namespace
}  // namespace candor::runtime
