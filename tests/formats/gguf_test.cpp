#include "formats/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/model_source.h"
#include "model_bytes.h"
#include "test_folder.h"

namespace candor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string parse_error(const std::string& bytes, ErrorCode code = ErrorCode::format) {
  return error_of(code, [&] { (void)parse_gguf(view(bytes), "f.gguf"); });
}

TEST(Gguf, ReadsBackWhatTheWriterWrote) {
  const std::string bytes = sample_gguf();
  const GgufContent content = parse_gguf(view(bytes), "f.gguf");
  EXPECT_EQ(content.version, 3u);
  const GgufMetadata& metadata = content.metadata;
  EXPECT_EQ(metadata.string("general.architecture"), "llama");
  EXPECT_EQ(metadata.unsigned_integer("a.large"), 1ull << 40);
  EXPECT_EQ(metadata.unsigned_integer("a.short"), 7u);
  EXPECT_EQ(metadata.number("a.negative"), -5.0);
  EXPECT_EQ(metadata.boolean("tokenizer.ggml.add_bos_token"), true);
  EXPECT_THAT(*metadata.strings("tokenizer.ggml.tokens"), ElementsAre("<s>", "a", "\xff"));
  EXPECT_THAT(*metadata.floats("tokenizer.ggml.scores"), ElementsAre(0.5f, -1.0f, 2.0f));
  EXPECT_THAT(*metadata.integers("tokenizer.ggml.token_type"), ElementsAre(3, 1, 6));
  EXPECT_FALSE(metadata.string("absent").has_value());
  ASSERT_EQ(content.tensors.size(), 4u);
  EXPECT_THAT(content.tensors[0].shape, ElementsAre(3u, 64u));
  EXPECT_EQ(content.tensors[2].bytes, 64u * 2 * 34);
  for (const TensorInfo& tensor : content.tensors) EXPECT_EQ(tensor.extents.front().offset % 32, 0u);
  EXPECT_EQ(metadata.to_json(2)["tokenizer.ggml.scores"], (Json{{"type", "f32"}, {"count", 3}}));
  EXPECT_EQ(metadata.to_json()["tokenizer.ggml.tokens"][2], "\xef\xbf\xbd");
}

TEST(Gguf, AccessorsNameKeyAndTypes) {
  const std::string bytes = sample_gguf();
  const GgufMetadata metadata = parse_gguf(view(bytes), "f.gguf").metadata;
  EXPECT_THAT(error_of(ErrorCode::format, [&] { (void)metadata.string("llama.block_count"); }),
              AllOf(HasSubstr("llama.block_count"), HasSubstr("a string"), HasSubstr("u32")));
  EXPECT_THAT(error_of(ErrorCode::format, [&] { (void)metadata.unsigned_integer("a.negative"); }), HasSubstr("-5"));
  EXPECT_THAT(error_of(ErrorCode::format, [&] { (void)metadata.floats("tokenizer.ggml.token_type"); }),
              AllOf(HasSubstr("array of f32"), HasSubstr("array of 3 i32")));
  EXPECT_THROW((void)metadata.integers("tokenizer.ggml.scores"), Error);
  EXPECT_THROW((void)metadata.strings("general.architecture"), Error);
  EXPECT_THROW((void)metadata.boolean("a.short"), Error);
  EXPECT_THROW((void)metadata.booleans("tokenizer.ggml.scores"), Error);
  EXPECT_THROW((void)metadata.number("general.architecture"), Error);
}

TEST(Gguf, EveryCutIsAnErrorThatSaysSo) {
  const std::string whole = sample_gguf();
  const std::size_t data_end = parse_gguf(view(whole), "f.gguf").tensors.back().extents.front().offset + 4 * 144;
  for (int i = 0; i < 100; ++i) {
    const std::string cut = whole.substr(0, 1 + data_end * static_cast<std::size_t>(i) / 101);
    EXPECT_THROW((void)parse_gguf(view(cut), "f.gguf"), Error) << cut.size();
  }
  EXPECT_THAT(parse_error(whole.substr(0, data_end - 1)),
              AllOf(HasSubstr("blk.0.ffn_down.weight"), HasSubstr(std::to_string(data_end)),
                    HasSubstr(std::to_string(data_end - 1))));
}

TEST(Gguf, LyingCountsAreRefusedBeforeAllocating) {
  std::string bytes = sample_gguf();
  poke<std::uint64_t>(bytes, 8, 1ull << 60);
  EXPECT_THAT(parse_error(bytes), HasSubstr("tensor count is 1152921504606846976"));
  bytes = sample_gguf();
  poke<std::uint64_t>(bytes, 8, 60'000);
  EXPECT_THAT(parse_error(bytes), HasSubstr("cannot fit"));
  bytes = sample_gguf();
  poke<std::uint64_t>(bytes, 16, 65'000);
  EXPECT_THAT(parse_error(bytes), HasSubstr("metadata count"));
  bytes = sample_gguf();
  poke<std::uint64_t>(bytes, after(bytes, "tokenizer.ggml.tokens") + 8, 1ull << 61);
  EXPECT_THAT(parse_error(bytes), HasSubstr("tokenizer.ggml.tokens"));
  bytes = sample_gguf();
  poke<std::uint64_t>(bytes, after(bytes, "tokenizer.ggml.scores") + 8, (1ull << 62) + 3);  // × 4 wraps to 12
  EXPECT_THAT(parse_error(bytes), AllOf(HasSubstr("tokenizer.ggml.scores"), HasSubstr("overflows")));
  bytes = sample_gguf();
  poke<std::uint64_t>(bytes, after(bytes, "general.architecture") + 4, ~0ull);
  EXPECT_THAT(parse_error(bytes), HasSubstr("general.architecture"));
}

TEST(Gguf, LyingTensorsAreNamed) {
  const auto change = [](std::size_t offset, std::uint64_t value) {
    std::string bytes = sample_gguf();
    poke(bytes, after(bytes, "blk.0.attn_q.weight") + offset, value);  // rank u32, two dimensions, type u32, offset
    return bytes;
  };
  EXPECT_THAT(parse_error(change(4, 0)), AllOf(HasSubstr("attn_q"), HasSubstr("dimension of 0")));
  EXPECT_THAT(parse_error(change(4, 33)), AllOf(HasSubstr("attn_q"), HasSubstr("whole q8_0 blocks")));
  EXPECT_THAT(parse_error(change(4, 1ull << 63)), HasSubstr("attn_q"));
  EXPECT_THAT(parse_error(change(12, 1ull << 58)), HasSubstr("attn_q"));
  EXPECT_THAT(parse_error(change(24, 33)), HasSubstr("multiple of the alignment 32"));
  EXPECT_THAT(parse_error(change(24, ~0ull << 5)), HasSubstr("overflows"));
  EXPECT_THAT(parse_error(change(24, 0)), AllOf(HasSubstr("overlaps"), HasSubstr("token_embd.weight")));
  std::string bytes = sample_gguf();
  poke<std::uint32_t>(bytes, after(bytes, "blk.0.attn_q.weight") + 20, 31);
  EXPECT_THAT(parse_error(bytes, ErrorCode::unsupported), HasSubstr("ggml type 31"));
  bytes = sample_gguf();
  poke<std::uint32_t>(bytes, after(bytes, "blk.0.attn_q.weight"), 5);
  EXPECT_THAT(parse_error(bytes), HasSubstr("5 dimensions"));
}

TEST(Gguf, NamesAndKeysAreChecked) {
  std::string bytes = sample_gguf();
  bytes[bytes.find("attn_q")] = '\0';
  EXPECT_THAT(parse_error(bytes), HasSubstr("NUL"));
  bytes = sample_gguf();
  bytes[bytes.find("a.short")] = '\xff';
  EXPECT_THAT(parse_error(bytes), HasSubstr("not UTF-8"));
  bytes = sample_gguf();
  bytes.replace(bytes.find("a.large"), 7, "a.short");
  EXPECT_THAT(parse_error(bytes), HasSubstr("occurs twice"));
  bytes = sample_gguf();
  poke<std::uint32_t>(bytes, after(bytes, "a.short"), 13);
  EXPECT_THAT(parse_error(bytes), HasSubstr("unknown value type 13"));
  bytes = sample_gguf();
  poke<std::uint32_t>(bytes, after(bytes, "tokenizer.ggml.scores") + 4, 9);
  EXPECT_THAT(parse_error(bytes, ErrorCode::unsupported), HasSubstr("array of arrays"));
}

TEST(Gguf, OtherVersionsAndByteOrdersAreRefusedClearly) {
  std::string bytes = sample_gguf();
  poke<std::uint32_t>(bytes, 4, 1);
  EXPECT_THAT(parse_error(bytes, ErrorCode::unsupported), HasSubstr("version 1"));
  poke<std::uint32_t>(bytes, 4, 0x03000000);
  EXPECT_THAT(parse_error(bytes, ErrorCode::unsupported), HasSubstr("big-endian"));
  poke<std::uint32_t>(bytes, 4, 2);
  EXPECT_EQ(parse_gguf(view(bytes), "f.gguf").version, 2u);
}

TEST(Gguf, AnyPowerOfTwoAligns) {
  for (const std::uint32_t alignment : {1u, 8u, 64u, 4096u}) {
    const OutputLayout layout = layout_gguf(
        "f", GgufPairs(), {make_tensor("a", Encoding::f32, {3}), make_tensor("b", Encoding::f32, {3})}, alignment);
    const std::string bytes = file_bytes(layout);
    const GgufContent content = parse_gguf(view(bytes), "f");
    EXPECT_EQ(content.alignment, alignment);
    EXPECT_EQ(content.tensors[1].extents.front().offset, layout.tensors[1].extents.front().offset);
  }
  std::string bytes = file_bytes(layout_gguf("f", GgufPairs(), {make_tensor("a", Encoding::f32, {3})}, 64));
  for (const std::uint32_t wrong : {0u, 48u}) {
    poke(bytes, after(bytes, "general.alignment") + 4, wrong);
    EXPECT_THAT(parse_error(bytes), HasSubstr("power of two"));
  }
}

TEST(Gguf, WritesEveryTypeThatItReads) {
  int types = 0;
  for (int e = 0; e <= static_cast<int>(Encoding::mxfp4); ++e) {
    const auto encoding = static_cast<Encoding>(e);
    try {
      (void)ggml_type(encoding);
    } catch (const Error&) {
      continue;
    }
    const std::string bytes = file_bytes(layout_gguf("f", GgufPairs(), {make_tensor("t", encoding, {2, 256})}));
    EXPECT_EQ(parse_gguf(view(bytes), "f").tensors.front().encoding, encoding);
    ++types;
  }
  EXPECT_EQ(types, 32);
}

class SplitGguf : public ::testing::Test {
 protected:
  /// Part `number` of two, with one tensor named as given.
  void write_part(int number, const std::string& tensor, std::uint16_t split_no, std::uint16_t split_count = 2) {
    GgufPairs pairs;
    pairs.set_u16("split.no", split_no);
    pairs.set_u16("split.count", split_count);
    pairs.set_i32("split.tensors.count", 2);
    if (number == 1) pairs.set_string("general.architecture", "llama");
    folder.write(fmt::format("m-0000{}-of-00002.gguf", number),
                 file_bytes(layout_gguf("m", pairs, {make_tensor(tensor, Encoding::f32, {4})})));
  }
  [[nodiscard]] std::filesystem::path part(int number) const {
    return folder.path() / fmt::format("m-0000{}-of-00002.gguf", number);
  }
  TestFolder folder;
};

TEST_F(SplitGguf, AnyPartOpensTheModel) {
  write_part(1, "a", 0);
  write_part(2, "b", 1);
  for (const int number : {1, 2}) {
    const ModelSource source = ModelSource::open(part(number));
    EXPECT_EQ(source.files().size(), 2u);
    EXPECT_EQ(source.gguf()->string("general.architecture"), "llama");
    ASSERT_NE(source.find("b"), nullptr);
    EXPECT_EQ(source.find("b")->extents.front().file, 1u);
  }
}

TEST_F(SplitGguf, PartsMustAgree) {
  const auto open = [&] { (void)ModelSource::open(part(1)); };
  write_part(1, "a", 0);
  EXPECT_THAT(error_of(ErrorCode::not_found, open), HasSubstr("m-00002-of-00002.gguf"));
  write_part(2, "b", 0);
  EXPECT_THAT(error_of(ErrorCode::format, open), HasSubstr("split.no is 0"));
  write_part(2, "a", 1);
  EXPECT_THAT(error_of(ErrorCode::format, open), HasSubstr("\"a\" occurs twice"));
  write_part(1, "a", 0, 3);
  EXPECT_THAT(error_of(ErrorCode::format, open), HasSubstr("split.count is 3"));
}

}  // namespace
}  // namespace candor
