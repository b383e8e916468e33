// The same bits however a model is run (docs/numerics.md), for each encoding of weights that its rows allow.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "engine/engine_fixture.h"
#include "engine/weight_encodings.h"

namespace candor {
namespace {

struct EncodedModel {
  const char* name;
  const char* path;  ///< below the reference data
  Encoding encoding;
};

class SameBitsForWeights : public ::testing::TestWithParam<EncodedModel> {};

TEST_P(SameBitsForWeights, HoweverRun) {
  const std::filesystem::path model = kShared / GetParam().path;
  SKIP_WITHOUT(model);
  const TestFolder folder;
  const std::filesystem::path encoded = folder.path() / "artifact";
  ASSERT_GT(encode_matrices(model, GetParam().encoding, encoded), 0u) << "no row is whole blocks";
  expect_same_bits_however_run(encoded);
  expect_same_bits_in_company(encoded);
}

std::vector<EncodedModel> encoded_models() {
  std::vector<EncodedModel> out;
  // Rows of 64 and 160 (172) are no whole blocks of 256; those have Lexicon's tests (lexicon_test.cpp).
  for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0, Encoding::q4_0}) {
    out.push_back({"stories260K", "models/stories260K/stories260K-f32.gguf", encoding});
    out.push_back({"qwen3", "goldens/hf/qwen3", encoding});
    out.push_back({"gemma3", "goldens/hf/gemma3", encoding});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Models, SameBitsForWeights, ::testing::ValuesIn(encoded_models()), [](const auto& parameter) {
  return std::string(parameter.param.name) + "_" + std::string(to_string(parameter.param.encoding));
});

/// Windows, soft caps, experts, convolutions and learned positions, beside what the tests of their families run.
class SameBitsInCompany : public ::testing::TestWithParam<const char*> {};

TEST_P(SameBitsInCompany, AsAlone) {
  SKIP_WITHOUT(kShared / "goldens/hf" / GetParam());
  expect_same_bits_in_company(kShared / "goldens/hf" / GetParam());
}

INSTANTIATE_TEST_SUITE_P(Families, SameBitsInCompany, ::testing::Values("gemma2", "gpt2", "lfm2", "mixtral", "phi3"));

}  // namespace
}  // namespace candor
