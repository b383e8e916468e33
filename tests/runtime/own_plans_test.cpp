// Plans that this project makes itself are as it wants others' to be: their kernel path is complete and lint has
// nothing to say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/js_value.h"
#include "kernels/kernel_path.h"
#include "plan/lint.h"
#include "runtime/compiled_model.h"

namespace candor::runtime {
namespace {

namespace fs = std::filesystem;

const fs::path kOwnModel = fs::path(CANDOR_SOURCE_DIR) / "models/lexicon-26m";
const fs::path kGoldens = fs::path(CANDOR_SHARED_DIR) / "goldens/hf";

std::vector<fs::path> models() {
  std::vector<fs::path> out{kOwnModel};
  if (fs::exists(kGoldens))
    for (const auto& entry : fs::directory_iterator(kGoldens)) out.push_back(entry.path());
  std::sort(out.begin() + 1, out.end());
  return out;
}

class OwnPlans : public testing::TestWithParam<fs::path> {};

TEST_P(OwnPlans, AreValidAndWithoutFindings) {
  if (!fs::exists(GetParam())) GTEST_SKIP() << "no model at " << GetParam();
  try {
    const CompiledModel model = compile_model(GetParam(), {});
    const js::Value path = js::at_path(&model.plan.result, {"runtimeInferencePatch", "kernelPath"});
    ASSERT_NE(path, nullptr);
    EXPECT_THAT(kernels::validate_kernel_path(path), testing::IsEmpty());
    for (const plan::Finding& finding :
         plan::lint({model.manifest["inference"], model.overlay, model.layers, *model.registry, &model.flow}))
      ADD_FAILURE() << to_js_json(finding.to_json());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    GTEST_SKIP() << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OwnPlans, testing::ValuesIn(models()), [](const auto& test) {
  std::string name = test.param.filename().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace candor::runtime
