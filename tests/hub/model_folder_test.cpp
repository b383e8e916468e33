// Short names: what they stand for, and that a path always comes first.
#include "hub/model_folder.h"

#include <cstdlib>
#include <fstream>

#include "formats/test_folder.h"

namespace candor {
namespace {

namespace fs = std::filesystem;

class ModelFolder : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("CANDOR_MODELS", folder_.path().c_str(), 1);
    put("artifact/manifest.json");
    put("hf/config.json");
    put("single.gguf");
    put("owner/inner/model-00001-of-00002.gguf");
    put("owner/inner/model-00002-of-00002.gguf");
    put("several/a.gguf");
    put("several/b.gguf");
    put("begun.partial/config.json");
    put("notes/readme.txt");
  }
  void TearDown() override { ::unsetenv("CANDOR_MODELS"); }

  void put(const std::string& name) const {
    fs::create_directories((folder_.path() / name).parent_path());
    folder_.write(name, "x");
  }

  TestFolder folder_;
};

TEST_F(ModelFolder, ListsWhatAReaderCouldOpen) {
  std::vector<std::string> lines;
  for (const ListedModel& model : list_models(folder_.path())) lines.push_back(model.name + ": " + model.kind);
  EXPECT_EQ(lines, (std::vector<std::string>{"artifact: artifact", "begun.partial: unfinished", "hf: Hugging Face",
                                             "owner/inner: GGUF", "several: GGUF", "single.gguf: GGUF"}));
  EXPECT_EQ(list_models(folder_.path())[3].bytes, 2u);
  EXPECT_TRUE(list_models(folder_.path() / "nothing").empty());
}

TEST_F(ModelFolder, NamesStandForPaths) {
  EXPECT_EQ(resolve_model("artifact"), folder_.path() / "artifact");
  EXPECT_EQ(resolve_model("single"), folder_.path() / "single.gguf");
  EXPECT_EQ(resolve_model("single.gguf"), folder_.path() / "single.gguf");
  EXPECT_EQ(resolve_model("owner/inner"), folder_.path() / "owner/inner/model-00001-of-00002.gguf");
  EXPECT_EQ(resolve_model("several"), folder_.path() / "several");  // for the reader to say what it holds
  EXPECT_EQ(resolve_model("several/a"), folder_.path() / "several/a.gguf");
}

TEST_F(ModelFolder, WhatIsNoNameStaysAsItIs) {
  for (const std::string argument : {"unknown", "../hf", "owner/../hf", "/absolute/hf", ""})
    EXPECT_EQ(resolve_model(argument), argument);
  const std::string path = (folder_.path() / "hf").string();
  EXPECT_EQ(resolve_model(path), path);
}

TEST_F(ModelFolder, AnExistingPathComesFirst) {
  const TestFolder elsewhere;
  fs::create_directories(elsewhere.path() / "artifact");
  const fs::path before = fs::current_path();
  fs::current_path(elsewhere.path());
  EXPECT_EQ(resolve_model("artifact"), "artifact");
  fs::current_path(before);
}

TEST(ModelFolderPlace, FollowsTheEnvironment) {
  ::unsetenv("CANDOR_MODELS");
  ::setenv("XDG_DATA_HOME", "/data", 1);
  EXPECT_EQ(models_folder(), "/data/candor/models");
  ::unsetenv("XDG_DATA_HOME");
  ::setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(models_folder(), "/home/someone/.local/share/candor/models");
}

}  // namespace
}  // namespace candor
