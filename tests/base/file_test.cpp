#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "base/map_fault.h"

namespace candor {
namespace {

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("candor_file_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(FileTest, WritesCompletelyAndLeavesNoTemporary) {
  write_file_atomically(folder_ / "a", "one");
  write_file_atomically(folder_ / "a", "two");
  EXPECT_EQ(read_file(folder_ / "a", 100), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  EXPECT_THROW(write_file_atomically(folder_ / "missing" / "a", "x"), Error);
}

TEST_F(FileTest, NamesWhatCannotBeRead) {
  try {
    const MappedFile file(folder_ / "absent");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_NE(std::string(error.what()).find("absent"), std::string::npos);
  }
  EXPECT_THROW(MappedFile{folder_}, Error);
  write_file_atomically(folder_ / "empty", "");
  EXPECT_THROW(MappedFile{folder_ / "empty"}, Error);
  write_file_atomically(folder_ / "big", "12345");
  EXPECT_THROW((void)read_file(folder_ / "big", 4), Error);
}

TEST_F(FileTest, WhatIsNoRegularFileIsNotReplaced) {
  const std::filesystem::path pipe = folder_ / "pipe", link = folder_ / "link";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("elsewhere", link);
  for (const auto& path : {pipe, link}) EXPECT_THROW(write_file_atomically(path, "x"), Error) << path;
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST_F(FileTest, AShrinkingMapEndsWithOneLine) {
  EXPECT_EXIT(
      {
        write_file_atomically(folder_ / "m", std::string(100'000, 'x'));
        install_map_fault_handler();
        const MappedFile file(folder_ / "m");
        std::filesystem::resize_file(folder_ / "m", 10);
        volatile auto touched = file.bytes()[99'000];
        (void)touched;
      },
      ::testing::ExitedWithCode(exit_status(ErrorCode::io)), "became shorter");
  EXPECT_EXIT(
      {
        write_file_atomically(folder_ / "\"m\"", std::string(100'000, 'x'));
        install_map_fault_handler();
        report_map_faults_as_json();
        const MappedFile file(folder_ / "\"m\"");
        std::filesystem::resize_file(folder_ / "\"m\"", 10);
        volatile auto touched = file.bytes()[99'000];
        (void)touched;
      },
      ::testing::ExitedWithCode(exit_status(ErrorCode::io)),
      "^.\"error\":.\"code\":\"io\",\"message\":\"[^\n]*\\\\\"m\\\\\": the file became shorter[^\n]*\n$");
}

}  // namespace
}  // namespace candor
