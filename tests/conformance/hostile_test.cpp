// Lines that no reference would be sent: each must have an answer.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/js_value.h"
#include "base/limits.h"
#include "cli/conformance_session.h"

namespace candor::cli {
namespace {

namespace fs = std::filesystem;

std::string error_of(const std::string& answer) {
  return parse_json(answer, "answer").value("error", "");
}

TEST(HostileLine, IsAnsweredWithAnError) {
  ConformanceSession session;
  for (const char* line : {"", "{", "null", "[]", "7", "{\"id\":1,\"fn\":\"nope\"}", "{\"id\":1,\"fn\":{}}",
                           "{\"id\":1,\"fn\":\"sha256Hex\",\"args\":{}}", "\xff\xfe", "{\"id\":1}{"}) {
    const Json answer = parse_json(session.answer(line), "answer");
    EXPECT_TRUE(answer.contains("ok")) << line;
  }
}

TEST(HostileLine, TooDeepIsRefused) {
  ConformanceSession session;
  const std::string deep(100'000, '[');
  EXPECT_NE(error_of(session.answer("{\"id\":1,\"options\":" + deep)).find("nested deeper"), std::string::npos);
}

/// A manifest of `steps` casts, with further members of the options.
std::string casts(std::size_t steps, const std::string& options, const std::string& layers = "\"all\"") {
  std::string line = R"({"id":1,"options":{)" + options +
                     R"("manifestInference":{"schema":"doppler.execution/v0","execution":{"steps":[)";
  for (std::size_t i = 0; i < steps; ++i) {
    if (i > 0) line += ',';
    line += R"({"id":"s)" + std::to_string(i) + R"(","op":"cast","phase":"both","section":"layer","src":"state",)" +
            R"("dst":"state","toDtype":"f16","layers":)" + layers + "}";
  }
  return line + "]}}}}";
}

TEST(HostileLine, AsksForMoreStepsThanThereMayBe) {
  ConformanceSession session;
  EXPECT_NE(error_of(session.answer(casts(limits::steps + 1, ""))).find("more than"), std::string::npos);
}

TEST(HostileLine, HugeLayerListsAreAnswered) {
  ConformanceSession session;
  std::string layers = "[";
  for (int i = 0; i < 200'000; ++i) layers += std::to_string(i) + ",";
  layers.back() = ']';
  EXPECT_EQ(error_of(session.answer(casts(2, R"("numLayers":4096,)", layers))), "");
}

TEST(HostileLine, ManyInsertionsAtOneAnchorAreAnswered) {
  ConformanceSession session;
  std::string patch = R"("runtimeInference":{"executionPatch":{"add":[)";
  for (int i = 0; i < 5'000; ++i) {
    if (i > 0) patch += ',';
    patch += R"({"insertAfter":"s0","step":{"id":"n)" + std::to_string(i) +
             R"(","op":"cast","phase":"decode","section":"layer","src":"state","dst":"state","toDtype":"f16",)" +
             R"("layers":"all"}})";
  }
  const std::string answer = session.answer(casts(1, patch + "]}},"));
  const Json result = parse_json(answer, "answer");
  ASSERT_EQ(result.value("error", ""), "");
  const Json& decode = result["result"]["resolvedSteps"]["decode"];
  ASSERT_EQ(decode.size(), 5'001u);
  EXPECT_EQ(decode[5'000]["id"], "n4999") << "insertions after one anchor keep the patch's order";
}

TEST(HostileLine, ManySessionKeysTakeLinearTime) {
  ConformanceSession session;
  std::string keys = "{";
  for (int i = 0; i < 100'000; ++i) keys += "\"k" + std::to_string(i) + "\":0,";
  keys.back() = '}';
  const std::string answer = session.answer(
      R"({"id":1,"options":{"runtimeInference":{"session":)" + keys +
      R"(},"manifestInference":{"schema":"doppler.execution/v0","execution":{"steps":[]},"sessionDefaults":)" + keys +
      "}}}");
  EXPECT_EQ(error_of(answer), "");
}

/// Replaces or removes one value of a document at random.
void mutate(Json& value, std::mt19937& random) {
  static const std::vector<Json> kValues = {nullptr,
                                            true,
                                            false,
                                            0,
                                            -1,
                                            1.5,
                                            1e300,
                                            "",
                                            "f16",
                                            "f32",
                                            "both",
                                            "state",
                                            "__proto__",
                                            Json::array(),
                                            Json::object(),
                                            Json::array({nullptr}),
                                            Json::array({Json::array()})};
  const auto member = [&](Json& of) {
    return std::next(of.begin(), static_cast<std::ptrdiff_t>(random() % of.size()));
  };
  Json* at = &value;
  while (at->is_structured() && !at->empty() && random() % 8 != 0) at = &*member(*at);
  if (at->is_structured() && !at->empty() && random() % 3 == 0) {
    at->erase(member(*at));
  } else {
    *at = kValues[random() % kValues.size()];
  }
}

class MutatedGolden : public testing::TestWithParam<const char*> {};

TEST_P(MutatedGolden, IsAnswered) {
  const fs::path shared = CANDOR_SHARED_DIR;
  const fs::path registry = shared / "reference" / "original-registry";
  if (!fs::exists(registry)) GTEST_SKIP() << "no reference data at " << shared;
  ConformanceSession session(registry);
  std::mt19937 random(20260314);
  std::ifstream calls(shared / "goldens" / "execution-v0" / (std::string(GetParam()) + ".in.jsonl"));
  std::string call;
  while (std::getline(calls, call)) {
    for (int round = 0; round < 3; ++round) {
      Json request = parse_json(call, "call");
      Json& payload = request.contains("options") ? request["options"] : request["args"];
      for (int i = 0; i <= round; ++i) mutate(payload, random);
      const Json answer = parse_json(session.answer(to_js_json(request)), "answer");
      ASSERT_TRUE(answer["ok"] == true || !answer["error"].get<std::string>().empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ExecutionV0, MutatedGolden,
                         testing::Values("compile", "kernel_path", "edge", "refs", "apply", "generate", "policy"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace candor::cli
