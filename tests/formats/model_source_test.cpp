#include "formats/model_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "formats/gguf_writer.h"
#include "test_folder.h"

namespace candor {
namespace {

TEST(ModelSourceBytes, PartsAreCopiedAndDroppedPagesAreReadAgain) {
  const TestFolder folder;
  TensorInfo tensor;
  tensor.name = "w";
  tensor.shape = {5000};
  const OutputLayout layout = layout_gguf("m.gguf", {}, {tensor});
  std::vector<float> values(5000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  std::string bytes = layout.files[0].header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  bytes.resize(layout.files[0].size);
  const ModelSource source = ModelSource::open(folder.write("m.gguf", bytes));
  const TensorInfo& stored = *source.find("w");
  for (int round = 0; round < 2; ++round) {
    std::vector<float> part(1000);
    source.copy_bytes(stored, 2000 * sizeof(float), std::as_writable_bytes(std::span(part)));
    EXPECT_EQ(part.front(), 2000.0f);
    EXPECT_EQ(part.back(), 2999.0f);
    source.drop_pages(stored);
  }
  std::vector<std::byte> more(8);
  EXPECT_THROW(source.copy_bytes(stored, stored.bytes - 4, more), Error);
  EXPECT_THROW(source.files()[0].drop_pages(1, source.files()[0].size()), Error);
}

using ::testing::HasSubstr;

float first_float(const ModelSource& source, std::string_view name) {
  const TensorInfo* tensor = source.find(name);
  EXPECT_NE(tensor, nullptr);
  float value = 0;
  std::memcpy(&value, source.bytes(*tensor).data(), sizeof value);
  return value;
}

TEST(ModelSource, OpensEveryHuggingFaceGolden) {
  CANDOR_SKIP_WITHOUT_SHARED();
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(shared_folder() / "goldens/hf")) {
    const ModelSource source = ModelSource::open(entry.path());
    EXPECT_EQ(source.format(), SourceFormat::huggingface);
    EXPECT_TRUE(source.config().contains("model_type")) << entry.path();
    EXPECT_FALSE(source.tensors().empty());
    std::uint64_t bytes = 0;
    for (const TensorInfo& tensor : source.tensors()) {
      EXPECT_EQ(source.find(tensor.name), &tensor);
      bytes += source.bytes(tensor).size();
    }
    EXPECT_LT(bytes, source.files().front().size());
    ++count;
  }
  EXPECT_EQ(count, 14);
}

TEST(ModelSource, OpensAShardedFolderWithItsTokenizer) {
  CANDOR_SKIP_WITHOUT_SHARED();
  const ModelSource source = ModelSource::open(shared_folder() / "models/lexicon-26m");
  EXPECT_EQ(source.files().size(), 4u);
  EXPECT_TRUE(source.tokenizer_json().has_value());
  ASSERT_TRUE(source.chat_template().has_value());
  EXPECT_THAT(*source.chat_template(), HasSubstr("<|im_start|>"));
  const TensorInfo* embedding = source.find("model.embed_tokens.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->shape, (std::vector<std::uint64_t>{8192, 512}));
  EXPECT_EQ(embedding->encoding, Encoding::bf16);
  EXPECT_EQ(source.find("model.embed_tokens"), nullptr);
}

TEST(ModelSource, OpensAGgufFile) {
  CANDOR_SKIP_WITHOUT_SHARED();
  const ModelSource source = ModelSource::open(shared_folder() / "models/stories260K/stories260K-f32.gguf");
  ASSERT_NE(source.gguf(), nullptr);
  EXPECT_EQ(source.gguf()->string("general.architecture"), "llama");
  EXPECT_EQ(source.gguf()->unsigned_integer("llama.block_count"), 5u);
  EXPECT_EQ(source.gguf()->strings("tokenizer.ggml.tokens")->size(), 512u);
  const TensorInfo* embedding = source.find("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->shape, (std::vector<std::uint64_t>{512, 64}));
  EXPECT_NE(first_float(source, "token_embd.weight"), 0.0f);
  EXPECT_TRUE(source.gguf()->to_json().contains("llama.rope.dimension_count"));
}

TEST(ModelSource, OpensVocabularyFilesWithoutTensors) {
  CANDOR_SKIP_WITHOUT_SHARED();
  for (const auto& entry : std::filesystem::directory_iterator(shared_folder() / "goldens/tokenizers")) {
    if (entry.path().extension() != ".gguf") continue;
    const ModelSource source = ModelSource::open(entry.path());
    EXPECT_TRUE(source.tensors().empty());
    EXPECT_FALSE(source.gguf()->strings("tokenizer.ggml.tokens")->empty());
  }
}

TEST(ModelSource, NamesWhatIsWrongWithAPathAndWhatToDo) {
  const TestFolder folder;
  const auto open = [](const std::filesystem::path& path) { return [path] { (void)ModelSource::open(path); }; };
  EXPECT_THAT(error_of(ErrorCode::not_found, open(folder.path() / "absent")), HasSubstr("give a .gguf file"));
  EXPECT_THAT(error_of(ErrorCode::format, open(folder.path())), HasSubstr("neither config.json nor manifest.json"));
  const auto text = folder.write("text.gguf", "Hello, this is a text file.");
  EXPECT_THAT(error_of(ErrorCode::format, open(text)), HasSubstr("not a GGUF file: it begins with \"Hell\""));
  const auto pointer = folder.write("pointer.gguf", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_THAT(error_of(ErrorCode::format, open(pointer)), HasSubstr("git lfs pull"));
  EXPECT_THAT(error_of(ErrorCode::format, open(folder.path())), HasSubstr("it holds pointer.gguf: open that file"));
  const auto empty = folder.write("empty.gguf", "");
  EXPECT_THAT(error_of(ErrorCode::format, open(empty)), HasSubstr("empty"));
  folder.write("config.json", "{}");
  EXPECT_THAT(error_of(ErrorCode::not_found, open(folder.path())), HasSubstr("fetch the weights"));
  folder.write("pytorch_model.bin", "PK");
  EXPECT_THAT(error_of(ErrorCode::unsupported, open(folder.path())), HasSubstr("as safetensors"));
  EXPECT_THAT(error_of(ErrorCode::usage, open(folder.path() / "config.json")), HasSubstr("give its folder"));
}

}  // namespace
}  // namespace candor
