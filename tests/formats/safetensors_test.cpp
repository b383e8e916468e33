#include "formats/safetensors.h"

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

std::string parse_error(const std::string& header, std::size_t data, ErrorCode code = ErrorCode::format) {
  const std::string bytes = safetensors_file(header, data);
  return error_of(code, [&] { (void)parse_safetensors(view(bytes), "f"); });
}

std::vector<TensorInfo> sample_tensors() {
  return {make_tensor("w", Encoding::bf16, {2, 3}), make_tensor("scalar", Encoding::f32, {}),
          make_tensor("empty", Encoding::f32, {0, 4}), make_tensor("flags", Encoding::boolean, {5})};
}

TEST(Safetensors, ReadsBackWhatTheWriterWrote) {
  const OutputLayout layout = layout_safetensors(sample_tensors(), {{"format", "pt"}, {"note", "ü"}});
  EXPECT_EQ(layout.files.front().header.size() % 64, 0u);
  const std::string bytes = file_bytes(layout);
  const SafetensorsContent content = parse_safetensors(view(bytes), "f");
  EXPECT_THAT(content.metadata, ElementsAre(std::pair("format", "pt"), std::pair("note", "ü")));
  ASSERT_EQ(content.tensors.size(), 4u);
  EXPECT_EQ(content.tensors[0].name, "w");
  EXPECT_EQ(content.tensors[0].bytes, 12u);
  for (const TensorInfo& expected : layout.tensors) {
    const auto found = std::find_if(content.tensors.begin(), content.tensors.end(),
                                    [&](const TensorInfo& tensor) { return tensor.name == expected.name; });
    ASSERT_NE(found, content.tensors.end());
    EXPECT_EQ(found->extents.front().offset, expected.extents.front().offset);
  }
}

TEST(Safetensors, EveryDtypeIsRead) {
  for (const char* dtype : {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL",
                            "F8_E4M3", "F8_E5M2"}) {
    const TensorInfo probe = [&] {
      for (const std::size_t width : {1u, 2u, 4u, 8u}) {
        const std::string bytes = safetensors_file(
            fmt::format(R"({{"t":{{"dtype":"{}","shape":[3],"data_offsets":[0,{}]}}}})", dtype, 3 * width), 3 * width);
        try {
          return parse_safetensors(view(bytes), "f").tensors.front();
        } catch (const Error&) {
        }
      }
      return TensorInfo();
    }();
    EXPECT_EQ(probe.name, "t") << dtype;
  }
  EXPECT_THAT(parse_error(R"({"t":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", 1, ErrorCode::unsupported),
              HasSubstr("F4"));
}

TEST(Safetensors, EveryCutIsAnError) {
  const std::string whole = file_bytes(layout_safetensors(sample_tensors(), {}));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    EXPECT_THROW((void)parse_safetensors(view(cut), "f"), Error) << size;
  }
  EXPECT_THAT(error_of(ErrorCode::format,
                       [&] {
                         const std::string cut = whole.substr(0, whole.size() - 1);
                         (void)parse_safetensors(view(cut), "f");
                       }),
              AllOf(HasSubstr("flags"), HasSubstr("truncated")));
}

TEST(Safetensors, TheFormatsOwnRulesHold) {
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                          R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                          3),
              AllOf(HasSubstr("\"b\""), HasSubstr("offset 1"), HasSubstr("end at 2")));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3), HasSubstr("offset 1"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 3), HasSubstr("holds 3"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                          R"("a":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                          3),
              HasSubstr("occurs twice"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
              AllOf(HasSubstr("\"a\""), HasSubstr("needs 8 bytes"), HasSubstr("give 4")));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", 4),
              HasSubstr("overflows"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}})", 2), HasSubstr("wrong order"));
}

TEST(Safetensors, MisshapenHeadersAreRefusedWhereTheyAre) {
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"U8","shape":[2]}})", 2), HasSubstr("data_offsets"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}})", 2), HasSubstr("negative"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"U8","shape":[2.5],"data_offsets":[0,2]}})", 2), HasSubstr("shape"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":1,"shape":[2],"data_offsets":[0,2]}})", 2), HasSubstr("dtype"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"U8","shape":[[2]],"data_offsets":[0,2]}})", 2), HasSubstr("array"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,1,2]}})", 2), HasSubstr("more than two"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"x":1}})", 2), HasSubstr("\"x\""));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1),
              HasSubstr("more than 8 dimensions"));
  EXPECT_THAT(parse_error(R"({"a\u0000b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1), HasSubstr("NUL"));
  EXPECT_THAT(parse_error(R"({"__metadata__":{"a":1}})", 0), HasSubstr("a number"));
  EXPECT_THAT(parse_error(R"({"a":null})", 0), HasSubstr("null"));
  EXPECT_THAT(parse_error(R"({"a":)", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(parse_error("[]", 0), HasSubstr("does not begin with"));
}

TEST(Safetensors, AHeaderAboveTheCapIsRefused) {
  std::string bytes = safetensors_file("{}", 0);
  poke<std::uint64_t>(bytes, 0, 100ull << 30);
  EXPECT_THAT(error_of(ErrorCode::format, [&] { (void)parse_safetensors(view(bytes), "f"); }),
              HasSubstr("limit of 104857600"));
}

class ShardedFolder : public ::testing::Test {
 protected:
  ShardedFolder() {
    layout = layout_safetensors({make_tensor("a", Encoding::f32, {4}), make_tensor("b", Encoding::f32, {4})}, {}, 16);
    folder.write("config.json", R"({"model_type":"llama"})");
    for (std::size_t i = 0; i < layout.files.size(); ++i) folder.write(layout.files[i].name, file_bytes(layout, i));
  }
  [[nodiscard]] std::string open_error(ErrorCode code) const {
    return error_of(code, [&] { (void)ModelSource::open(folder.path()); });
  }
  OutputLayout layout;
  TestFolder folder;
};

TEST_F(ShardedFolder, OpensThroughItsIndex) {
  ASSERT_EQ(layout.files.size(), 2u);
  folder.write("model.safetensors.index.json", safetensors_index(layout));
  const ModelSource source = ModelSource::open(folder.path());
  EXPECT_EQ(source.find("b")->extents.front().file, 1u);
  EXPECT_EQ(source.bytes(*source.find("b")).size(), 16u);
}

TEST_F(ShardedFolder, IndexAndShardsMustAgree) {
  const auto with_index = [&](const std::string& text) { folder.write("model.safetensors.index.json", text); };
  with_index(R"({"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00001-of-00002.safetensors"}})");
  EXPECT_THAT(open_error(ErrorCode::format), HasSubstr("has no tensor \"b\""));
  with_index(R"({"weight_map":{"a":"gone.safetensors"}})");
  EXPECT_THAT(open_error(ErrorCode::not_found), HasSubstr("gone.safetensors"));
  with_index(R"({"weight_map":{"a":"../model-00001-of-00002.safetensors"}})");
  EXPECT_THAT(open_error(ErrorCode::format), HasSubstr("plain file name"));
  with_index(R"({"weight_map":{"a":7}})");
  EXPECT_THAT(open_error(ErrorCode::format), HasSubstr("must be a string"));
  with_index("{}");
  EXPECT_THAT(open_error(ErrorCode::format), HasSubstr("weight_map"));
}

TEST_F(ShardedFolder, TheChatTemplateIsFound) {
  folder.write("model.safetensors.index.json", safetensors_index(layout));
  const auto chat_template = [&] { return ModelSource::open(folder.path()).chat_template(); };
  EXPECT_FALSE(chat_template().has_value());
  folder.write("tokenizer_config.json", R"({"chat_template":[{"name":"tool_use","template":"T"},)"
                                        R"({"name":"default","template":"D"}]})");
  EXPECT_EQ(chat_template(), "D");
  folder.write("chat_template.jinja", "J");
  EXPECT_EQ(chat_template(), "J");
}

}  // namespace
}  // namespace candor
