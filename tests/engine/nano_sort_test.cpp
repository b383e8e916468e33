// A trained model of 85,000 parameters (GPT-2's architecture) against every intermediate activation that its reference
// implementation wrote down, by means of probes. The reference's attention matrices have no slot here: attention is one
// step.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "engine/engine_fixture.h"
#include "models/model_folder.h"
#include "runtime/probe.h"

namespace candor {
namespace {

const std::filesystem::path kNanoSort = kShared / "goldens/nano-sort";

std::vector<float> base64_floats(const std::string& text) {
  std::vector<unsigned char> bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bits = bits << 6 | static_cast<std::uint32_t>(kDigits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<unsigned char>(bits >> count));
  }
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

ModelFolder::Tensor tensor_of(const Json& entry) {
  ModelFolder::Tensor tensor;
  for (const Json& dimension : entry["shape"]) tensor.shape.push_back(dimension.get<std::uint64_t>());
  tensor.values = base64_floats(entry["data"].get<std::string>());
  return tensor;
}

/// Its linear layers are stored [out, in]; GPT-2's checkpoints have them the other way round.
ModelFolder::Tensor turned(const ModelFolder::Tensor& tensor) {
  const std::uint64_t rows = tensor.shape[0];
  const std::uint64_t cols = tensor.shape[1];
  ModelFolder::Tensor out{{cols, rows}, std::vector<float>(tensor.values.size())};
  for (std::uint64_t r = 0; r < rows; ++r)
    for (std::uint64_t c = 0; c < cols; ++c) out.values[c * rows + r] = tensor.values[r * cols + c];
  return out;
}

void fill_nano_sort(ModelFolder& folder, const Json& model) {
  const Json& config = model["config"];
  folder.config = {{"model_type", "gpt2"},
                   {"n_layer", config["n_layer"]},
                   {"n_head", config["n_head"]},
                   {"n_embd", config["n_embd"]},
                   {"n_positions", config["block_size"]},
                   {"vocab_size", config["vocab_size"]},
                   {"activation_function", "gelu_new"},
                   {"layer_norm_epsilon", 1e-5},
                   {"tie_word_embeddings", false}};
  for (const auto& [name, entry] : model.items()) {
    if (name == "config") continue;
    const bool linear =
        name.ends_with("c_attn.weight") || name.ends_with("c_proj.weight") || name.ends_with("c_fc.weight");
    folder.tensors[name] = linear ? turned(tensor_of(entry)) : tensor_of(entry);
  }
}

/// [batch, heads, rows, columns] of one sequence as [rows, heads · columns].
std::vector<float> joined_heads(const ModelFolder::Tensor& tensor, std::uint64_t sequence) {
  const std::uint64_t heads = tensor.shape[1], rows = tensor.shape[2], cols = tensor.shape[3];
  std::vector<float> out;
  for (std::uint64_t r = 0; r < rows; ++r)
    for (std::uint64_t h = 0; h < heads; ++h)
      for (std::uint64_t c = 0; c < cols; ++c)
        out.push_back(tensor.values[((sequence * heads + h) * rows + r) * cols + c]);
  return out;
}

class NanoSort : public ::testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT(kNanoSort);
    fill_nano_sort(folder_, read("gpt-nano-sort-model.json"));
    partials_ = read("gpt-nano-sort-t0-partials.json");
    for (const float id : tensor_of(partials_["idx"]).values) tokens_.push_back(static_cast<std::uint32_t>(id));
  }
  static Json read(const char* name) { return parse_json(read_file(kNanoSort / name, 1 << 24), name); }

  /// What the steps wrote for one sequence: the last value of (op, layer).
  std::map<std::pair<std::string, std::int32_t>, std::vector<float>> activations(Engine& engine,
                                                                                 std::uint64_t sequence) {
    const std::vector<std::string> all{"all"};
    runtime::Probes probes(engine.model().program(), all, true);
    engine.session().observe([&](Phase phase, std::size_t i) { probes.read(engine.model().backend(), phase, i); });
    (void)engine.logits(std::span(tokens_).subspan(sequence * kLength, kLength));
    engine.session().observe({});
    std::map<std::pair<std::string, std::int32_t>, std::vector<float>> out;
    for (const runtime::ProbedStep& step : probes.steps())
      if (!step.values.empty()) out[{step.op, step.layer}] = step.values;
    return out;
  }

  static constexpr std::uint64_t kLength = 11;
  ModelFolder folder_;
  Json partials_;
  std::vector<std::uint32_t> tokens_;
};

TEST_F(NanoSort, EveryIntermediateActivation) {
  struct Pair {
    const char* reference;
    const char* op;
    std::int32_t layer;
  };
  const Pair pairs[] = {
      {"tok_emb", "embed", -1},          {"x", "add_positions", -1},    {"ln1", "input_norm", 0},
      {"qkv", "qkv_proj_bias", 0},       {"y", "attention", 0},         {"yProj", "o_proj_bias", 0},
      {"attnResid", "attn_residual", 0}, {"ln2", "post_attn_norm", 0},  {"fc", "up_proj_bias", 0},
      {"gelu", "activation", 0},         {"mlp", "down_proj_bias", 0},  {"mlpResid", "ffn_residual", 0},
      {"block0", "ffn_residual", 0},     {"block1", "ffn_residual", 1}, {"block2", "ffn_residual", 2},
      {"ln_f", "final_norm", -1},        {"lm_head", "lm_head", -1}};
  const Pair heads[] = {{"q", "q_slice", 0}, {"k", "k_slice", 0}, {"v", "v_slice", 0}};
  Engine engine(folder_.write(), options(runtime::RowSelection::all));
  for (std::uint64_t sequence = 0; sequence < tokens_.size() / kLength; ++sequence) {
    const auto got = activations(engine, sequence);
    const auto expect = [&](const Pair& pair, const std::vector<float>& wanted) {
      SCOPED_TRACE(::testing::Message() << pair.reference << " of sequence " << sequence);
      const auto found = got.find({pair.op, pair.layer});
      ASSERT_NE(found, got.end());
      ASSERT_EQ(found->second.size(), wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(found->second[i], wanted[i], 1e-5);
    };
    for (const Pair& pair : pairs) {
      const auto tensor = tensor_of(partials_[pair.reference]);
      const std::size_t size = tensor.values.size() / tensor.shape[0];
      const auto first = tensor.values.begin() + static_cast<long>(sequence * size);
      expect(pair, {first, first + static_cast<long>(size)});
    }
    for (const Pair& pair : heads) expect(pair, joined_heads(tensor_of(partials_[pair.reference]), sequence));
    const auto positions = tensor_of(partials_["pos_emb"]);
    expect({"pos_emb", "embed_positions", -1}, positions.values);
  }
}

TEST_F(NanoSort, Sorts) {
  Engine engine(folder_.write(), options());
  const std::vector<std::uint32_t> unsorted{0, 0, 2, 1, 0, 1};
  runtime::Sequence sequence;
  std::vector<std::uint32_t> sorted{engine.session().prefill(sequence, unsorted)};
  while (sorted.size() < unsorted.size()) {
    runtime::Sequence* const one = &sequence;
    sorted.push_back(engine.session().decode({&one, 1}, {&sorted.back(), 1}).front());
  }
  EXPECT_EQ(sorted, (std::vector<std::uint32_t>{0, 0, 0, 1, 1, 2}));
}

}  // namespace
}  // namespace candor
