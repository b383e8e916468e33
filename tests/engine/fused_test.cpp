// Fused kernel paths compute the bits of the plans whose steps they join: for every family, in prefill and decode.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/engine_fixture.h"
#include "models/description.h"

namespace candor {
namespace {

/// Those that make text.
std::vector<std::filesystem::path> generators() {
  std::vector<std::filesystem::path> out;
  std::error_code ignored;
  for (const auto& root : {kShared / "goldens/hf", kSource / "tests/data/transformers"})
    for (const auto& entry : std::filesystem::directory_iterator(root, ignored))
      if (std::filesystem::exists(entry.path() / "config.json") &&
          models::describe(ModelSource::open(entry.path())).model_type == "transformer")
        out.push_back(entry.path());
  out.push_back(kSource / "models/lexicon-26m");
  std::sort(out.begin(), out.end());
  return out;
}

EngineOptions with_path(const std::string& kernel_path, const std::filesystem::path& model,
                        runtime::RowSelection rows) {
  EngineOptions setup = options(rows);
  setup.load.context = 128;
  setup.plan.kernel_path = kernel_path;
  // An artifact has its steps; others are made here.
  setup.plan.manifest = runtime::generate_manifest(ModelSource::open(model), setup.plan);
  setup.plan.kernel_path.clear();
  return setup;
}

std::set<std::string> operations(Engine& engine) {
  std::set<std::string> out;
  for (const Instruction& instruction : engine.model().program().phase(Phase::decode).instructions)
    out.insert(instruction.operation);
  return out;
}

class FusedPlans : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(FusedPlans, AreTheBitsOfTheStepsTheyJoin) {
  const std::filesystem::path& model = GetParam();
  Engine apart(model, with_path("cpu", model, runtime::RowSelection::last));
  Engine joined(model, with_path("cpu-fused", model, runtime::RowSelection::last));
  const auto tokens = [](std::uint32_t count) {
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < count; ++i) out.push_back((i * 37 + 11) % 90);
    return out;
  };
  const auto run = [&](Engine& engine) {
    std::vector<std::vector<std::byte>> logits;
    const Program& program = engine.model().program();
    engine.session().observe([&](Phase phase, std::size_t i) {
      const Instruction& instruction = program.phase(phase).instructions[i];
      if (instruction.op != "lm_head") return;
      const ProgramValue& value = program.phase(phase).values[instruction.result];
      logits.emplace_back(std::size_t{value.cols} * sizeof(float));
      engine.model().backend().read_value(phase, instruction.result, logits.back());
    });
    runtime::Sequence sequence;
    engine.session().compute(sequence, tokens(37), Phase::prefill);
    engine.session().compute(sequence, tokens(6), Phase::decode);
    return logits;
  };
  const auto wanted = run(apart);
  ASSERT_EQ(wanted.size(), 7u);
  EXPECT_TRUE(run(joined) == wanted);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FusedPlans);
INSTANTIATE_TEST_SUITE_P(Models, FusedPlans, ::testing::ValuesIn(generators()), [](const auto& parameter) {
  std::string name = parameter.param.parent_path().filename().string() + "_" + parameter.param.filename().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

TEST(FusedPlans, ALlamaLayerIsNineSteps) {
  const auto model = kSource / "models/lexicon-26m";
  Engine engine(model, with_path("cpu-fused", model, runtime::RowSelection::last));
  const auto& instructions = engine.model().program().phase(Phase::decode).instructions;
  EXPECT_EQ(std::count_if(instructions.begin(), instructions.end(), [](const auto& step) { return step.layer == 3; }),
            9);
  EXPECT_THAT(operations(engine), ::testing::IsSupersetOf({"rmsnorm_quantize", "qkv_matmul", "rope_attention",
                                                           "matmul_residual", "gated_matmul"}));
}

}  // namespace
}  // namespace candor
