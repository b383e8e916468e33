// Where the binder puts slots: no two that are alive together may share memory, and dead ones must give it back.
#include "runtime/binder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/registry.h"

namespace candor::runtime {
namespace {

class FakeBackend : public Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return "fake"; }
  [[nodiscard]] Json describe() const override { return {}; }
  [[nodiscard]] bool has_feature(std::string_view feature) const override { return feature == "has-it"; }
  [[nodiscard]] WeightLayout weight_layout(const Instruction&, Encoding, std::uint64_t rows,
                                           std::uint64_t cols) const override {
    return {"packed", rows * cols * 4};
  }
  [[nodiscard]] std::uint64_t kv_page_bytes(const Instruction&, std::uint32_t positions, Encoding) const override {
    return positions * 8ull;
  }
  [[nodiscard]] std::uint64_t scratch_bytes(const Instruction&, std::uint32_t src_cols, std::uint32_t dst_cols,
                                            const ProgramLimits&) const override {
    return src_cols + dst_cols;
  }
  void load(Program, const WeightSource&, const std::function<void(std::uint64_t)>&) override {}
  void run(Phase, const Batch&, const InstructionObserver*) override {}
  void read_value(Phase, std::uint32_t, std::span<std::byte>) const override {}
  [[nodiscard]] std::uint32_t value_rows(Phase, std::uint32_t) const override { return 0; }
};

/// A chain of steps; step i reads the values listed and writes value i.
class BinderTest : public ::testing::Test {
 protected:
  void step(std::vector<std::uint32_t> reads, std::uint64_t cols, std::int32_t in_place = -1) {
    const auto index = static_cast<std::uint32_t>(flow_.prefill.steps.size());
    plan::StepInstance instance;
    instance.step = &step_;
    instance.variant = &variant_;
    for (const std::uint32_t value : reads) {
      instance.operands.push_back({false, plan::External::tokens, value});
      flow_.prefill.values[value].last_read = index;
    }
    instance.value = index;
    instance.in_place_operand = in_place;
    flow_.prefill.steps.push_back(std::move(instance));
    plan::Value value;
    value.slot = fmt::format("v{}", index);
    value.shape.cols = cols;
    value.producer = value.last_read = index;
    flow_.prefill.values.push_back(std::move(value));
  }

  Program bound() {
    return bind({flow_,
                 backend_,
                 "digest",
                 {.rows = 4, .sequences = 1, .context = 16, .page_positions = 16, .pages = 1},
                 [](std::string_view) -> const TensorInfo* { return nullptr; }});
  }

  /// Memory ranges of values whose lifetimes overlap must be disjoint, save a result that took its operand's place.
  void expect_sound(const Program& program) const {
    const auto& values = program.phase(Phase::prefill).values;
    const auto& flow = flow_.prefill;
    for (std::size_t a = 0; a < values.size(); ++a) {
      EXPECT_EQ(values[a].offset % 64, 0u);
      EXPECT_LE(values[a].offset + values[a].row_bytes * 4, program.arena_bytes);
      for (std::size_t b = a + 1; b < values.size(); ++b) {
        if (flow.values[a].last_read < flow.values[b].producer) continue;
        const bool takes_place = flow.values[a].last_read == flow.values[b].producer &&
                                 values[a].offset == values[b].offset && flow.steps[b].in_place_operand >= 0;
        if (takes_place) continue;
        const bool disjoint = values[a].offset + values[a].row_bytes * 4 <= values[b].offset ||
                              values[b].offset + values[b].row_bytes * 4 <= values[a].offset;
        EXPECT_TRUE(disjoint) << "values " << a << " and " << b;
      }
    }
  }

  plan::ResolvedStep step_;
  kernels::KernelVariant variant_;
  plan::Dataflow flow_;
  FakeBackend backend_;
};

TEST_F(BinderTest, AChainNeedsTwoBuffers) {
  step({}, 16);
  for (std::uint32_t i = 0; i < 10; ++i) step({i}, 16);
  const Program program = bound();
  expect_sound(program);
  EXPECT_EQ(program.arena_bytes, 2u * 4 * 64);
}

TEST_F(BinderTest, AnInPlaceChainNeedsOne) {
  step({}, 16);
  for (std::uint32_t i = 0; i < 10; ++i) step({i}, 16, 0);
  const Program program = bound();
  expect_sound(program);
  EXPECT_EQ(program.arena_bytes, 4u * 64);
}

TEST_F(BinderTest, NotInPlaceWhileSomeoneStillReadsTheOperand) {
  step({}, 16);
  step({0}, 16, 0);
  step({0, 1}, 16, 1);
  const Program program = bound();
  expect_sound(program);
  const auto& values = program.phase(Phase::prefill).values;
  EXPECT_NE(values[0].offset, values[1].offset);
  EXPECT_EQ(values[1].offset, values[2].offset);
}

TEST_F(BinderTest, NotInPlaceWhenTheOperandIsReadTwiceByTheStep) {
  step({}, 16);
  step({0, 0}, 16, 0);
  const auto program = bound();
  const auto& values = program.phase(Phase::prefill).values;
  EXPECT_NE(values[0].offset, values[1].offset);
}

TEST_F(BinderTest, ManyShapesAndLifetimesNeverOverlap) {
  std::uint32_t state = 12345;
  const auto random = [&](std::uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
  };
  step({}, 16);
  for (std::uint32_t i = 1; i < 300; ++i) {
    std::vector<std::uint32_t> reads{i - 1};
    if (i > 6) reads.push_back(i - 1 - random(6));
    step(reads, 16 * (1 + random(9)), random(2) == 0 ? 0 : -1);
  }
  const Program program = bound();
  expect_sound(program);
  EXPECT_LT(program.arena_bytes, 30u * 4 * 64 * 9);
}

TEST_F(BinderTest, AFeatureThatTheDeviceLacksIsRefusedWithEveryStep) {
  step_.id = "norm";
  step_.kernel = "k.wgsl";
  step_.entry = "main";
  step({}, 16);
  step({0}, 16);
  variant_.required_features = {"has-it"};
  EXPECT_NO_THROW((void)bound());
  variant_.required_features = {"has-it", "shader-f16"};
  try {
    (void)bound();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("requires unsupported fake features. Offending steps: norm (k.wgsl#main requires "
                                     "shader-f16);"));
  }
}

TEST_F(BinderTest, AProgramThatDoesNotFitIsRefusedWithTheSum) {
  step({}, 16);
  Program program = bound();
  program.arena_bytes = 1ull << 60;
  try {
    check_memory(program);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::resource);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("does not fit the memory"));
  }
}

}  // namespace
}  // namespace candor::runtime
