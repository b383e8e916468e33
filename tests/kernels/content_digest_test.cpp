#include "kernels/content_digest.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"

namespace candor::kernels {
namespace {

namespace fs = std::filesystem;

/// A `src` folder of its own for each test.
class ContentDigest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::temp_directory_path() / ("candor_digest_" + std::string(test->name()) + "_" + std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "kernels" / "cpu");
    fs::create_directories(root_ / "base");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) { write_file_atomically(root_ / path, text); }
  std::string digest(const std::string& file, const std::string& entry = "main") {
    return ContentDigester(root_).digest(file, entry);
  }

  fs::path root_;
};

TEST_F(ContentDigest, CoversTheTextAndTheEntry) {
  write("kernels/a.wgsl", "fn main() {}");
  EXPECT_EQ(digest("a.wgsl"), sha256_hex("fn main() {}\n@@entry:main"));
  EXPECT_EQ(digest("a.wgsl", "other"), sha256_hex("fn main() {}\n@@entry:other"));
}

TEST_F(ContentDigest, IsTheSameForBothLineEnds) {
  write("kernels/a.wgsl", "a\r\nb\r\n\rc\r");
  EXPECT_EQ(digest("a.wgsl"), sha256_hex("a\nb\n\rc\r\n@@entry:main")) << "only CR LF pairs change";
  write("kernels/cpu/k.cpp", "#include \"h.h\"\r\n");
  write("kernels/cpu/h.h", "int x;\r\n");
  EXPECT_EQ(digest("cpu/k.cpp"), sha256_hex("#include \"h.h\"\n\n@@file:cpu/h.h\nint x;\n\n@@entry:main"));
}

TEST_F(ContentDigest, TakesHeadersInTheOrderOfTheirPaths) {
  write("kernels/cpu/k.cpp",
        "#include <vector>\n#include \"kernels/cpu/z.h\"\n  #  include \"base/b.h\"\n// #include \"no.h\"\n");
  write("kernels/cpu/z.h", "#include \"a.h\"\n");
  write("kernels/cpu/a.h", "A");
  write("base/b.h", "B");
  EXPECT_EQ(
      digest("cpu/k.cpp"),
      sha256_hex("#include <vector>\n#include \"kernels/cpu/z.h\"\n  #  include \"base/b.h\"\n// #include \"no.h\"\n"
                 "\n@@file:base/b.h\nB"
                 "\n@@file:cpu/a.h\nA"
                 "\n@@file:cpu/z.h\n#include \"a.h\"\n"
                 "\n@@entry:main"));
}

TEST_F(ContentDigest, CountsEachHeaderOnceAndNeverTheFile) {
  write("kernels/cpu/k.cpp", "#include \"a.h\"\n#include \"a.h\"\n");
  write("kernels/cpu/a.h", "#include \"b.h\"\n#include \"k.cpp\"\n");
  write("kernels/cpu/b.h", "#include \"a.h\"\n");
  EXPECT_EQ(digest("cpu/k.cpp"), sha256_hex("#include \"a.h\"\n#include \"a.h\"\n"
                                            "\n@@file:cpu/a.h\n#include \"b.h\"\n#include \"k.cpp\"\n"
                                            "\n@@file:cpu/b.h\n#include \"a.h\"\n"
                                            "\n@@entry:main"));
}

TEST_F(ContentDigest, PrefersTheHeaderBesideTheFile) {
  write("kernels/cpu/k.cpp", "#include \"h.h\"\n");
  write("h.h", "far");
  EXPECT_EQ(digest("cpu/k.cpp"), sha256_hex("#include \"h.h\"\n\n@@file:h.h\nfar\n@@entry:main"));
  write("kernels/cpu/h.h", "near");
  EXPECT_EQ(digest("cpu/k.cpp"), sha256_hex("#include \"h.h\"\n\n@@file:cpu/h.h\nnear\n@@entry:main"));
}

TEST_F(ContentDigest, IgnoresHeadersOfOthersAndOfShaders) {
  write("kernels/cpu/k.cpp", "#include \"hwy/highway.h\"\n#include \"../../../outside.h\"\n#include \"\"\n");
  write_file_atomically(root_ / ".." / "outside.h", "x");
  EXPECT_EQ(digest("cpu/k.cpp"),
            sha256_hex("#include \"hwy/highway.h\"\n#include \"../../../outside.h\"\n#include \"\"\n"
                       "\n@@entry:main"));
  fs::remove(root_ / ".." / "outside.h");
  write("kernels/a.wgsl", "#include \"cpu/h.h\"\n");
  write("kernels/cpu/h.h", "H");
  EXPECT_EQ(digest("a.wgsl"), sha256_hex("#include \"cpu/h.h\"\n\n@@entry:main"));
}

TEST_F(ContentDigest, RefusesWhatIsMissingOrOutside) {
  const auto code_of = [&](const std::string& file) {
    try {
      (void)digest(file);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  EXPECT_EQ(code_of("missing.wgsl"), ErrorCode::not_found);
  EXPECT_EQ(code_of("../../etc/passwd"), ErrorCode::format);
}

TEST_F(ContentDigest, ListsTheFilesItRead) {
  write("kernels/cpu/k.cpp", "#include \"h.h\"\n");
  write("kernels/cpu/h.h", "H");
  ContentDigester digester(root_);
  (void)digester.digest("cpu/k.cpp", "main");
  EXPECT_EQ(digester.files_read(), (std::set<fs::path>{root_ / "kernels/cpu/h.h", root_ / "kernels/cpu/k.cpp"}));
}

}  // namespace
}  // namespace candor::kernels
