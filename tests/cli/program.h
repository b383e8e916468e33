// Runs the built program as a person would: arguments and standard input in, exit status and both outputs back.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace candor {

inline const std::string kLexicon = CANDOR_SHARED_DIR "/models/lexicon-26m";
inline const std::string kStories = CANDOR_SHARED_DIR "/models/stories260K/stories260K-f32.gguf";
inline const std::string kLlama = CANDOR_SHARED_DIR "/goldens/hf/llama";

struct Outcome {
  int status = 0;  ///< exit status, or 128 and the number of the signal that ended it
  std::string out;
  std::string err;
};

/// Throws std::runtime_error if the program cannot be started.
[[nodiscard]] Outcome run_program(const std::vector<std::string>& arguments, std::string_view input = {});

/// The same with an interrupt, as Ctrl-C sends it, as soon as there is something on standard output.
[[nodiscard]] Outcome interrupt_program(const std::vector<std::string>& arguments);

/// The same as soon as there is a file or folder of this name.
[[nodiscard]] Outcome interrupt_program_at(const std::filesystem::path& sign,
                                           const std::vector<std::string>& arguments);

/// Expects this status and exactly one line on standard error, which is "candor: " and contains `text`.
void expect_error(const Outcome& outcome, int status, std::string_view text);

}  // namespace candor
