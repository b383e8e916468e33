// A temporary folder that a test fills and that goes away with it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace candor {

class TestFolder {
 public:
  TestFolder() {
    static std::atomic<unsigned> counter{0};
    path_ = std::filesystem::temp_directory_path() /
            ("candor_formats_" + std::to_string(::getpid()) + "_" + std::to_string(counter++));
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(std::string_view name, std::string_view content) const {
    write_file_atomically(path_ / name, content);
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// The message of the Error that `action` throws; fails the test if it throws none or one of another code.
template <typename Action>
std::string error_of(ErrorCode code, const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

inline std::filesystem::path shared_folder() {
  return CANDOR_SHARED_DIR;
}

}  // namespace candor

#define CANDOR_SKIP_WITHOUT_SHARED() \
  if (!std::filesystem::exists(candor::shared_folder())) GTEST_SKIP() << "the shared reference data are not here"
