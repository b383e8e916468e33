#include "formats/staged_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "artifact_sample.h"
#include "formats/model_source.h"
#include "test_folder.h"

namespace candor {
namespace {

using ::testing::HasSubstr;

class StagedWriterTest : public ::testing::Test {
 protected:
  /// Writes `count` tensors of the sample and stops, as a killed process would.
  void write_some(std::size_t count, const char* key = "key") const {
    ArtifactWriter writer(target, sample_content(), key);
    for (std::size_t i = 0; i < count; ++i)
      writer.staged().write(sample_bytes(writer.staged().layout().tensors[i], i), Json{{"tensor", i}});
  }
  [[nodiscard]] std::size_t resumed(const char* key = "key") const {
    return ArtifactWriter(target, sample_content(), key).staged().written().size();
  }
  TestFolder folder;
  std::filesystem::path target = folder.path() / "model";
  std::filesystem::path partial = folder.path() / "model.partial";
};

TEST_F(StagedWriterTest, AnInterruptedWriterLeavesNothingThatOpens) {
  write_some(3);
  EXPECT_FALSE(std::filesystem::exists(target));
  EXPECT_THROW((void)ModelSource::open(partial), Error);
}

TEST_F(StagedWriterTest, GoesOnWhereItStopped) {
  write_some(2);
  ThreadPool pool(1);
  ArtifactWriter writer(target, sample_content(), "key");
  ASSERT_EQ(writer.staged().written().size(), 2u);
  EXPECT_EQ(writer.staged().written()[1].note, (Json{{"tensor", 1}}));
  write_rest(writer.staged());
  const Json resumed_manifest = writer.finish(pool);
  EXPECT_FALSE(std::filesystem::exists(partial));
  const TestFolder other;
  EXPECT_EQ(resumed_manifest["manifestDigest"], write_sample(other.path() / "model")["manifestDigest"]);
}

TEST_F(StagedWriterTest, TakesOverOnlyWhatIsIntact) {
  write_some(3);
  std::fstream shard(partial / "shard_00002.bin", std::ios::in | std::ios::out | std::ios::binary);
  shard.seekp(300);
  shard.put('!');
  shard.close();
  EXPECT_EQ(resumed(), 1u);
}

TEST_F(StagedWriterTest, ACutJournalLineIsDropped) {
  write_some(2);
  const auto journal = partial / "journal.jsonl";
  std::filesystem::resize_file(journal, std::filesystem::file_size(journal) - 5);
  EXPECT_EQ(resumed(), 1u);
}

TEST_F(StagedWriterTest, AnotherKeyStartsAnew) {
  write_some(2);
  EXPECT_EQ(resumed("another"), 0u);
}

TEST_F(StagedWriterTest, RefusesAnExistingTargetAndASecondWriter) {
  {
    const ArtifactWriter first(target, sample_content(), "key");
    EXPECT_THAT(error_of(ErrorCode::usage, [&] { (void)resumed(); }), HasSubstr("another process"));
  }
  write_sample(target);
  EXPECT_THAT(error_of(ErrorCode::usage, [&] { (void)resumed(); }), HasSubstr("exists already"));
}

TEST_F(StagedWriterTest, RefusesToCommitLessThanAll) {
  ArtifactWriter writer(target, sample_content(), "key");
  ThreadPool pool(1);
  EXPECT_THROW(writer.staged().commit_folder(), Error);
  EXPECT_THROW(writer.staged().write(std::vector<std::byte>(3)), Error);
  EXPECT_FALSE(std::filesystem::exists(target));
}

TEST_F(StagedWriterTest, AHeaderThatLacksFieldsIsFoundBeforeAnythingAppears) {
  ArtifactContent content = sample_content();
  content.header.erase("modelId");
  ArtifactWriter writer(target, std::move(content), "key");
  write_rest(writer.staged());
  ThreadPool pool(1);
  EXPECT_THAT(error_of(ErrorCode::format, [&] { (void)writer.finish(pool); }), HasSubstr("modelId"));
  EXPECT_FALSE(std::filesystem::exists(target));
}

}  // namespace
}  // namespace candor
