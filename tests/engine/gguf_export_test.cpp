// Conversion between formats as a whole: a GGUF file made from a Hugging Face folder computes and tokenizes as the
// folder does, and a GGUF file that went through an artifact has the same tensors.
#include "engine/gguf_export.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "engine/engine_fixture.h"
#include "formats/test_folder.h"

namespace candor {
namespace {

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

class GgufExport : public ::testing::TestWithParam<const char*> {};

TEST_P(GgufExport, ComputesWhatTheFolderComputes) {
  const std::filesystem::path model = kShared / "goldens/hf" / GetParam();
  SKIP_WITHOUT(model);
  const TestFolder folder;
  const std::filesystem::path file = exported(model, folder);
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < 20; ++i) tokens.push_back((i * 37 + 11) % 60);
  const std::vector<float> before = logits_with(model, tokens, 1, 64);
  const std::vector<float> after = logits_with(file, tokens, 1, 64);
  ASSERT_EQ(before.size(), after.size());
  float largest = 0;
  float difference = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    largest = std::max(largest, std::fabs(before[i]));
    difference = std::max(difference, std::fabs(before[i] - after[i]));
  }
  EXPECT_LT(difference, 2e-5f * largest);
}

INSTANTIATE_TEST_SUITE_P(Families, GgufExport,
                         ::testing::Values("llama", "llama3-rope", "mistral-swa", "qwen2", "qwen3"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::erase(name, '-');
                           return name;
                         });

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

TEST(GgufExportFamilies, OthersAreRefused) {
  const std::filesystem::path model = kShared / "goldens/hf/gpt2";
  SKIP_WITHOUT(model);
  const ModelSource source = ModelSource::open(model);
  ConvertOptions options = gguf_options("unused.gguf");
  EXPECT_THAT(error_of(ErrorCode::unsupported, [&] { describe_as_gguf(source, options); }),
              ::testing::AllOf(HasSubstr("gpt2"), HasSubstr("qwen3")));
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
