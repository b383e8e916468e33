// Families read from GGUF: the reference models written with the names, keys and layouts that llama.cpp's converter
// gives each architecture, and the same logits wanted of them.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <variant>

#include "engine/engine_fixture.h"
#include "engine/expected.h"
#include "models/model_folder.h"

namespace candor {
namespace {

const std::filesystem::path kModels = kShared / "goldens/hf";
using Tensor = ModelFolder::Tensor;

/// A GGUF file of float32 tensors, put together in memory.
class GgufFile {
 public:
  using Value = std::variant<std::uint32_t, float, bool, std::string, std::vector<std::int32_t>>;

  std::vector<std::pair<std::string, Value>> keys;
  std::vector<std::pair<std::string, Tensor>> tensors;

  void write(const std::filesystem::path& path) const {
    std::string out("GGUF");
    put<std::uint32_t>(out, 3);
    put<std::uint64_t>(out, tensors.size());
    put<std::uint64_t>(out, keys.size());
    for (const auto& [key, value] : keys) {
      put_string(out, key);
      std::visit([&](const auto& v) { put_value(out, v); }, value);
    }
    std::uint64_t offset = 0;
    for (const auto& [name, tensor] : tensors) {
      put_string(out, name);
      put<std::uint32_t>(out, static_cast<std::uint32_t>(tensor.shape.size()));
      for (auto n = tensor.shape.rbegin(); n != tensor.shape.rend(); ++n) put<std::uint64_t>(out, *n);
      put<std::uint32_t>(out, 0);  // f32
      put<std::uint64_t>(out, offset);
      offset += (tensor.values.size() * sizeof(float) + 31) / 32 * 32;
    }
    pad(out);
    for (const auto& entry : tensors) {
      out.append(reinterpret_cast<const char*>(entry.second.values.data()), entry.second.values.size() * sizeof(float));
      pad(out);
    }
    std::ofstream(path, std::ios::binary).write(out.data(), static_cast<std::streamsize>(out.size()));
  }

 private:
  template <typename T>
  static void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static void put_string(std::string& out, const std::string& text) {
    put<std::uint64_t>(out, text.size());
    out += text;
  }
  static void put_value(std::string& out, std::uint32_t v) {
    put<std::uint32_t>(out, 4);
    put(out, v);
  }
  static void put_value(std::string& out, float v) {
    put<std::uint32_t>(out, 6);
    put(out, v);
  }
  static void put_value(std::string& out, bool v) {
    put<std::uint32_t>(out, 7);
    put<std::uint8_t>(out, v ? 1 : 0);
  }
  static void put_value(std::string& out, const std::string& v) {
    put<std::uint32_t>(out, 8);
    put_string(out, v);
  }
  static void put_value(std::string& out, const std::vector<std::int32_t>& v) {
    put<std::uint32_t>(out, 9);
    put<std::uint32_t>(out, 5);
    put<std::uint64_t>(out, v.size());
    for (const std::int32_t n : v) put(out, n);
  }
  static void pad(std::string& out) { out.resize((out.size() + 31) / 32 * 32); }
};

/// One pattern of names in either form, {L} the layer, and what the converter does to the values.
struct Rename {
  std::string from, to;
  std::function<void(Tensor&)> change = {};
};

std::string at_layer(std::string pattern, int layer) {
  if (const auto at = pattern.find("{L}"); at != std::string::npos) pattern.replace(at, 3, std::to_string(layer));
  return pattern;
}

std::vector<Rename> usual_names() {
  const std::string from = "model.layers.{L}.", to = "blk.{L}.";
  std::vector<Rename> names{{"model.embed_tokens.weight", "token_embd.weight"},
                            {"model.norm.weight", "output_norm.weight"},
                            {"lm_head.weight", "output.weight"},
                            {from + "input_layernorm.weight", to + "attn_norm.weight"},
                            {from + "post_attention_layernorm.weight", to + "ffn_norm.weight"},
                            {from + "self_attn.q_norm.weight", to + "attn_q_norm.weight"},
                            {from + "self_attn.k_norm.weight", to + "attn_k_norm.weight"},
                            {from + "self_attn.o_proj.weight", to + "attn_output.weight"},
                            {from + "mlp.gate_proj.weight", to + "ffn_gate.weight"},
                            {from + "mlp.up_proj.weight", to + "ffn_up.weight"},
                            {from + "mlp.down_proj.weight", to + "ffn_down.weight"}};
  for (const char* projection : {"q", "k", "v"})
    for (const char* kind : {".weight", ".bias"})
      names.push_back({from + "self_attn." + projection + "_proj" + kind, to + "attn_" + projection + kind});
  return names;
}

void plus_one(Tensor& tensor) {
  for (float& value : tensor.values) value += 1;
}

void transpose(Tensor& tensor) {
  const std::uint64_t rows = tensor.shape[0], cols = tensor.shape[1];
  Tensor out{{cols, rows}, std::vector<float>(tensor.values.size())};
  for (std::uint64_t r = 0; r < rows; ++r)
    for (std::uint64_t c = 0; c < cols; ++c) out.values[c * rows + r] = tensor.values[r * cols + c];
  tensor = std::move(out);
}

/// Rows of each head in turn from its halves: what makes a rotation of halves one of neighbours.
void interleave_heads(Tensor& tensor, std::uint64_t head_dim) {
  const std::uint64_t cols = tensor.shape[1];
  std::vector<float> out;
  for (std::uint64_t first = 0; first < tensor.shape[0]; first += head_dim)
    for (std::uint64_t i = 0; i < head_dim; ++i) {
      const std::uint64_t row = first + i % 2 * (head_dim / 2) + i / 2;
      out.insert(out.end(), tensor.values.begin() + static_cast<long>(row * cols),
                 tensor.values.begin() + static_cast<long>((row + 1) * cols));
    }
  tensor.values = std::move(out);
}

/// By what Llama 3.1 divides the i-th of 8 frequencies, as converters write it.
float llama3_factor(const Json& rope, int i) {
  const auto number = [&](const char* key) { return rope[key].get<double>(); };
  const double wavelength = 2 * std::numbers::pi * std::pow(number("rope_theta"), i / 8.0);
  const double original = number("original_max_position_embeddings");
  if (wavelength < original / number("high_freq_factor")) return 1;
  if (wavelength > original / number("low_freq_factor")) return static_cast<float>(number("factor"));
  const double smooth =
      (original / wavelength - number("low_freq_factor")) / (number("high_freq_factor") - number("low_freq_factor"));
  return static_cast<float>(1 / ((1 - smooth) / number("factor") + smooth));
}

class GgufFamilies : public ::testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT(kModels); }

  void load(const char* model, const std::string& architecture) {
    model_ = model;
    source_ = std::make_unique<ModelFolder>(kModels / model);
    architecture_ = architecture;
    file_.keys.emplace_back("general.architecture", architecture);
  }
  [[nodiscard]] const Json& config() const { return source_->config; }
  void key(const std::string& name, GgufFile::Value value) {
    file_.keys.emplace_back(architecture_ + "." + name, std::move(value));
  }
  void number_key(const std::string& name, const char* from) { key(name, config()[from].get<std::uint32_t>()); }
  void real_key(const std::string& name, const char* from) { key(name, config()[from].get<float>()); }

  /// The keys of every decoder with RMSNorm.
  void usual_keys() {
    number_key("block_count", "num_hidden_layers");
    number_key("embedding_length", "hidden_size");
    number_key("feed_forward_length", "intermediate_size");
    number_key("context_length", "max_position_embeddings");
    number_key("attention.head_count", "num_attention_heads");
    if (config().contains("rms_norm_eps")) real_key("attention.layer_norm_rms_epsilon", "rms_norm_eps");
    if (config().contains("rope_parameters") && config()["rope_parameters"].contains("rope_theta"))
      key("rope.freq_base", config()["rope_parameters"]["rope_theta"].get<float>());
  }

  void rename(const std::vector<Rename>& names) {
    const int layers =
        config().contains("n_layer") ? config()["n_layer"].get<int>() : config()["num_hidden_layers"].get<int>();
    for (const Rename& rename : names)
      for (int layer = 0; layer < (rename.from.find("{L}") == std::string::npos ? 1 : layers); ++layer) {
        const auto found = source_->tensors.find(at_layer(rename.from, layer));
        if (found == source_->tensors.end()) continue;
        Tensor tensor = found->second;
        if (rename.change) rename.change(tensor);
        file_.tensors.emplace_back(at_layer(rename.to, layer), std::move(tensor));
        source_->tensors.erase(found);
      }
  }

  /// The four experts' matrices of each layer become one tensor; {E} is the expert.
  void stack_experts(const std::string& from, const std::string& to, const std::vector<int>& layers) {
    for (const int layer : layers) {
      Tensor stack;
      for (int expert = 0; expert < 4; ++expert) {
        std::string name = "model.layers." + std::to_string(layer) + from + ".weight";
        name.replace(name.find("{E}"), 3, std::to_string(expert));
        const Tensor& one = source_->tensors.at(name);
        stack.shape = {4, one.shape[0], one.shape[1]};
        stack.values.insert(stack.values.end(), one.values.begin(), one.values.end());
        source_->tensors.erase(name);
      }
      file_.tensors.emplace_back("blk." + std::to_string(layer) + ".ffn_" + to + "_exps.weight", std::move(stack));
    }
  }

  std::filesystem::path write() {
    EXPECT_TRUE(source_->tensors.empty()) << source_->tensors.begin()->first << " was not renamed";
    source_->tensors.clear();
    std::filesystem::path path = source_->write() / "model.gguf";
    file_.write(path);
    return path;
  }

  /// Logits of the file, and the greedy tokens, against the reference's.
  void check() {
    const Expected expected(kModels / model_);
    Engine engine(write(), options(runtime::RowSelection::all));
    expect_parity(expected, engine.logits(forced_tokens(expected)));
  }

  std::string model_, architecture_;
  std::unique_ptr<ModelFolder> source_;
  GgufFile file_;
};

class GgufLlama : public GgufFamilies, public ::testing::WithParamInterface<const char*> {
 protected:
  void interleave() {
    for (auto& [name, tensor] : source_->tensors)
      if (name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight")) interleave_heads(tensor, 16);
  }
};

TEST_P(GgufLlama, PermutedHeadsWindowsAndScaledFrequencies) {
  load(GetParam(), "llama");
  usual_keys();
  number_key("attention.head_count_kv", "num_key_value_heads");
  if (config().contains("sliding_window")) number_key("attention.sliding_window", "sliding_window");
  if (config()["rope_parameters"]["rope_type"] == "llama3") {
    Tensor factors{{8}, {}};
    for (int i = 0; i < 8; ++i) factors.values.push_back(llama3_factor(config()["rope_parameters"], i));
    file_.tensors.emplace_back("rope_freqs.weight", std::move(factors));
  }
  interleave();
  rename(usual_names());
  check();
}

INSTANTIATE_TEST_SUITE_P(Models, GgufLlama, ::testing::Values("llama", "llama3-rope", "mistral-swa"));

TEST_F(GgufFamilies, Qwen2) {
  load("qwen2", "qwen2");
  usual_keys();
  number_key("attention.head_count_kv", "num_key_value_heads");
  rename(usual_names());
  check();
}

TEST_F(GgufFamilies, Qwen3) {
  load("qwen3", "qwen3");
  usual_keys();
  number_key("attention.head_count_kv", "num_key_value_heads");
  number_key("attention.key_length", "head_dim");
  number_key("attention.value_length", "head_dim");
  rename(usual_names());
  check();
}

void gemma_names(std::vector<Rename>& names) {
  const std::string from = "model.layers.{L}.", to = "blk.{L}.";
  std::erase_if(names, [](const Rename& entry) { return entry.to.ends_with("ffn_norm.weight"); });
  names.push_back({from + "post_attention_layernorm.weight", to + "post_attention_norm.weight"});
  names.push_back({from + "pre_feedforward_layernorm.weight", to + "ffn_norm.weight"});
  names.push_back({from + "post_feedforward_layernorm.weight", to + "post_ffw_norm.weight"});
  for (Rename& entry : names)
    if (entry.to.ends_with("norm.weight")) entry.change = plus_one;
}

TEST_F(GgufFamilies, Gemma2) {
  load("gemma2", "gemma2");
  usual_keys();
  number_key("attention.head_count_kv", "num_key_value_heads");
  number_key("attention.key_length", "head_dim");
  number_key("attention.value_length", "head_dim");
  number_key("attention.sliding_window", "sliding_window");
  real_key("attn_logit_softcapping", "attn_logit_softcapping");
  real_key("final_logit_softcapping", "final_logit_softcapping");
  key("attention.scale", 1 / std::sqrt(config()["query_pre_attn_scalar"].get<float>()));
  std::vector<Rename> names = usual_names();
  gemma_names(names);
  rename(names);
  check();
}

TEST_F(GgufFamilies, Gemma3) {
  load("gemma3", "gemma3");
  usual_keys();
  number_key("attention.head_count_kv", "num_key_value_heads");
  number_key("attention.key_length", "head_dim");
  number_key("attention.value_length", "head_dim");
  number_key("attention.sliding_window", "sliding_window");
  key("attention.scale", 1 / std::sqrt(config()["query_pre_attn_scalar"].get<float>()));
  key("rope.freq_base", 1e6F);
  std::vector<Rename> names = usual_names();
  gemma_names(names);
  rename(names);
  check();
}

/// "gemma-embedding": the model of the Hugging Face folder that sees both ways, pooled.
TEST_F(GgufFamilies, GemmaEmbedding) {
  ModelFolder folder(kModels / "gemma3");
  folder.config["use_bidirectional_attention"] = true;
  EngineOptions pooled = options();
  pooled.plan.pooling = "mean,normalize";
  Engine wanted(folder.write(), pooled);
  load("gemma3", "gemma-embedding");
  usual_keys();
  number_key("attention.head_count_kv", "num_key_value_heads");
  number_key("attention.key_length", "head_dim");
  number_key("attention.value_length", "head_dim");
  number_key("attention.sliding_window", "sliding_window");
  key("attention.scale", 1 / std::sqrt(config()["query_pre_attn_scalar"].get<float>()));
  key("rope.freq_base", 1e6F);
  key("pooling_type", 1u);
  std::vector<Rename> names = usual_names();
  gemma_names(names);
  rename(names);
  Engine got(write(), options());
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < 30; ++i) tokens.push_back((i * 37 + 11) % 320);
  EXPECT_LE(largest_error(got.session().embedding(tokens), wanted.session().embedding(tokens)), 2e-6);
}

class GgufPhi3 : public GgufFamilies, public ::testing::WithParamInterface<const char*> {};

TEST_P(GgufPhi3, FusedMatricesWindowsAndLongRope) {
  load(GetParam(), "phi3");
  usual_keys();
  number_key("attention.head_count_kv", "num_key_value_heads");
  key("rope.dimension_count", 16u);
  if (config()["sliding_window"].is_number()) number_key("attention.sliding_window", "sliding_window");
  number_key("rope.scaling.original_context_length", "original_max_position_embeddings");
  const Json& rope = config()["rope_parameters"];
  if (rope.contains("long_factor")) {
    for (const char* kind : {"long", "short"}) {
      Tensor factors{{8}, rope[std::string(kind) + "_factor"].get<std::vector<float>>()};
      file_.tensors.emplace_back("rope_factors_" + std::string(kind) + ".weight", std::move(factors));
    }
    key("rope.scaling.attn_factor", std::sqrt(1 + std::log(4.0F) / std::log(32.0F)));
  }
  std::vector<Rename> names = usual_names();
  names.push_back({"model.layers.{L}.self_attn.qkv_proj.weight", "blk.{L}.attn_qkv.weight"});
  names.push_back({"model.layers.{L}.mlp.gate_up_proj.weight", "blk.{L}.ffn_up.weight"});
  rename(names);
  check();
}

INSTANTIATE_TEST_SUITE_P(Models, GgufPhi3, ::testing::Values("phi3", "phi3-longrope"));

TEST_F(GgufFamilies, Gpt2) {
  load("gpt2", "gpt2");
  number_key("block_count", "n_layer");
  number_key("embedding_length", "n_embd");
  number_key("feed_forward_length", "n_inner");
  number_key("context_length", "n_positions");
  number_key("attention.head_count", "n_head");
  real_key("attention.layer_norm_epsilon", "layer_norm_epsilon");
  std::vector<Rename> names{{"transformer.wte.weight", "token_embd.weight"},
                            {"transformer.wpe.weight", "position_embd.weight"}};
  const auto add = [&](const std::string& from, const std::string& to, bool linear) {
    names.push_back({from + ".weight", to + ".weight", linear ? transpose : std::function<void(Tensor&)>{}});
    names.push_back({from + ".bias", to + ".bias"});
  };
  const std::string from = "transformer.h.{L}.", to = "blk.{L}.";
  add(from + "ln_1", to + "attn_norm", false);
  add(from + "attn.c_attn", to + "attn_qkv", true);
  add(from + "attn.c_proj", to + "attn_output", true);
  add(from + "ln_2", to + "ffn_norm", false);
  add(from + "mlp.c_fc", to + "ffn_up", true);
  add(from + "mlp.c_proj", to + "ffn_down", true);
  add("transformer.ln_f", "output_norm", false);
  rename(names);
  check();
}

TEST_F(GgufFamilies, Mixtral) {
  load("mixtral", "llama");
  usual_keys();
  number_key("attention.head_count_kv", "num_key_value_heads");
  number_key("expert_count", "num_local_experts");
  number_key("expert_used_count", "num_experts_per_tok");
  for (const auto& [from, to] : {std::pair{"w1", "gate"}, std::pair{"w3", "up"}, std::pair{"w2", "down"}})
    stack_experts(std::string(".block_sparse_moe.experts.{E}.") + from, to, {0, 1, 2});
  for (auto& [name, tensor] : source_->tensors)
    if (name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight")) interleave_heads(tensor, 16);
  std::vector<Rename> names = usual_names();
  names.push_back({"model.layers.{L}.block_sparse_moe.gate.weight", "blk.{L}.ffn_gate_inp.weight"});
  rename(names);
  check();
}

/// Its first layer has no experts; converters know no such files, but nothing in the format forbids them.
TEST_F(GgufFamilies, Qwen3Moe) {
  load("qwen3-moe", "qwen3moe");
  usual_keys();
  number_key("attention.head_count_kv", "num_key_value_heads");
  number_key("expert_count", "num_local_experts");
  number_key("expert_used_count", "num_experts_per_tok");
  number_key("expert_feed_forward_length", "moe_intermediate_size");
  for (const char* kind : {"gate", "up", "down"})
    stack_experts(std::string(".mlp.experts.{E}.") + kind + "_proj", kind, {1, 2});
  std::vector<Rename> names = usual_names();
  names.push_back({"model.layers.{L}.mlp.gate.weight", "blk.{L}.ffn_gate_inp.weight"});
  rename(names);
  check();
}

TEST_F(GgufFamilies, Lfm2) {
  load("lfm2", "lfm2");
  usual_keys();
  key("attention.head_count_kv", std::vector<std::int32_t>{0, 0, 2, 0});
  real_key("attention.layer_norm_rms_epsilon", "norm_eps");
  number_key("shortconv.l_cache", "conv_L_cache");
  const std::string from = "model.layers.{L}.", to = "blk.{L}.";
  std::vector<Rename> names = usual_names();
  const auto squeeze = [](Tensor& tensor) { tensor.shape.erase(tensor.shape.begin() + 1); };
  for (const Rename& entry : {Rename{"model.embedding_norm.weight", "token_embd_norm.weight"},
                              Rename{from + "operator_norm.weight", to + "attn_norm.weight"},
                              Rename{from + "ffn_norm.weight", to + "ffn_norm.weight"},
                              Rename{from + "self_attn.q_layernorm.weight", to + "attn_q_norm.weight"},
                              Rename{from + "self_attn.k_layernorm.weight", to + "attn_k_norm.weight"},
                              Rename{from + "self_attn.out_proj.weight", to + "attn_output.weight"},
                              Rename{from + "feed_forward.w1.weight", to + "ffn_gate.weight"},
                              Rename{from + "feed_forward.w3.weight", to + "ffn_up.weight"},
                              Rename{from + "feed_forward.w2.weight", to + "ffn_down.weight"},
                              Rename{from + "conv.in_proj.weight", to + "shortconv.in_proj.weight"},
                              Rename{from + "conv.out_proj.weight", to + "shortconv.out_proj.weight"},
                              Rename{from + "conv.conv.weight", to + "shortconv.conv.weight", squeeze}})
    names.push_back(entry);
  rename(names);
  check();
}

TEST_F(GgufFamilies, Bert) {
  load("bert", "bert");
  usual_keys();
  real_key("attention.layer_norm_epsilon", "layer_norm_eps");
  key("attention.causal", false);
  key("pooling_type", 1u);
  std::vector<Rename> names{{"embeddings.word_embeddings.weight", "token_embd.weight"},
                            {"embeddings.position_embeddings.weight", "position_embd.weight"},
                            {"embeddings.token_type_embeddings.weight", "token_types.weight"}};
  const std::string from = "encoder.layer.{L}.", to = "blk.{L}.";
  const std::pair<std::string, std::string> pairs[] = {{"embeddings.LayerNorm", "token_embd_norm"},
                                                       {from + "attention.self.query", to + "attn_q"},
                                                       {from + "attention.self.key", to + "attn_k"},
                                                       {from + "attention.self.value", to + "attn_v"},
                                                       {from + "attention.output.dense", to + "attn_output"},
                                                       {from + "attention.output.LayerNorm", to + "attn_output_norm"},
                                                       {from + "intermediate.dense", to + "ffn_up"},
                                                       {from + "output.dense", to + "ffn_down"},
                                                       {from + "output.LayerNorm", to + "layer_output_norm"}};
  for (const auto& [old_name, new_name] : pairs)
    for (const char* kind : {".weight", ".bias"}) names.push_back({old_name + kind, new_name + kind});
  std::erase_if(source_->tensors, [](const auto& entry) { return entry.first.starts_with("pooler."); });
  rename(names);
  const std::vector<std::uint32_t> tokens{2, 17, 101, 45, 3};
  EngineOptions pooled = options();
  pooled.plan.pooling = "mean,normalize";
  Engine folder(kModels / "bert", pooled);
  Engine file(write(), options());
  EXPECT_EQ(file.session().embedding(tokens), folder.session().embedding(tokens));
}

}  // namespace
}  // namespace candor
