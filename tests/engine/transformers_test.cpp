// Models of more kinds than the shared references, beside what Hugging Face transformers computes of them: every folder
// that scripts/reference_logits.py made in tests/data/transformers, and in CANDOR_REFERENCES where that is set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "engine/engine_fixture.h"
#include "engine/expected.h"

namespace candor {
namespace {

std::vector<std::filesystem::path> reference_folders() {
  std::vector<std::filesystem::path> roots{kSource / "tests/data/transformers"};
  if (const char* more = std::getenv("CANDOR_REFERENCES")) roots.emplace_back(more);
  std::vector<std::filesystem::path> folders;
  std::error_code ignored;
  for (const auto& root : roots)
    for (const auto& entry : std::filesystem::directory_iterator(root, ignored))
      if (std::filesystem::exists(entry.path() / "expected.safetensors")) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

class Transformers : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Transformers, ComputesTheSame) {
  const Expected expected(GetParam());
  EngineOptions setup = options();
  if (expected.has("logits")) {
    const auto tokens = forced_tokens(expected);
    setup.plan.rows = runtime::RowSelection::all;
    setup.load.context = static_cast<std::uint32_t>(tokens.size());  // as transformers, which goes by the text's length
    expect_parity(expected, Engine(GetParam(), setup).logits(tokens));
    return;
  }
  const bool scores = expected.has("score");
  ASSERT_TRUE(scores || expected.has("embedding"));
  Engine engine(GetParam(), setup);
  const auto tokens = expected.tokens("input_ids");
  const auto got = scores ? engine.session().embedding(tokens, expected.tokens("token_type_ids"))
                          : engine.session().embedding(tokens);
  const double error = largest_error(got, expected.get<float>(scores ? "score" : "embedding"));
  RecordProperty("largest_error", std::to_string(error * 1e6) + "e-6");
  EXPECT_LE(error, 2e-5);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Transformers);
INSTANTIATE_TEST_SUITE_P(References, Transformers, ::testing::ValuesIn(reference_folders()), [](const auto& parameter) {
  std::string name = parameter.param.filename().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace candor
