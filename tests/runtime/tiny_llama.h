// The tiny Llama of the reference data, compiled and loaded as a test asks for it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "runtime/loaded_model.h"
#include "runtime/session.h"

namespace candor::runtime {

inline const std::filesystem::path kTinyLlama = std::filesystem::path(CANDOR_SHARED_DIR) / "goldens/hf/llama";

class TinyLlama : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kTinyLlama)) GTEST_SKIP() << "no reference data at " << kTinyLlama;
  }

  static PlanOptions plan(std::string_view session = {}, std::string_view patch = {},
                          RowSelection rows = RowSelection::all) {
    PlanOptions options;
    if (!session.empty()) options.session = parse_json(session, "session");
    if (!patch.empty()) options.execution_patch = parse_json(patch, "patch");
    options.rows = rows;
    return options;
  }

  static LoadOptions load_options(std::uint32_t prefill_rows = 8) {
    LoadOptions options;
    options.threads = 1;
    options.prefill_rows = prefill_rows;
    return options;
  }

  static LoadedModel load(const PlanOptions& options, std::uint32_t prefill_rows = 8) {
    return {compile_model(kTinyLlama, options), load_options(prefill_rows)};
  }

  static Program bound(const PlanOptions& options) {
    const CompiledModel model = compile_model(kTinyLlama, options);
    return bind_model(model, *make_backend("cpu", load_options()), load_options());
  }

  static std::vector<std::uint32_t> some_tokens(std::uint32_t count) {
    std::vector<std::uint32_t> tokens;
    for (std::uint32_t i = 0; i < count; ++i) tokens.push_back((i * 37 + 11) % 300);
    return tokens;
  }

  static std::vector<float> logits(LoadedModel& model, const std::vector<std::uint32_t>& tokens) {
    Session session(model);
    Sequence sequence;
    std::vector<float> out;
    session.logits(sequence, tokens, [&](std::uint32_t, std::span<const float> rows, std::uint32_t) {
      out.insert(out.end(), rows.begin(), rows.end());
    });
    return out;
  }

  static bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }

  /// What `action` throws; a failure if nothing.
  template <typename Action>
  static std::string refusal(const Action& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    ADD_FAILURE() << "nothing was refused";
    return {};
  }
};

}  // namespace candor::runtime
