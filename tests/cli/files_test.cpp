// Broken and foreign input: each ends with one line that says what is wrong, and the status of its kind.
#include <filesystem>
#include <functional>

#include "base/file.h"
#include "cli/program.h"
#include "formats/test_folder.h"

namespace candor {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override { CANDOR_SKIP_WITHOUT_SHARED(); }

  /// A copy of the Llama folder with one file changed.
  fs::path changed_llama(std::string_view file, const std::function<void(std::string&)>& change) const {
    for (const auto& entry : fs::directory_iterator(kLlama))
      if (entry.path().filename() != "expected.safetensors")
        folder_.write(entry.path().filename().string(), read_file(entry.path(), 1 << 24));
    std::string content = read_file(fs::path(kLlama) / file, 1 << 24);
    change(content);
    folder_.write(file, content);
    return folder_.path();
  }

  TestFolder folder_;
};

TEST(FilesWithoutData, WrongPaths) {
  expect_error(run_program({"run", "/no/such/model", "hello"}), 3, "/no/such/model");
  expect_error(run_program({"tokenize", "/no/such/tokenizer.json", "hello"}), 3, "/no/such/tokenizer.json");
  expect_error(run_program({"run", CANDOR_SHARED_DIR "/nothing.gguf", "hello"}), 3, "nothing.gguf");
}

TEST(FilesWithoutData, TextNamedGguf) {
  const TestFolder folder;
  const auto path = folder.write("notes.gguf", "Dear diary, today I renamed a file.\n");
  expect_error(run_program({"run", path, "hello"}), 4, "notes.gguf");
}

TEST(FilesWithoutData, EmptyFolder) {
  const TestFolder folder;
  const Outcome outcome = run_program({"inspect", folder.path()});
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err, testing::StartsWith("candor: "));
}

TEST_F(Files, TruncatedAnywhereIsAnError) {
  const std::string whole = read_file(kStories, 1 << 24);
  const fs::path path = folder_.path() / "cut.gguf";
  std::vector<std::size_t> sizes{0, 1, 3, 4, 7, 8, 12, 16, 24, 31, 32, 100, 1000, 5000, 20000, 100000};
  sizes.push_back(whole.size() / 2);
  sizes.push_back(whole.size() - 1);
  for (const std::size_t size : sizes) {
    write_file_atomically(path, std::string_view(whole).substr(0, size));
    const Outcome outcome = run_program({"run", path, "Once", "-n", "1"});
    EXPECT_EQ(outcome.status, 4) << size << " bytes: " << outcome.err;
    EXPECT_EQ(outcome.out, "") << size;
    EXPECT_THAT(outcome.err, testing::HasSubstr("cut.gguf")) << size;
  }
}

TEST_F(Files, UnknownArchitectureNamesThoseKnown) {
  const auto path = changed_llama("config.json", [](std::string& text) {
    const auto at = text.find("\"llama\"");
    ASSERT_NE(at, std::string::npos);
    text.replace(at, 7, "\"zebra\"");
  });
  expect_error(run_program({"plan", "show", path}), 5, "zebra");
  // What the files hold can be looked at all the same.
  const Outcome inspect = run_program({"inspect", path});
  EXPECT_EQ(inspect.status, 0) << inspect.err;
  EXPECT_THAT(inspect.out, testing::HasSubstr("zebra"));
}

TEST_F(Files, ShapeThatDoesNotFitNamesTheTensor) {
  const auto path = changed_llama("config.json", [](std::string& text) {
    const auto at = text.find("\"intermediate_size\": ");
    ASSERT_NE(at, std::string::npos);
    text.insert(at + std::string_view("\"intermediate_size\": ").size(), "1");
  });
  expect_error(run_program({"plan", "show", path}), 4, "mlp.");
}

TEST_F(Files, ConfigurationThatIsNoJson) {
  const auto path = changed_llama("config.json", [](std::string& text) { text = "{\"model_type\": "; });
  expect_error(run_program({"plan", "show", path}), 4, "config.json");
}

TEST_F(Files, WeightsCutShort) {
  const auto path = changed_llama("model.safetensors", [](std::string& text) { text.resize(text.size() - 5); });
  expect_error(run_program({"plan", "show", path}), 4, "model.safetensors");
}

}  // namespace
}  // namespace candor
