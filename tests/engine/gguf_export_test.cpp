// Conversion between formats as a whole: a GGUF file made from a Hugging Face folder computes and tokenizes as the
// folder does, and a GGUF file that went through an artifact has the same tensors.
#include "engine/gguf_export.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "engine/engine_fixture.h"
#include "formats/test_folder.h"
#include "models/model_folder.h"
#include "text/tokenizer_to_gguf.h"

namespace candor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ConvertOptions gguf_options(const std::filesystem::path& output, QuantMix mix = QuantMix::keep) {
  ConvertOptions out;
  out.output = output;
  out.format = OutputFormat::gguf;
  out.mix = mix;
  return out;
}

std::filesystem::path exported(const std::filesystem::path& model, const TestFolder& folder) {
  const ModelSource source = ModelSource::open(model);
  ConvertOptions options = gguf_options(folder.path() / "exported.gguf");
  describe_as_gguf(source, options);
  ThreadPool pool(2);
  return convert(source, options, pool).output;
}

/// A model with experts in every layer, as GGUF wants it: layer 0 gets those of layer 1.
std::filesystem::path all_sparse(ModelFolder& folder) {
  folder.config["mlp_only_layers"] = Json::array();
  std::map<std::string, ModelFolder::Tensor> added;
  for (const auto& [name, tensor] : folder.tensors)
    if (constexpr std::string_view kFrom = "model.layers.1.mlp."; name.starts_with(kFrom))
      added.emplace("model.layers.0.mlp." + name.substr(kFrom.size()), tensor);
  std::erase_if(folder.tensors, [](const auto& entry) { return entry.first.starts_with("model.layers.0.mlp."); });
  folder.tensors.merge(added);
  return folder.write();
}

std::vector<float> outputs_of(const std::filesystem::path& model, std::string_view family) {
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < 20; ++i) tokens.push_back((i * 37 + 11) % 60);
  if (family != "bert") return logits_with(model, tokens, 1, 64);
  EngineOptions setup = options();
  setup.plan.pooling = "mean";
  return Engine(model, setup).session().embedding(tokens);
}

class GgufExport : public ::testing::TestWithParam<const char*> {};

TEST_P(GgufExport, ComputesWhatTheFolderComputes) {
  const std::string family = GetParam();
  std::filesystem::path model = kShared / "goldens/hf" / family;
  SKIP_WITHOUT(model);
  ModelFolder changed(model);
  if (family == "qwen3-moe") model = all_sparse(changed);
  const TestFolder folder;
  const std::filesystem::path file = exported(model, folder);
  const std::vector<float> before = outputs_of(model, family);
  const std::vector<float> after = outputs_of(file, family);
  // Files of the architecture llama have the columns of queries and keys in another order, and scores are sums of their
  // products. LongRoPE's magnitude is a float32 there.
  const std::set<std::string> rounded{"llama", "llama3-rope", "mistral-swa", "mixtral", "phi3-longrope"};
  if (!rounded.contains(family)) {
    expect_same_bits(before, after, family);
    return;
  }
  ASSERT_EQ(before.size(), after.size());
  float largest = 0;
  float difference = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    largest = std::max(largest, std::fabs(before[i]));
    difference = std::max(difference, std::fabs(before[i] - after[i]));
  }
  EXPECT_LT(difference, 5e-6f * largest);
}

INSTANTIATE_TEST_SUITE_P(Families, GgufExport,
                         ::testing::Values("bert", "gemma2", "gemma3", "gpt2", "lfm2", "llama", "llama3-rope",
                                           "mistral-swa", "mixtral", "phi3", "phi3-longrope", "qwen2", "qwen3",
                                           "qwen3-moe"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::erase(name, '-');
                           return name;
                         });

/// EmbeddingGemma: it looks both ways, in windows of a period of its own; its rows become one vector, which goes
/// through two linear layers.
TEST(GgufExportFamilies, AnEmbeddingModelKeepsItsPoolingAndWhatFollows) {
  const std::filesystem::path model = kSource / "tests/data/transformers/embeddinggemma";
  const TestFolder folder;
  const std::filesystem::path file = exported(model, folder);
  const ModelSource written = ModelSource::open(file);
  EXPECT_EQ(written.gguf()->string("general.architecture"), "gemma-embedding");
  EXPECT_EQ(written.gguf()->unsigned_integer("gemma-embedding.pooling_type"), 1u);
  EXPECT_EQ(written.gguf()->unsigned_integer("gemma-embedding.attention.sliding_window"), 8u);
  ASSERT_NE(written.find("dense_3.weight"), nullptr);
  const std::vector<std::uint32_t> tokens = {5, 17, 3, 88, 42, 9, 61, 2, 30, 77, 14, 95};
  const std::vector<float> vector = Engine(file, options()).session().embedding(tokens);
  expect_same_bits(Engine(model, options()).session().embedding(tokens), vector, "embedding");
  EXPECT_EQ(vector.size(), 32u);
}

TEST(GgufExportTokenizer, IsTheSame) {
  const std::filesystem::path model = kShared / "models/lexicon-26m";
  SKIP_WITHOUT(model);
  const TestFolder folder;
  const ModelSource before = ModelSource::open(model);
  const ModelSource after = ModelSource::open(exported(model, folder));
  const auto original = load_tokenizer(before);
  const auto written = load_tokenizer(after);
  EXPECT_EQ(after.chat_template(), before.chat_template());
  EXPECT_EQ(written->bos_id(), original->bos_id());
  EXPECT_EQ(written->pad_id(), original->pad_id());
  EXPECT_EQ(written->adds_bos(), original->adds_bos());
  EXPECT_EQ(after.gguf()->unsigned_integer("tokenizer.ggml.eos_token_id"), 2u);
  EXPECT_EQ(after.gguf()->unsigned_integer("tokenizer.ggml.eot_token_id"), 0u);
  for (const std::string text : {"Define lighthouse.", "<|im_start|>user\nHi<|im_end|>", "  two  spaces\n\n42"})
    EXPECT_EQ(written->encode(text), original->encode(text)) << text;
}

/// A folder with the tokenizer files of another, and weights that nobody reads.
std::unique_ptr<Tokenizer> through_gguf(const TestFolder& folder, std::uint64_t rows, std::string& header,
                                        std::unique_ptr<Tokenizer>& original) {
  std::filesystem::copy(kShared / "goldens/hf/llama/config.json", folder.path() / "config.json");
  std::filesystem::copy(kShared / "goldens/hf/llama/model.safetensors", folder.path() / "model.safetensors");
  const ModelSource source = ModelSource::open(folder.path());
  original = load_tokenizer(source);
  GgufPairs pairs;
  put_gguf_tokenizer(pairs, source, rows, {});
  header = layout_gguf("t", pairs, {}).files.front().header;
  return load_tokenizer_gguf(parse_gguf(std::as_bytes(std::span(header)), "t").metadata, "t");
}

void expect_same_tokens(const Tokenizer& written, const Tokenizer& original) {
  for (const std::string text : {"The lighthouse-keeper's 42 lamps.", "  two  spaces\n\n",
                                 "Gr\xc3\xbc\xc3\x9f dich, \xe4\xbd\xa0", "<s> a </s>", "x"}) {
    EXPECT_EQ(written.encode(text), original.encode(text)) << text;
  }
}

TEST(GgufExportTokenizer, SentencePieceModelsKeepTheirScores) {
  const std::filesystem::path model = kShared / "goldens/tokenizers/llama2-spm.model";
  SKIP_WITHOUT(model);
  const TestFolder folder;
  std::filesystem::copy(model, folder.path() / "tokenizer.model");
  std::string header;
  std::unique_ptr<Tokenizer> original;
  const auto written = through_gguf(folder, 32064, header, original);
  expect_same_tokens(*written, *original);
  EXPECT_EQ(written->vocabulary_size(), 32064u);
  EXPECT_EQ(written->bos_id(), original->bos_id());
}

TEST(GgufExportTokenizer, PiecesOfATokenizerJsonMergeByRank) {
  const std::filesystem::path model = kShared / "goldens/rdrr/tiny-hf";
  SKIP_WITHOUT(model);
  const TestFolder folder;
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy(model / file, folder.path() / file);
  std::string header;
  std::unique_ptr<Tokenizer> original;
  const auto written = through_gguf(folder, 512, header, original);
  expect_same_tokens(*written, *original);
  EXPECT_TRUE(written->adds_bos());
}

/// Phi-3's added tokens take the white space after them, which GGUF says by the model's name alone.
TEST(GgufExportTokenizer, Phi3TokensTakeTheSpaceAfterThem) {
  const std::filesystem::path model = kShared / "goldens/rdrr/tiny-hf";
  SKIP_WITHOUT(model);
  const auto with_flags = [&](const TestFolder& folder, bool end_takes) {
    Json tokenizer = parse_json(read_file(model / "tokenizer.json", 1 << 24), "tokenizer.json");
    for (Json& token : tokenizer["added_tokens"])
      token["rstrip"] = token["content"] != "<unk>" && token["content"] != "<s>";
    for (const char* content : {"<|user|>", "<|end|>"})
      tokenizer["added_tokens"].push_back({{"id", 512 + (content[2] == 'e')},
                                           {"content", content},
                                           {"single_word", false},
                                           {"lstrip", false},
                                           {"rstrip", content[2] == 'u' || end_takes},
                                           {"normalized", false},
                                           {"special", true}});
    folder.write("tokenizer.json", tokenizer.dump());
  };
  std::string header;
  std::unique_ptr<Tokenizer> original;
  const TestFolder folder;
  with_flags(folder, true);
  const auto written = through_gguf(folder, 520, header, original);
  expect_same_tokens(*written, *original);
  const std::string chat = "<|user|>\nHello<|end|>\n <s> x";
  EXPECT_EQ(written->encode(chat), original->encode(chat));
  EXPECT_EQ(written->encode("<|user|>\n Hello"), written->encode("<|user|>Hello"));
  EXPECT_NE(written->encode("<s> x"), written->encode("<s>x"));
  EXPECT_EQ(parse_gguf(std::as_bytes(std::span(header)), "t").metadata.string("general.name"), "Phi-3");
  const TestFolder other;
  with_flags(other, false);
  EXPECT_THAT(error_of(ErrorCode::unsupported, [&] { (void)through_gguf(other, 520, header, original); }),
              AllOf(HasSubstr("\"<|end|>\" leaves the white space after it"), HasSubstr("convert to an artifact")));
}

TEST(GgufExportTokenizer, WordPiecesMarkBeginnings) {
  SKIP_WITHOUT(kShared / "goldens/hf/llama");
  const TestFolder folder;
  Json vocabulary = Json::object();
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "light", "##house", "##s", "a", ".", "x"})
    vocabulary[token] = vocabulary.size();
  Json added = Json::array();
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"})
    added.push_back({{"id", vocabulary[token]}, {"content", token}, {"special", true}});
  const auto special = [&](const char* token) {
    return Json{{token, {{"id", token}, {"ids", {vocabulary[token]}}, {"tokens", {token}}}}};
  };
  Json specials = special("[CLS]");
  specials.update(special("[SEP]"));
  const Json sequence{{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const auto token = [](const char* name) { return Json{{"SpecialToken", {{"id", name}, {"type_id", 0}}}}; };
  folder.write("tokenizer.json", Json{{"added_tokens", added},
                                      {"normalizer", {{"type", "BertNormalizer"}, {"lowercase", true}}},
                                      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                                      {"post_processor",
                                       {{"type", "TemplateProcessing"},
                                        {"single", {token("[CLS]"), sequence, token("[SEP]")}},
                                        {"pair", {token("[CLS]"), sequence, token("[SEP]")}},
                                        {"special_tokens", specials}}},
                                      {"model",
                                       {{"type", "WordPiece"},
                                        {"unk_token", "[UNK]"},
                                        {"continuing_subword_prefix", "##"},
                                        {"max_input_chars_per_word", 100},
                                        {"vocab", vocabulary}}}}
                                     .dump());
  std::string header;
  std::unique_ptr<Tokenizer> original;
  const auto written = through_gguf(folder, 16, header, original);
  for (const char* text : {"Lighthouses a.", "lighthouse x", "unknown"})
    EXPECT_EQ(written->encode(text), original->encode(text)) << text;
  EXPECT_EQ(written->encode("Lighthouses."), (std::vector<std::uint32_t>{2, 4, 5, 6, 8, 3}));
}

/// What the keys of an architecture cannot say is refused with the step that would be another.
TEST(GgufExportFamilies, WhatTheKeysCannotSayIsRefused) {
  SKIP_WITHOUT(kShared / "goldens/hf");
  const auto refused = [](const char* family, const std::function<void(ModelFolder&)>& change) {
    ModelFolder folder(kShared / "goldens/hf" / family);
    change(folder);
    const ModelSource source = ModelSource::open(folder.write());
    ConvertOptions options = gguf_options("unused.gguf");
    return error_of(ErrorCode::unsupported, [&] { describe_as_gguf(source, options); });
  };
  EXPECT_THAT(refused("qwen3-moe", [](ModelFolder&) {}), HasSubstr("step gate_proj has no form in GGUF"));
  EXPECT_THAT(refused("gemma2", [](ModelFolder& folder) { folder.config["layer_types"][0] = "full_attention"; }),
              AllOf(HasSubstr("step "), HasSubstr("layers")));
  EXPECT_THAT(refused("mixtral", [](ModelFolder& folder) { folder.config["hidden_act"] = "gelu"; }),
              AllOf(HasSubstr("activation = \"gelu_erf\""), HasSubstr("would be \"silu\"")));
  EXPECT_THAT(refused("qwen2",
                      [](ModelFolder& folder) {
                        folder.config["use_sliding_window"] = true;
                        folder.config["sliding_window"] = 8;
                        folder.config["max_window_layers"] = 0;
                        folder.config["layer_types"] = Json(3, "sliding_attention");
                      }),
              HasSubstr("sliding_window"));
}

TEST(GgufRoundTrip, ThroughAnArtifactKeepsEveryByte) {
  const std::filesystem::path model = kShared / "models/stories260K/stories260K-f32.gguf";
  SKIP_WITHOUT(model);
  const TestFolder folder;
  ThreadPool pool(2);
  const ModelSource source = ModelSource::open(model);
  ConvertOptions to_artifact;
  to_artifact.output = folder.path() / "artifact";
  to_artifact.shard_bytes = 100'000;  // tensors are cut
  to_artifact.make_header = [](const ModelSource& planned) { return runtime::generate_manifest(planned, {}); };
  const ModelSource artifact = ModelSource::open(convert(source, to_artifact, pool).output);
  const ModelSource back = ModelSource::open(convert(artifact, gguf_options(folder.path() / "back.gguf"), pool).output);
  EXPECT_EQ(back.tensors().size(), artifact.tensors().size());
  for (const TensorInfo& tensor : back.tensors()) {
    const TensorInfo* original = source.find(tensor.name);
    ASSERT_NE(original, nullptr) << tensor.name;
    EXPECT_EQ(tensor.encoding, original->encoding);
    EXPECT_TRUE(std::ranges::equal(back.bytes(tensor), source.bytes(*original))) << tensor.name;
  }
  EXPECT_EQ(back.gguf()->to_json(), source.gguf()->to_json());
}

}  // namespace
}  // namespace candor
