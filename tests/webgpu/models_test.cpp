// Whole models on the device: the reference logits of every family, and the same tokens as on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>

#include "engine/engine.h"
#include "engine/expected.h"
#include "webgpu/kernel_program.h"

namespace candor::webgpu::testing {
namespace {

/// On a machine that the reference data were carried to, CANDOR_REFERENCE_DATA says where they are.
std::filesystem::path reference_data() {
  const char* carried = std::getenv("CANDOR_REFERENCE_DATA");
  return carried != nullptr ? carried : CANDOR_SHARED_DIR;
}

const std::filesystem::path kReference = reference_data();
const std::filesystem::path kFolders = kReference / "goldens/hf";

#define SKIP_WITHOUT_DATA(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no reference data at " << (path)

EngineOptions on_device(runtime::RowSelection rows, const std::string& kernel_path = {}) {
  EngineOptions out;
  out.plan.backend = "webgpu";
  out.plan.kernel_path = kernel_path;
  out.plan.rows = rows;
  out.load.prefill_rows = 64;
  if (const char* adapter = std::getenv("CANDOR_WEBGPU_ADAPTER"); adapter != nullptr) out.load.adapter = adapter;
  return out;
}

class WebGpuFamilies : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(WebGpuFamilies, GiveTheReferenceLogits) {
  SKIP_WITHOUT_DEVICE();
  const auto [name, kernel_path] = GetParam();
  const auto model = kFolders / name;
  SKIP_WITHOUT_DATA(model);
  const Expected expected(model);
  const std::vector<std::uint32_t> tokens = expected.tokens("input_ids");
  const auto wanted = expected.get<float>("logits");
  Engine engine(model, on_device(runtime::RowSelection::all, kernel_path));
  const std::vector<float> logits = engine.logits(tokens);
  ASSERT_EQ(logits.size(), wanted.size());
  const double error = largest_error(logits, wanted);
  RecordProperty("error", std::to_string(error * 1e6) + "e-6");
  EXPECT_LE(error, 1e-4);

  // Token by token through decode's kernels.
  std::vector<float> last;
  const Program& program = engine.model().program();
  runtime::Sequence sequence;
  engine.session().compute(sequence, tokens, Phase::decode);
  const Instruction& head = program.phase(Phase::decode).instructions.back();
  last.resize(program.phase(Phase::decode).values[head.result].cols);
  engine.model().backend().read_value(Phase::decode, head.result, std::as_writable_bytes(std::span(last)));
  EXPECT_LE(largest_error(last, std::span(wanted).last(last.size())), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Models, WebGpuFamilies,
                         ::testing::Combine(::testing::Values("llama", "llama3-rope", "mistral-swa", "mixtral", "qwen2",
                                                              "qwen3", "qwen3-moe", "gemma2", "gemma3", "phi3",
                                                              "phi3-longrope", "gpt2", "lfm2"),
                                            ::testing::Values("webgpu", "webgpu-fused")),
                         [](const auto& parameter) {
                           std::string name =
                               std::string(std::get<0>(parameter.param)) + "_" + std::get<1>(parameter.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(WebGpuModels, AFusedLayerOfLlamaIsSevenInstructions) {
  SKIP_WITHOUT_DEVICE();
  SKIP_WITHOUT_DATA(kFolders / "llama");
  Engine engine(kFolders / "llama", on_device(runtime::RowSelection::last, "webgpu-fused"));
  std::vector<std::string> operations;
  for (const Instruction& instruction : engine.model().program().phase(Phase::decode).instructions)
    if (instruction.layer == 1) operations.push_back(instruction.operation);
  EXPECT_EQ(operations, (std::vector<std::string>{"rmsnorm", "qkv_matmul", "rope_attention", "matmul_residual",
                                                  "rmsnorm", "gated_matmul", "matmul_residual"}));
}

TEST(WebGpuModels, ChunksPagesAndTokensAheadChangeNoTokens) {
  SKIP_WITHOUT_DEVICE();
  const auto model = kFolders / "llama";
  SKIP_WITHOUT_DATA(model);
  const Expected expected(model);
  const std::vector<std::uint32_t> tokens = expected.tokens("input_ids");
  std::vector<std::vector<std::uint32_t>> answers;
  for (const std::uint32_t rows : {64u, 5u}) {
    EngineOptions options = on_device(runtime::RowSelection::last);
    options.load.prefill_rows = rows;
    options.plan.session = {
        {"kvcache", {{"kvDtype", rows == 5 ? "f16" : "f32"}, {"layout", "paged"}, {"pageSize", 16}}}};
    Engine engine(model, options);
    TextRequest request;
    runtime::Sequence sequence;
    answers.push_back(runtime::generate(engine.session(), sequence,
                                        {.prompt = tokens, .max_tokens = 24, .stop_tokens = {}, .cancelled = {}}, {})
                          .tokens);
  }
  for (const char* path : {"webgpu", "webgpu-fused"})
    for (const int staging : {1, 2, 3}) {
      EngineOptions ahead = on_device(runtime::RowSelection::last, path);
      ahead.plan.session = {{"decodeLoop", {{"batchSize", 7}, {"stopCheckMode", "batch"}, {"ringStaging", staging}}}};
      Engine engine(model, ahead);
      EXPECT_EQ(engine.model().backend().chained_runs(), 7u);
      runtime::Sequence sequence;
      const auto generate = [&](std::vector<std::uint32_t> stop) {
        return runtime::generate(engine.session(), sequence,
                                 {.prompt = tokens, .max_tokens = 24, .stop_tokens = std::move(stop), .cancelled = {}},
                                 {})
            .tokens;
      };
      answers.push_back(generate({}));
      EXPECT_EQ(sequence.tokens.size(), tokens.size() + 23);  // the last is not computed
      EXPECT_EQ(engine.session().submissions(), 0u);
      // A stop token ends it while later batches are under way; the sequence then goes on from there.
      engine.session().truncate(sequence, 0);
      const auto stopped = generate({answers[0][9]});
      const auto first = std::find(answers[0].begin(), answers[0].end(), answers[0][9]);
      EXPECT_EQ(stopped, std::vector<std::uint32_t>(answers[0].begin(), first));
      EXPECT_EQ(sequence.tokens.size(), tokens.size() + stopped.size());
      engine.session().truncate(sequence, 0);
      EXPECT_EQ(generate({}), answers[0]);
    }
  for (const auto& answer : answers) EXPECT_EQ(answer, answers[0]);
  EXPECT_EQ(answers[0], expected.tokens("greedy_ids"));
}

TEST(WebGpuModels, BertGivesTheSameVectorAsTheCpu) {
  SKIP_WITHOUT_DEVICE();
  const auto model = kFolders / "bert";
  SKIP_WITHOUT_DATA(model);
  const std::vector<std::uint32_t> tokens{5, 17, 200, 31, 8, 99, 4};
  EngineOptions options = on_device(runtime::RowSelection::last);
  options.plan.pooling = "mean,normalize";
  Engine device(model, options);
  options.plan.backend = "cpu";
  Engine cpu(model, options);
  EXPECT_LE(largest_error(device.session().embedding(tokens), cpu.session().embedding(tokens)), 2e-5);
}

TEST(WebGpuModels, LexiconInHalfPrecisionAnswersAsOnTheCpu) {
  SKIP_WITHOUT_DEVICE();
  const auto model = kReference / "models/lexicon-26m";
  SKIP_WITHOUT_DATA(model);
  Engine device(model, on_device(runtime::RowSelection::all));
  EngineOptions options;
  options.plan.rows = runtime::RowSelection::all;
  Engine cpu(model, options);
  const std::vector<std::uint32_t> tokens = cpu.encode_raw("Define lighthouse.");
  const double error = largest_error(device.logits(tokens), cpu.logits(tokens));
  RecordProperty("error", std::to_string(error * 1e6) + "e-6");
  EXPECT_LE(error, 1e-4);
}

}  // namespace
}  // namespace candor::webgpu::testing
