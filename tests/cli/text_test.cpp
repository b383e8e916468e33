// candor tokenize, template and logits.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "cli/program.h"
#include "formats/safetensors.h"
#include "formats/test_folder.h"

namespace candor {
namespace {

using testing::HasSubstr;

class Text : public testing::Test {
 protected:
  void SetUp() override { CANDOR_SKIP_WITHOUT_SHARED(); }
  TestFolder folder_;
};

TEST_F(Text, TokenizeThereAndBack) {
  const std::string text = "Héllo <|im_end|>\n 12";
  const Json json = parse_json(run_program({"tokenize", kLexicon, text, "--json"}).out, "tokenize");
  std::string ids;
  for (const Json& id : json["ids"]) ids += to_js_json(id) + " ";
  const Outcome back = run_program({"tokenize", kLexicon, ids, "--decode"});
  EXPECT_EQ(back.out, text + "\n");
  EXPECT_EQ(run_program({"tokenize", kLexicon, "--ids"}, text).out,
            run_program({"tokenize", kLexicon + "/tokenizer.json", text, "--ids"}).out);
  const Json plain = parse_json(run_program({"tokenize", kLexicon, text, "--no-special", "--json"}).out, "tokenize");
  EXPECT_GT(plain["ids"].size(), json["ids"].size());
}

TEST_F(Text, TokenizeRefusesWhatIsNoId) {
  expect_error(run_program({"tokenize", kLexicon, "1 two", "--decode"}), 2, "two");
  expect_error(run_program({"tokenize", kLexicon, "99999999", "--decode"}), 2, "99999999");
  expect_error(run_program({"tokenize", kLlama, "hello"}), 5, "tokenizer");
  expect_error(run_program({"tokenize", kLexicon, "\xff\xfe"}), 9, "UTF-8");
}

TEST(Template, RendersOrFailsWithStatusOne) {
  const TestFolder folder;
  const auto source = folder.write("chat.jinja",
                                   "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
                                   "{{ strftime_now('%Y-%m-%d') }}");
  const auto context = folder.write("context.json", R"({"messages": [{"role": "user", "content": "hé"}]})");
  const Outcome rendered =
      run_program({"template", "render", "--template", source, "--context", context, "--now", "2026-03-14T09:26:53"});
  EXPECT_EQ(rendered.status, 0) << rendered.err;
  EXPECT_EQ(rendered.out, "[user]hé2026-03-14");
  EXPECT_EQ(rendered.err, "");

  const auto raising = folder.write("raise.jinja", "{{ raise_exception('no system turns') }}");
  expect_error(run_program({"template", "render", "--template", raising, "--context", context}), 1, "no system turns");
  const auto broken = folder.write("broken.jinja", "{% for %}");
  expect_error(run_program({"template", "render", "--template", broken, "--context", context}), 1, "broken.jinja");
  expect_error(run_program({"template", "render", "--template", "/no/such", "--context", context}), 1, "/no/such");
  expect_error(run_program({"template", "render", "--template", source, "--context", context, "--now", "noon"}), 1,
               "noon");
}

TEST_F(Text, LogitsAreThoseOfTheReference) {
  const MappedFile expected(kLlama + "/expected.safetensors");
  const SafetensorsContent reference = parse_safetensors(expected.bytes(), "expected");
  const auto find = [](const SafetensorsContent& content, const char* name) {
    for (const TensorInfo& tensor : content.tensors)
      if (tensor.name == name) return tensor;
    throw std::runtime_error(name);
  };
  const TensorInfo ids = find(reference, "input_ids");
  std::string tokens;
  for (std::uint64_t i = 0; i < ids.elements(); ++i) {
    std::uint64_t id = 0;
    const std::size_t width = ids.bytes / ids.elements();
    std::memcpy(&id, expected.bytes().data() + ids.extents[0].offset + i * width, width);
    tokens += fmt::format("{}{}", i ? "," : "", id);
  }
  const auto path = folder_.path() / "logits.safetensors";
  const Outcome outcome = run_program({"logits", kLlama, "--tokens", tokens, "--out", path});
  ASSERT_EQ(outcome.status, 0) << outcome.err;

  const MappedFile written(path);
  const TensorInfo logits = find(parse_safetensors(written.bytes(), "logits"), "logits");
  const TensorInfo wanted = find(reference, "logits");
  ASSERT_EQ(logits.elements(), wanted.elements());
  EXPECT_EQ(logits.shape.back(), wanted.shape.back());
  std::vector<float> got(logits.elements());
  std::vector<float> want(got.size());
  std::memcpy(got.data(), written.bytes().data() + logits.extents[0].offset, logits.bytes);
  std::memcpy(want.data(), expected.bytes().data() + wanted.extents[0].offset, wanted.bytes);
  float scale = 0;
  float worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    scale = std::max(scale, std::abs(want[i]));
    worst = std::max(worst, std::abs(got[i] - want[i]));
  }
  EXPECT_LT(worst, 2e-5f * scale);
}

TEST_F(Text, LogitsOfATokenThatIsNone) {
  expect_error(run_program({"logits", kLlama, "--tokens", "1,99999999", "--out", folder_.path() / "x"}), 2, "99999999");
}

TEST(Embed, AnEncoderBecomesAnArtifactThatGivesTheSameVector) {
  CANDOR_SKIP_WITHOUT_SHARED();
  const std::string bert = CANDOR_SHARED_DIR "/goldens/hf/bert";
  const TestFolder folder;
  const std::string artifact = (folder.path() / "artifact").string();
  ASSERT_EQ(run_program({"convert", bert, artifact, "--pooling", "mean"}).status, 0);
  const Outcome expected = run_program({"embed", bert, "--pooling", "mean", "--tokens", "1,2,3"});
  const Outcome found = run_program({"embed", artifact, "--tokens", "1,2,3"});
  EXPECT_EQ(found.status, 0);
  EXPECT_EQ(found.out, expected.out);
  EXPECT_EQ(run_program({"verify", artifact}).status, 0);
}

}  // namespace
}  // namespace candor
