// Families with states of their own: windows, convolutions and encoders.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/embedding.h"
#include "engine/engine_fixture.h"
#include "formats/safetensors.h"
#include "models/model_folder.h"
#include "runtime/probe.h"

namespace candor {
namespace {

const std::filesystem::path kFolders = kShared / "goldens/hf";

std::vector<std::uint32_t> long_text(std::size_t length, std::uint32_t vocabulary) {
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < length; ++i) tokens.push_back((i * i * 7 + i * 31 + 5) % vocabulary);
  return tokens;
}

/// The last row of logits that a phase computes for the last token.
std::vector<float> last_logits(Engine& engine, runtime::Sequence& sequence, std::span<const std::uint32_t> tokens,
                               Phase phase) {
  const Program& program = engine.model().program();
  std::vector<float> logits;
  engine.session().observe([&](Phase running, std::size_t i) {
    const Instruction& instruction = program.phase(running).instructions[i];
    if (instruction.op == "lm_head" || instruction.op == "logit_softcap")
      logits = runtime::read_result(engine.model().backend(), program, running, i);
  });
  engine.session().compute(sequence, tokens, phase);
  engine.session().observe({});
  return logits;
}

struct Windowed {
  const char* model;
  std::size_t window;
  const char* layout;
};

class LongContext : public ::testing::TestWithParam<Windowed> {};

TEST_P(LongContext, DecodingPastThreeWindowsEqualsComputingAllAnew) {
  const auto& [model, window, layout] = GetParam();
  SKIP_WITHOUT(kFolders / model);
  EngineOptions setup = options();
  setup.load.context = 128;
  setup.plan.session = {{"kvcache", {{"layout", layout}, {"pageSize", 16}}}};
  if (std::string(layout) == "contiguous") setup.plan.session = Json();
  Engine engine(kFolders / model, setup);
  const auto tokens = long_text(3 * window + 11, 320);
  runtime::Sequence decoded;
  const std::size_t prompt = 5;
  (void)last_logits(engine, decoded, std::span(tokens).first(prompt), Phase::prefill);
  for (std::size_t length = prompt + 1; length <= tokens.size(); ++length) {
    const auto got = last_logits(engine, decoded, std::span(tokens).subspan(length - 1, 1), Phase::decode);
    if (length % window != 0 && length != tokens.size()) continue;
    Engine fresh(kFolders / model, options());
    runtime::Sequence all;
    const auto wanted = last_logits(fresh, all, std::span(tokens).first(length), Phase::prefill);
    expect_same_bits(got, wanted, std::string(model) + " at " + std::to_string(length));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, LongContext,
                         ::testing::Values(Windowed{"mistral-swa", 8, "contiguous"},
                                           Windowed{"mistral-swa", 8, "sliding"}, Windowed{"gemma2", 8, "contiguous"},
                                           Windowed{"gemma3", 8, "paged"}, Windowed{"phi3", 12, "sliding"},
                                           Windowed{"lfm2", 16, "paged"}),
                         [](const auto& parameter) {
                           std::string name = std::string(parameter.param.model) + "_" + parameter.param.layout;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class FamilyBits : public ::testing::TestWithParam<const char*> {};

TEST_P(FamilyBits, AreTheSameHoweverRun) {
  SKIP_WITHOUT(kFolders / GetParam());
  expect_same_bits_however_run(kFolders / GetParam());
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyBits, ::testing::Values("gemma3", "gpt2", "lfm2", "mixtral", "phi3"));

/// A batch of references; padding is left out.
struct BertReference {
  std::vector<std::vector<std::uint32_t>> tokens;
  std::vector<float> hidden, embeddings;
  std::size_t length = 0, width = 0;

  BertReference() {
    const auto path = kFolders / "bert/expected.safetensors";
    const MappedFile file(path);
    const auto read = [&](const std::string& name, auto& out) {
      for (const TensorInfo& tensor : parse_safetensors(file.bytes(), path.string()).tensors) {
        if (tensor.name != name) continue;
        out.resize(tensor.elements());
        std::memcpy(out.data(), file.bytes().data() + tensor.extents[0].offset, tensor.bytes);
        return tensor.shape;
      }
      return std::vector<std::uint64_t>{};
    };
    std::vector<std::int32_t> ids, mask;
    const auto shape = read("input_ids", ids);
    (void)read("attention_mask", mask);
    length = shape.at(1);
    width = read("last_hidden_state", hidden).at(2);
    (void)read("mean_pooled_normalized", embeddings);
    for (std::size_t sequence = 0; sequence < shape[0]; ++sequence) {
      auto& valid = tokens.emplace_back();
      for (std::size_t i = 0; i < length; ++i)
        if (mask[sequence * length + i] != 0) valid.push_back(static_cast<std::uint32_t>(ids[sequence * length + i]));
    }
  }
};

/// The reference folder says nothing of pooling.
EngineOptions bert_options(std::uint32_t prefill_rows = runtime::kDefaultPrefillRows) {
  EngineOptions out = options(runtime::RowSelection::last, 2, prefill_rows);
  out.plan.pooling = "mean,normalize";
  return out;
}

TEST(Bert, HiddenStatesAndEmbeddings) {
  SKIP_WITHOUT(kFolders / "bert");
  const BertReference reference;
  Engine engine(kFolders / "bert", bert_options());
  const std::vector<std::string> last{"post_ffn_norm:2"};
  double hidden_error = 0, hidden_scale = 0, embedding_error = 0;
  for (std::size_t sequence = 0; sequence < reference.tokens.size(); ++sequence) {
    const auto& tokens = reference.tokens[sequence];
    runtime::Probes probes(engine.model().program(), last, true);
    engine.session().observe([&](Phase phase, std::size_t i) { probes.read(engine.model().backend(), phase, i); });
    const std::vector<float> embedding = engine.session().embedding(tokens);
    engine.session().observe({});
    const std::vector<float>& hidden = probes.steps().front().values;
    ASSERT_EQ(hidden.size(), tokens.size() * reference.width);
    for (std::size_t i = 0; i < hidden.size(); ++i) {
      const float wanted = reference.hidden[sequence * reference.length * reference.width + i];
      hidden_error = std::max(hidden_error, std::abs(double{hidden[i]} - double{wanted}));
      hidden_scale = std::max(hidden_scale, std::abs(double{wanted}));
    }
    ASSERT_EQ(embedding.size(), reference.width);
    for (std::size_t i = 0; i < reference.width; ++i)
      embedding_error =
          std::max(embedding_error,
                   std::abs(double{embedding[i]} - double{reference.embeddings[sequence * reference.width + i]}));
  }
  RecordProperty("hidden_error", std::to_string(hidden_error / hidden_scale * 1e6) + "e-6");
  EXPECT_LE(hidden_error / hidden_scale, 2e-5);
  EXPECT_LE(embedding_error, 2e-6);
}

TEST(Bert, RefusesToGenerateAndATextLongerThanAChunk) {
  SKIP_WITHOUT(kFolders / "bert");
  Engine engine(kFolders / "bert", bert_options(8));
  runtime::Sequence sequence;
  const auto tokens = long_text(9, 300);
  EXPECT_THROW((void)engine.session().prefill(sequence, std::span(tokens).first(3)), Error);
  engine.session().truncate(sequence, 0);
  EXPECT_THROW((void)engine.session().embedding(tokens), Error);
  EXPECT_EQ(engine.session().embedding(std::span(tokens).first(8)).size(), 64u);
}

TEST(Bert, TypesOfTokensCount) {
  SKIP_WITHOUT(kFolders / "bert");
  Engine engine(kFolders / "bert", bert_options());
  const auto tokens = long_text(6, 300);
  const std::vector<std::uint32_t> none(6, 0), second{0, 0, 0, 1, 1, 1};
  EXPECT_EQ(engine.session().embedding(tokens), engine.session().embedding(tokens, none));
  EXPECT_NE(engine.session().embedding(tokens), engine.session().embedding(tokens, second));
}

TEST(Bert, WithoutAWordOnPoolingIsRefused) {
  SKIP_WITHOUT(kFolders / "bert");
  try {
    Engine engine(kFolders / "bert", options());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("--pooling mean, first or last"), std::string::npos);
  }
}

TEST(LongRope, APlanHoldsWhatItsFactorsAreFor) {
  SKIP_WITHOUT(kFolders / "phi3-longrope");  // 32 positions extended to 128
  const auto tokens = long_text(20, 320);
  const auto logits = [&](std::uint32_t context, const char* session) {
    EngineOptions setup = options(runtime::RowSelection::all);
    setup.load.context = context;
    if (session != nullptr) setup.plan.session = parse_json(session, "session");
    return Engine(kFolders / "phi3-longrope", setup).logits(tokens);
  };
  const auto within = logits(32, nullptr);
  EXPECT_NE(within, logits(33, nullptr));
  EXPECT_EQ(within, logits(0, R"({"kvcache": {"maxSeqLen": 20}})"));
  EXPECT_EQ(logits(33, nullptr), logits(0, nullptr));
  // The manifest of a plan with the short factors, asked for more than they hold.
  runtime::PlanOptions short_plan;
  short_plan.context = 32;
  EngineOptions longer = options();
  longer.plan.manifest = runtime::generate_manifest(ModelSource::open(kFolders / "phi3-longrope"), short_plan);
  longer.load.context = 64;
  try {
    Engine engine(kFolders / "phi3-longrope", longer);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::resource);
    EXPECT_NE(std::string(error.what())
                  .find("exceeds the model's 32; its plan has LongRoPE's short factors: convert the "
                        "model again with --context 64"),
              std::string::npos)
        << error.what();
  }
}

/// A decoder as an embedding model: attention in both directions, the mean of the normed rows, two dense layers.
TEST(EmbeddingGemma, PoolsTheRowsOfADecoder) {
  SKIP_WITHOUT(kFolders / "gemma3");
  ModelFolder folder(kFolders / "gemma3");
  folder.config["use_bidirectional_attention"] = true;
  std::map<std::string, ModelFolder::Tensor> bare;  // as checkpoints of the bare model have their names
  for (auto& [name, tensor] : folder.tensors) bare[name.substr(std::string("model.").size())] = std::move(tensor);
  folder.tensors = std::move(bare);
  const std::string modules = R"([{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},
    {"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
    {"idx":2,"name":"2","path":"2_Dense","type":"sentence_transformers.models.Dense"},
    {"idx":3,"name":"3","path":"3_Normalize","type":"sentence_transformers.models.Normalize"}])";
  const auto path = folder.write();
  std::ofstream(path / "modules.json") << modules;
  std::filesystem::create_directories(path / "1_Pooling");
  std::ofstream(path / "1_Pooling/config.json") << R"({"word_embedding_dimension":64,"pooling_mode_mean_tokens":true})";
  ModelFolder dense;
  ModelFolder::Tensor& weight = dense.tensors["linear.weight"];
  weight.shape = {24, 64};
  for (int i = 0; i < 24 * 64; ++i) weight.values.push_back(static_cast<float>(i * 37 % 101 - 50) / 100);
  dense.config = {{"in_features", 64},
                  {"out_features", 24},
                  {"bias", false},
                  {"activation_function", "torch.nn.modules.linear.Identity"}};
  std::filesystem::copy(dense.write(), path / "2_Dense");

  Engine engine(path, options());
  const auto tokens = long_text(20, 320);
  const std::vector<std::string> probe{"final_norm"};
  runtime::Probes probes(engine.model().program(), probe, true);
  engine.session().observe([&](Phase phase, std::size_t i) { probes.read(engine.model().backend(), phase, i); });
  const std::vector<float> got = engine.session().embedding(tokens);
  engine.session().observe({});
  const std::vector<float>& rows = probes.steps().front().values;
  std::vector<double> mean(64), wanted(24);
  for (std::size_t i = 0; i < rows.size(); ++i) mean[i % 64] += double{rows[i]} / 20;
  double squares = 0;
  for (std::size_t n = 0; n < 24; ++n) {
    for (std::size_t k = 0; k < 64; ++k) wanted[n] += mean[k] * double{weight.values[n * 64 + k]};
    squares += wanted[n] * wanted[n];
  }
  ASSERT_EQ(got.size(), 24u);
  for (std::size_t n = 0; n < 24; ++n) EXPECT_NEAR(got[n], wanted[n] / std::sqrt(squares), 2e-6);
  // Both directions: the first row depends on later tokens.
  std::vector<std::uint32_t> other = tokens;
  other[5] = (other[5] + 1) % 320;
  runtime::Probes changed(engine.model().program(), probe, true);
  engine.session().observe([&](Phase phase, std::size_t i) { changed.read(engine.model().backend(), phase, i); });
  (void)engine.session().embedding(other);
  engine.session().observe({});
  EXPECT_NE(changed.steps().front().values[0], rows[0]);
}

}  // namespace
}  // namespace candor
