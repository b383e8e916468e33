#include "formats/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "artifact_sample.h"
#include "formats/artifact_verify.h"
#include "formats/column_weights.h"
#include "formats/quant/codec.h"
#include "test_folder.h"

namespace candor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

std::vector<float> values_of(const ModelSource& source, std::string_view name) {
  const TensorInfo& tensor = *source.find(name);
  std::vector<std::byte> bytes(tensor.bytes);
  source.copy_bytes(tensor, bytes);
  std::vector<float> values(tensor.elements());
  stored_elements(tensor, bytes)(0, values);
  return values;
}

/// A Hugging Face folder of three layers in float32: matrices of 256, one row width of 96, norms.
class ConvertTest : public ::testing::Test {
 protected:
  ConvertTest() {
    std::vector<TensorInfo> tensors = {make_tensor("model.embed_tokens.weight", Encoding::f32, {8, 256}),
                                       make_tensor("model.norm.weight", Encoding::f32, {256})};
    for (int layer = 0; layer < 3; ++layer)
      for (const char* name : {"self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj"})
        tensors.push_back(make_tensor(fmt::format("model.layers.{}.{}.weight", layer, name), Encoding::f32, {32, 256}));
    tensors.push_back(make_tensor("model.layers.0.narrow.weight", Encoding::f32, {8, 96}));
    tensors.push_back(make_tensor("model.layers.0.odd.weight", Encoding::f32, {8, 10}));
    const OutputLayout layout = layout_safetensors(tensors, {});
    std::string bytes = layout.files[0].header;
    float value = 0.37f;
    while (bytes.size() < layout.files[0].size) {
      value = std::fmod(value * 3.7f + 0.113f, 2.0f) - 1.0f;
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    std::filesystem::create_directories(input);
    write_file_atomically(input / "model.safetensors", bytes);
    write_file_atomically(input / "config.json", R"({"model_type":"llama","torch_dtype":"float32"})");
    write_file_atomically(input / "tokenizer.json", R"({"model":{"vocab":{"a":0}}})");
    write_file_atomically(input / "chat_template.jinja", "{{ x }}");
  }

  [[nodiscard]] ConvertOptions options(OutputFormat format, QuantMix mix) const {
    ConvertOptions out;
    out.output = folder.path() / fmt::format("out-{}-{}", to_string(format), to_string(mix));
    out.format = format;
    out.mix = mix;
    out.shard_bytes = 10'000;
    out.make_header = [](const ModelSource&) { return sample_header(); };
    return out;
  }

  TestFolder folder;
  std::filesystem::path input = folder.path() / "input";
  ThreadPool pool{2};
};

TEST_F(ConvertTest, MixesGiveTheSensitiveTensorsMoreBits) {
  const ModelSource source = ModelSource::open(input);
  const ConvertReport report = convert(source, options(OutputFormat::artifact, QuantMix::q4_k_m), pool);
  const ModelSource result = ModelSource::open(report.output);
  const auto encoding = [&](const std::string& name) { return result.find(name)->encoding; };
  EXPECT_EQ(encoding("model.embed_tokens.weight"), Encoding::q6_k);  // tied
  EXPECT_EQ(encoding("model.norm.weight"), Encoding::f32);
  EXPECT_EQ(encoding("model.layers.1.self_attn.q_proj.weight"), Encoding::q4_k);
  EXPECT_EQ(encoding("model.layers.0.self_attn.v_proj.weight"), Encoding::q4_k);
  EXPECT_EQ(encoding("model.layers.2.self_attn.v_proj.weight"), Encoding::q6_k);
  EXPECT_EQ(encoding("model.layers.2.mlp.down_proj.weight"), Encoding::q6_k);
  EXPECT_EQ(encoding("model.layers.0.narrow.weight"), Encoding::q8_0);
  EXPECT_EQ(encoding("model.layers.0.odd.weight"), Encoding::f16);
  EXPECT_TRUE(verify_artifact(result, pool).empty());
  EXPECT_EQ(result.chat_template(), "{{ x }}");
  EXPECT_EQ(result.config()["model_type"], "llama");
  EXPECT_LT(report.bytes_after(), report.bytes_before() / 4);
}

TEST_F(ConvertTest, ColumnsCountAsTheNormBeforeThemIsLarge) {
  const OutputLayout layout =
      layout_safetensors({make_tensor("model.layers.0.input_layernorm.weight", Encoding::f32, {4}),
                          make_tensor("model.layers.0.post_attention_layernorm.weight", Encoding::f32, {4}),
                          make_tensor("model.layers.0.self_attn.q_proj.weight", Encoding::f32, {2, 4}),
                          make_tensor("model.layers.0.self_attn.o_proj.weight", Encoding::f32, {4, 4})},
                         {});
  std::vector<float> values(4 + 4 + 8 + 16, 1.0f);
  values[0] = 3.0f;
  values[1] = 0.0f;  // and two of 1: squares with a mean of 11 / 4
  std::string bytes = layout.files[0].header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  write_file_atomically(input / "model.safetensors", bytes);
  const ModelSource source = ModelSource::open(input);
  const auto weights = column_weights(source, *source.find("model.layers.0.self_attn.q_proj.weight"));
  EXPECT_THAT(weights, ElementsAre(FloatEq(36.0f / 11), FloatEq(0.01f), FloatEq(4.0f / 11), FloatEq(4.0f / 11)));
  EXPECT_TRUE(column_weights(source, *source.find("model.layers.0.self_attn.o_proj.weight")).empty());
  EXPECT_TRUE(column_weights(source, *source.find("model.layers.0.input_layernorm.weight")).empty());
}

TEST_F(ConvertTest, AMapDecidesOverTheMix) {
  const ModelSource source = ModelSource::open(input);
  ConvertOptions choices = options(OutputFormat::artifact, QuantMix::q4_k_m);
  choices.map = QuantMap({{"*.2.self_attn.v_proj.weight", "f16"}, {"*v_proj*", "q5_0"}}, "map");
  const ModelSource result = ModelSource::open(convert(source, choices, pool).output);
  EXPECT_EQ(result.find("model.layers.2.self_attn.v_proj.weight")->encoding, Encoding::f16);
  EXPECT_EQ(result.find("model.layers.0.self_attn.v_proj.weight")->encoding, Encoding::q5_0);
  EXPECT_EQ(result.find("model.layers.1.self_attn.q_proj.weight")->encoding, Encoding::q4_k);
  choices.map = QuantMap({{"blk.*", "f16"}}, "map");
  EXPECT_THAT(error_of(ErrorCode::usage, [&] { (void)convert(source, choices, pool); }), HasSubstr("fits no tensor"));
  for (const Json& wrong : {Json::array(), Json{{"x", "q9_9"}}, Json{{"x", "iq2_xs"}}, Json{{"x", 3}}})
    (void)error_of(ErrorCode::usage, [&] { (void)QuantMap(wrong, "map"); });
}

TEST(QuantMapPatterns, StarsStandForAnyText) {
  EXPECT_TRUE(fits_pattern("*", ""));
  EXPECT_TRUE(fits_pattern("a*c*", "abcbc"));
  EXPECT_TRUE(fits_pattern("a*bc", "abcbc"));
  EXPECT_FALSE(fits_pattern("a*b", "abc"));
  EXPECT_FALSE(fits_pattern("", "a"));
  EXPECT_FALSE(fits_pattern("a.c", "abc"));
}

TEST_F(ConvertTest, ReportsWhatEncodingCost) {
  const ModelSource source = ModelSource::open(input);
  const ConvertReport report = convert(source, options(OutputFormat::artifact, QuantMix::q8_0), pool);
  const ModelSource result = ModelSource::open(report.output);
  for (const TensorReport& tensor : report.tensors) {
    if (!tensor.stats) {
      EXPECT_EQ(tensor.from, tensor.to);
      continue;
    }
    const std::vector<float> before = values_of(source, tensor.name);
    const std::vector<float> after = values_of(result, tensor.name);
    double largest = 0;
    double squares = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const double difference = static_cast<double>(after[i]) - static_cast<double>(before[i]);
      largest = std::max(largest, std::fabs(difference));
      squares += difference * difference;
    }
    EXPECT_EQ(tensor.stats->max_error, largest) << tensor.name;
    EXPECT_NEAR(tensor.stats->rms_error, std::sqrt(squares / static_cast<double>(before.size())), 1e-12);
    EXPECT_LT(tensor.stats->relative_error, 0.01);
    EXPECT_EQ(tensor.stats->not_finite, 0u);
  }
  EXPECT_EQ(to_json(report)["tensors"].size(), source.tensors().size());
}

TEST_F(ConvertTest, ThreadsChangeNoByte) {
  const ModelSource source = ModelSource::open(input);
  ThreadPool one(1);
  ThreadPool four(4);
  ConvertOptions first = options(OutputFormat::artifact, QuantMix::q5_k_m);
  ConvertOptions second = first;
  second.output = folder.path() / "second";
  const ConvertReport a = convert(source, first, one);
  const ConvertReport b = convert(source, second, four);
  EXPECT_EQ(ModelSource::open(a.output).manifest(), ModelSource::open(b.output).manifest());
  EXPECT_EQ(to_json(a)["tensors"], to_json(b)["tensors"]);
}

TEST_F(ConvertTest, SafetensorsFoldersOpenAndHoldTheRoundedValues) {
  const ModelSource source = ModelSource::open(input);
  const ConvertReport report = convert(source, options(OutputFormat::safetensors, QuantMix::bf16), pool);
  const ModelSource result = ModelSource::open(report.output);
  EXPECT_EQ(result.config()["torch_dtype"], "bfloat16");
  EXPECT_EQ(result.chat_template(), "{{ x }}");
  EXPECT_EQ(result.find("model.embed_tokens.weight")->encoding, Encoding::bf16);
  EXPECT_EQ(values_of(result, "model.norm.weight"), values_of(source, "model.norm.weight"));
  EXPECT_THAT(error_of(ErrorCode::unsupported,
                       [&] { (void)convert(source, options(OutputFormat::safetensors, QuantMix::q8_0), pool); }),
              HasSubstr("safetensors cannot hold"));
}

TEST_F(ConvertTest, GgufNeedsMetadataAndTakesNamesAndOrdersFromTheCaller) {
  const ModelSource source = ModelSource::open(input);
  ConvertOptions choices = options(OutputFormat::gguf, QuantMix::f16);
  EXPECT_THAT(error_of(ErrorCode::unsupported, [&] { (void)convert(source, choices, pool); }),
              HasSubstr("no GGUF metadata"));
  choices.pairs.emplace();
  choices.pairs->set_string("general.architecture", "llama");
  choices.edit = [](const TensorInfo& tensor) -> std::optional<TensorEdit> {
    if (tensor.name != "model.norm.weight") return std::nullopt;
    return TensorEdit{"output_norm.weight", [](std::span<float> values, std::span<const std::uint64_t>) {
                        for (float& value : values) value += 1.0f;
                      }};
  };
  const ConvertReport report = convert(source, choices, pool);
  const ModelSource result = ModelSource::open(report.output);
  EXPECT_EQ(result.gguf()->string("general.architecture"), "llama");
  const std::vector<float> before = values_of(source, "model.norm.weight");
  const std::vector<float> after = values_of(result, "output_norm.weight");
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i], before[i] + 1.0f);

  ConvertOptions again = options(OutputFormat::gguf, QuantMix::q8_0);  // a GGUF source brings its own metadata
  const ModelSource requantized = ModelSource::open(convert(result, again, pool).output);
  EXPECT_EQ(requantized.gguf()->unsigned_integer("general.file_type"), 7u);
  EXPECT_EQ(requantized.find("model.embed_tokens.weight")->encoding, Encoding::q8_0);
}

TEST_F(ConvertTest, TensorsAreStackedTransposedAndReshaped) {
  const OutputLayout layout = layout_safetensors(
      {make_tensor("e.0.weight", Encoding::f32, {2, 3}), make_tensor("e.1.weight", Encoding::f32, {2, 3}),
       make_tensor("t.weight", Encoding::f32, {2, 3}), make_tensor("c.weight", Encoding::f32, {2, 1, 3})},
      {});
  std::vector<float> values(24);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  std::string bytes = layout.files[0].header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  write_file_atomically(input / "model.safetensors", bytes);
  const ModelSource source = ModelSource::open(input);
  for (const QuantMix mix : {QuantMix::keep, QuantMix::bf16}) {  // bytes are moved, and values encoded
    ConvertOptions choices = options(OutputFormat::gguf, mix);
    choices.output += ".gguf";
    choices.pairs.emplace();
    choices.edit = [](const TensorInfo& tensor) -> std::optional<TensorEdit> {
      TensorEdit edit{tensor.name};
      if (tensor.name.starts_with("e.")) {
        edit.name = "stack.weight";
        edit.parts = 2;
        edit.part = tensor.name == "e.0.weight" ? 1 : 0;
      }
      edit.transposed = tensor.name == "t.weight";
      if (tensor.name == "c.weight") edit.shape = {2, 3};
      return edit;
    };
    const ModelSource result = ModelSource::open(convert(source, choices, pool).output);
    EXPECT_THAT(result.find("stack.weight")->shape, ElementsAre(2, 2, 3));
    EXPECT_THAT(values_of(result, "stack.weight"), ElementsAre(6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5));
    EXPECT_THAT(result.find("t.weight")->shape, ElementsAre(3, 2));
    EXPECT_THAT(values_of(result, "t.weight"), ElementsAre(12, 15, 13, 16, 14, 17));
    EXPECT_THAT(result.find("c.weight")->shape, ElementsAre(2, 3));
    choices.output += "2";
    choices.edit = [](const TensorInfo& tensor) -> std::optional<TensorEdit> {
      TensorEdit edit{tensor.name == "e.0.weight" ? "stack.weight" : tensor.name};
      if (tensor.name == "e.0.weight") edit.parts = 2;
      return edit;
    };
    EXPECT_THAT(error_of(ErrorCode::format, [&] { (void)convert(source, choices, pool); }),
                HasSubstr("some are missing"));
  }
}

TEST_F(ConvertTest, GgufMetadataSurvivesAnArtifact) {
  const auto path = folder.write("m.gguf", sample_gguf());
  const ModelSource source = ModelSource::open(path);
  const ModelSource artifact =
      ModelSource::open(convert(source, options(OutputFormat::artifact, QuantMix::keep), pool).output);
  ASSERT_NE(artifact.gguf(), nullptr);
  EXPECT_EQ(artifact.gguf()->to_json(), source.gguf()->to_json());
  EXPECT_EQ(artifact.manifest()["tokenizer"]["type"], "gguf");
  const ModelSource back =
      ModelSource::open(convert(artifact, options(OutputFormat::gguf, QuantMix::keep), pool).output);
  EXPECT_EQ(back.gguf()->to_json(), source.gguf()->to_json());
  for (const TensorInfo& tensor : source.tensors())
    EXPECT_TRUE(std::ranges::equal(back.bytes(*back.find(tensor.name)), source.bytes(tensor))) << tensor.name;
}

TEST_F(ConvertTest, QuantizingTwiceMustBeAskedFor) {
  const ModelSource source = ModelSource::open(input);
  const ModelSource coarse =
      ModelSource::open(convert(source, options(OutputFormat::artifact, QuantMix::q8_0), pool).output);
  ConvertOptions choices = options(OutputFormat::artifact, QuantMix::q4_k_m);
  EXPECT_THAT(error_of(ErrorCode::unsupported, [&] { (void)convert(coarse, choices, pool); }),
              AllOf(HasSubstr("q8_0 already"), HasSubstr("--requantize")));
  choices.requantize = true;
  EXPECT_NO_THROW((void)convert(coarse, choices, pool));
}

TEST_F(ConvertTest, TensorsThatTheManifestLacksAreLeftOutAndNamed) {
  const ModelSource source = ModelSource::open(input);
  ConvertOptions choices = options(OutputFormat::artifact, QuantMix::keep);
  choices.make_header = [](const ModelSource& planned) {
    Json header = sample_header();
    for (const TensorInfo& tensor : planned.tensors())
      if (tensor.name.find("odd") == std::string::npos) header["tensors"][tensor.name]["role"] = "special";
    return header;
  };
  const ConvertReport report = convert(source, choices, pool);
  EXPECT_EQ(report.left_out, std::vector<std::string>{"model.layers.0.odd.weight"});
  const ModelSource result = ModelSource::open(report.output);
  EXPECT_EQ(result.find("model.layers.0.odd.weight"), nullptr);
  EXPECT_EQ(result.manifest()["tensors"]["model.norm.weight"]["role"], "special");
}

TEST_F(ConvertTest, ValuesOutsideBinary16AreCountedAndNanIsNotQuantized) {
  const OutputLayout layout = layout_safetensors({make_tensor("w.weight", Encoding::f32, {2, 256})}, {});
  std::vector<float> values(512, 1.0f);
  values[0] = 70000.0f;
  values[1] = 1e-9f;
  const auto write = [&] {
    std::string bytes = layout.files[0].header;
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    write_file_atomically(input / "model.safetensors", bytes);
  };
  write();
  const ConvertReport report =
      convert(ModelSource::open(input), options(OutputFormat::safetensors, QuantMix::f16), pool);
  EXPECT_EQ(report.tensors[0].stats->above_f16, 1u);
  EXPECT_EQ(report.tensors[0].stats->below_f16, 1u);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  write();
  EXPECT_THAT(
      error_of(ErrorCode::format,
               [&] { (void)convert(ModelSource::open(input), options(OutputFormat::artifact, QuantMix::q8_0), pool); }),
      AllOf(HasSubstr("w.weight"), HasSubstr("1 values")));
}

TEST_F(ConvertTest, ColumnLayoutIsReadAsTheMatrixItStandsFor) {
  const std::vector<float> values = values_of(ModelSource::open(input), "model.layers.0.self_attn.q_proj.weight");
  ArtifactContent content;
  content.header = sample_header();
  TensorInfo tensor = make_tensor("w.weight", Encoding::q8_0, {256, 32});
  tensor.layout = TensorLayout::columns;
  content.tensors = {tensor};
  std::vector<std::byte> bytes(padded_row_bytes(Encoding::q8_0, 256) * 32);  // 32 rows of 256: the transpose
  quantize(Encoding::q8_0, values.data(), bytes.data(), 32, 256);
  ArtifactWriter writer(folder.path() / "columns", content, "key");
  writer.staged().write(bytes);
  writer.finish(pool);
  const ModelSource source = ModelSource::open(folder.path() / "columns");
  ConvertOptions choices = options(OutputFormat::artifact, QuantMix::f32);
  choices.requantize = true;
  const std::vector<float> matrix = values_of(ModelSource::open(convert(source, choices, pool).output), "w.weight");
  std::vector<float> decoded(values.size());
  dequantize(Encoding::q8_0, bytes.data(), decoded.data(), decoded.size());
  for (std::size_t row = 0; row < 256; ++row)
    for (std::size_t col = 0; col < 32; ++col) EXPECT_EQ(matrix[row * 32 + col], decoded[col * 256 + row]);
}

TEST_F(ConvertTest, AnInterruptedConversionGoesOn) {
  const ModelSource source = ModelSource::open(input);
  ConvertOptions choices = options(OutputFormat::artifact, QuantMix::q8_0);
  const ConvertReport whole = convert(source, choices, pool);
  const Json manifest = ModelSource::open(whole.output).manifest();
  std::filesystem::remove_all(whole.output);
  // An edit that fails at the fifth tensor stands for a process that is killed there.
  choices.edit = [](const TensorInfo& tensor) -> std::optional<TensorEdit> {
    return TensorEdit{tensor.name, [name = tensor.name](std::span<float>, std::span<const std::uint64_t>) {
                        if (name == "model.layers.1.self_attn.q_proj.weight") throw std::runtime_error("killed");
                      }};
  };
  EXPECT_THROW((void)convert(source, choices, pool), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(choices.output));
  choices.edit = nullptr;
  const ConvertReport resumed = convert(source, choices, pool);
  EXPECT_EQ(resumed.resumed, 5u);
  EXPECT_EQ(ModelSource::open(resumed.output).manifest(), manifest);
  EXPECT_EQ(to_json(resumed)["tensors"][0], to_json(whole)["tensors"][0]);
}

}  // namespace
}  // namespace candor
