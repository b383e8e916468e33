#include "formats/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "artifact_sample.h"
#include "base/sha256.h"
#include "formats/quant/codec.h"
#include "test_folder.h"

namespace candor {
namespace {

using ::testing::HasSubstr;

SynthOptions small(const TestFolder& folder, const char* name, std::uint64_t seed = 1) {
  SynthOptions options;
  options.output = folder.path() / name;
  options.shape = find_synth_shape("llama-1m");
  options.seed = seed;
  options.make_header = [](const ModelSource& planned) {
    EXPECT_EQ(planned.gguf()->string("general.architecture"), "llama");
    EXPECT_NE(planned.find("blk.1.ffn_down.weight"), nullptr);
    return sample_header();
  };
  return options;
}

TEST(Synth, WritesAGgufModelOfTheShape) {
  const TestFolder folder;
  ThreadPool pool(2);
  const SynthOptions options = small(folder, "m.gguf");
  synthesize(options, pool);
  const ModelSource source = ModelSource::open(options.output);
  EXPECT_EQ(source.gguf()->unsigned_integer("llama.attention.head_count_kv"), 2u);
  EXPECT_EQ(source.gguf()->strings("tokenizer.ggml.tokens")->size(), 512u);
  EXPECT_EQ(source.tensors().size(), 2u + 2u * 9u);
  EXPECT_EQ(source.find("output.weight"), nullptr);
  EXPECT_EQ(source.find("blk.0.attn_k.weight")->shape, (std::vector<std::uint64_t>{128, 256}));
  std::uint64_t bytes = 0;
  for (const TensorInfo& tensor : source.tensors()) bytes += tensor.bytes;
  EXPECT_EQ(bytes, synth_bytes(options));
}

TEST(Synth, WeightsHaveTheWantedMoments) {
  const TestFolder folder;
  ThreadPool pool(2);
  SynthOptions options = small(folder, "m.gguf");
  options.mix = QuantMix::f32;
  synthesize(options, pool);
  const ModelSource source = ModelSource::open(options.output);
  const TensorInfo& tensor = *source.find("blk.0.ffn_gate.weight");
  std::vector<float> values(tensor.elements());
  dequantize(tensor.encoding, source.bytes(tensor).data(), values.data(), values.size());
  double sum = 0;
  double squares = 0;
  double neighbours = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += static_cast<double>(values[i]);
    squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    if (i > 0) neighbours += static_cast<double>(values[i]) * static_cast<double>(values[i - 1]);
  }
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 0.02 * 4 / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(squares / n), 0.02, 0.02 * 4 / std::sqrt(n));
  EXPECT_NEAR(neighbours / squares, 0, 4 / std::sqrt(n));
}

TEST(Synth, TheSeedAloneDecidesTheBytes) {
  const TestFolder folder;
  ThreadPool one(1);
  ThreadPool three(3);
  synthesize(small(folder, "a.gguf"), one);
  synthesize(small(folder, "b.gguf"), three);
  synthesize(small(folder, "c.gguf", 2), three);
  const auto content = [&](const char* name) { return read_file(folder.path() / name, 1 << 24); };
  EXPECT_EQ(content("a.gguf"), content("b.gguf"));
  EXPECT_NE(content("a.gguf"), content("c.gguf"));
}

TEST(Synth, WritesArtifactsWithTheSameTensors) {
  const TestFolder folder;
  ThreadPool pool(2);
  SynthOptions options = small(folder, "artifact");
  options.format = OutputFormat::artifact;
  options.mix = QuantMix::q4_k_m;
  synthesize(options, pool);
  SynthOptions file = small(folder, "m.gguf");
  file.mix = QuantMix::q4_k_m;
  synthesize(file, pool);
  const ModelSource artifact = ModelSource::open(options.output);
  const ModelSource gguf = ModelSource::open(file.output);
  EXPECT_EQ(artifact.gguf()->unsigned_integer("llama.block_count"), 2u);
  for (const TensorInfo& tensor : gguf.tensors())
    EXPECT_EQ(artifact.find(tensor.name)->sha256, sha256_hex(gguf.bytes(tensor))) << tensor.name;
}

TEST(Synth, RefusesShapesThatAreNone) {
  const TestFolder folder;
  ThreadPool pool(1);
  EXPECT_THAT(error_of(ErrorCode::usage, [] { (void)find_synth_shape("llama-0b"); }), HasSubstr("llama-1.1b"));
  SynthOptions options = small(folder, "m.gguf");
  options.shape.kv_heads = 3;
  EXPECT_THAT(error_of(ErrorCode::usage, [&] { synthesize(options, pool); }), HasSubstr("key/value heads"));
  options = small(folder, "m");
  options.format = OutputFormat::safetensors;
  EXPECT_THAT(error_of(ErrorCode::usage, [&] { synthesize(options, pool); }), HasSubstr("safetensors"));
}

}  // namespace
}  // namespace candor
