#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "artifact_sample.h"
#include "formats/artifact_verify.h"
#include "formats/manifest.h"
#include "formats/quant/codec.h"
#include "formats/shard_hash.h"
#include "test_folder.h"

namespace candor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void flip_byte(const std::filesystem::path& path, std::streamoff offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(offset);
  const int byte = file.get();
  file.seekp(offset);
  file.put(static_cast<char>(byte ^ 0x40));
}

TEST(Artifact, ReadsBackWhatTheWriterWrote) {
  const TestFolder folder;
  const auto path = folder.path() / "model";
  const Json manifest = write_sample(path);
  const ModelSource source = ModelSource::open(path);
  EXPECT_EQ(source.format(), SourceFormat::artifact);
  EXPECT_EQ(source.manifest(), manifest);
  EXPECT_EQ(source.chat_template(), "{{ messages }}");
  EXPECT_TRUE(source.tokenizer_json().has_value());
  EXPECT_EQ(manifest["tokenizer"], (Json{{"type", "bundled"}, {"file", "tokenizer.json"}, {"vocabSize", 2}}));
  EXPECT_GT(source.files().size(), 3u);
  for (std::size_t i = 0; i < source.tensors().size(); ++i) {
    const TensorInfo& tensor = source.tensors()[i];
    std::vector<std::byte> bytes(tensor.bytes);
    source.copy_bytes(tensor, bytes);
    EXPECT_EQ(bytes, sample_bytes(tensor, i)) << tensor.name;
    EXPECT_EQ(tensor.sha256, tensor_sha256(source, tensor));
  }
  const TensorInfo* padded = source.find("model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(padded->bytes, 3u * 2 * 144);
  EXPECT_GT(padded->extents.size(), 1u);
  EXPECT_THROW((void)source.bytes(*padded), Error);
  ThreadPool pool(2);
  EXPECT_TRUE(verify_artifact(source, pool).empty());
}

TEST(Artifact, DamageIsReportedByTensorAndRange) {
  const TestFolder folder;
  const auto path = folder.path() / "model";
  write_sample(path);
  flip_byte(path / "shard_00002.bin", 300);
  const ModelSource source = ModelSource::open(path);
  ThreadPool pool(2);
  const std::vector<Damage> damages = verify_artifact(source, pool);
  ASSERT_EQ(damages.size(), 1u);
  EXPECT_EQ(damages[0].file, "shard_00002.bin");
  EXPECT_EQ(damages[0].tensor, "model.layers.0.self_attn.q_proj.weight");
  EXPECT_LE(damages[0].offset, 300u);
  EXPECT_GT(damages[0].offset + damages[0].size, 300u);
  EXPECT_NE(damages[0].expected, damages[0].found);
  const TensorInfo& hit = *source.find(damages[0].tensor);
  EXPECT_THAT(error_of(ErrorCode::integrity, [&] { check_tensor_digest(source, hit); }), HasSubstr(hit.name));
  EXPECT_NO_THROW(check_tensor_digest(source, source.tensors().front()));
}

/// `name` with one bit flipped must be found out, by opening the artifact or by hashing it.
void expect_noticed(const std::filesystem::path& folder, const std::string& name, std::size_t offset,
                    const Json& manifest, ThreadPool& pool) {
  std::optional<ModelSource> source;
  try {
    source.emplace(ModelSource::open(folder));
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(name));
    return;
  }
  if (!name.starts_with("shard_")) {  // e for E in a number, say: the manifest means what it meant
    EXPECT_EQ(name, "manifest.json");
    EXPECT_EQ(source->manifest(), manifest);
    return;
  }
  const std::vector<Damage> damages = verify_artifact(*source, pool);
  const bool found = std::ranges::any_of(damages, [&](const Damage& damage) {
    return damage.file == name && damage.offset <= offset && offset < damage.offset + damage.size &&
           source->find(damage.tensor) != nullptr;
  });
  EXPECT_TRUE(found);
  EXPECT_THAT(error_of(ErrorCode::integrity, [&] { (void)verify_for_loading(*source, VerifyMode::full, pool); }),
              HasSubstr(name));
}

TEST(Artifact, OneFlippedBitAnywhereIsNoticedAndNamed) {
  const TestFolder folder;
  const auto path = folder.path() / "model";
  const Json manifest = write_sample(path);
  ThreadPool pool(1);
  std::size_t flips = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    const std::string whole = read_file(entry.path(), 1 << 20);
    for (std::size_t offset = flips % 11; offset < whole.size(); offset += 11) {
      std::string flipped = whole;
      flipped[offset] = static_cast<char>(flipped[offset] ^ 1 << flips++ % 8);
      std::ofstream(entry.path(), std::ios::binary) << flipped;
      SCOPED_TRACE(name + " at " + std::to_string(offset));
      expect_noticed(path, name, offset, manifest, pool);
    }
    std::ofstream(entry.path(), std::ios::binary) << whole;
  }
  EXPECT_GT(flips, 500u);
  const ModelSource whole = ModelSource::open(path);
  const Verification full = verify_for_loading(whole, VerifyMode::full, pool);
  EXPECT_EQ(full.tensors, 4u);
  EXPECT_EQ(full.bytes, artifact_bytes(whole));
}

/// Tensors cover every byte of a shard: where they are whole, it is the manifest's own entry that is wrong.
TEST(Artifact, AWrongDigestOfAWholeShardIsBlamedOnTheManifest) {
  const TestFolder folder;
  const auto path = folder.path() / "model";
  Json manifest = write_sample(path);
  manifest["shards"][1]["hash"] = std::string(64, 'a');
  seal_manifest(manifest);
  write_file_atomically(path / "manifest.json", to_js_json(manifest, 2));
  const ModelSource source = ModelSource::open(path);
  ThreadPool pool(1);
  const std::vector<Damage> damages = verify_artifact(source, pool);
  ASSERT_EQ(damages.size(), 1u);
  EXPECT_EQ(damages[0].tensor, "");
  EXPECT_THAT(error_of(ErrorCode::integrity, [&] { (void)verify_for_loading(source, VerifyMode::full, pool); }),
              AllOf(HasSubstr("shard_00001.bin: its digest is"), HasSubstr("but the manifest says aaaa"),
                    HasSubstr("its tensors are whole")));
}

TEST(Artifact, SamplesFindDamageAndNeedDigests) {
  const TestFolder folder;
  const auto path = folder.path() / "model";
  write_sample(path);
  ThreadPool pool(1);
  const Verification sampled = verify_for_loading(ModelSource::open(path), VerifyMode::sampled, pool);
  EXPECT_GE(sampled.tensors, 1u);
  EXPECT_EQ(sampled.to_json()["mode"], "sampled");
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.path().filename().string().starts_with("shard_"))
      for (int offset = 0; offset < static_cast<int>(entry.file_size()); offset += 64) flip_byte(entry.path(), offset);
  const ModelSource damaged = ModelSource::open(path);  // every tensor: whatever is chosen is damaged
  (void)error_of(ErrorCode::integrity, [&] { (void)verify_for_loading(damaged, VerifyMode::sampled, pool); });
  EXPECT_EQ(verify_for_loading(damaged, VerifyMode::header, pool).bytes, 0u);
  const auto gguf = folder.write("m.gguf", sample_gguf());
  EXPECT_THAT(
      error_of(ErrorCode::usage, [&] { (void)verify_for_loading(ModelSource::open(gguf), VerifyMode::full, pool); }),
      HasSubstr("no digests"));
}

TEST(Artifact, EveryChangedFileIsNoticedWhenOpening) {
  const TestFolder folder;
  const auto path = folder.path() / "model";
  write_sample(path);
  const auto open = [&] { (void)ModelSource::open(path); };
  const auto keep = [&](const char* name) { return read_file(path / name, 1 << 20); };

  const std::string tokenizer = keep("tokenizer.json");
  write_file_atomically(path / "tokenizer.json", R"({"model":{"vocab":{"a":0,"c":1}}})");
  EXPECT_THAT(error_of(ErrorCode::integrity, open), HasSubstr("tokenizer.json"));
  std::filesystem::remove(path / "tokenizer.json");
  EXPECT_THAT(error_of(ErrorCode::not_found, open), HasSubstr("tokenizer.json"));
  write_file_atomically(path / "tokenizer.json", tokenizer);

  const std::string shard = keep("shard_00001.bin");
  std::filesystem::resize_file(path / "shard_00001.bin", 899);
  EXPECT_THAT(error_of(ErrorCode::format, open),
              AllOf(HasSubstr("shard_00001.bin"), HasSubstr("899"), HasSubstr("900")));
  std::filesystem::remove(path / "shard_00001.bin");
  EXPECT_THAT(error_of(ErrorCode::not_found, open), HasSubstr("shard_00001.bin"));
  write_file_atomically(path / "shard_00001.bin", shard);

  std::string manifest = keep("manifest.json");
  manifest.replace(manifest.find("\"headDim\": 128"), 14, "\"headDim\": 129");
  write_file_atomically(path / "manifest.json", manifest);
  EXPECT_THAT(error_of(ErrorCode::integrity, open), HasSubstr("convert the model again"));
}

TEST(Artifact, ChangedManifestsAreSealedAnew) {
  const TestFolder folder;
  const auto path = folder.path() / "model";
  Json manifest = write_sample(path);
  manifest["architecture"]["headDim"] = 64;
  seal_manifest(manifest);
  write_file_atomically(path / "manifest.json", to_js_json(manifest, 2));
  EXPECT_EQ(ModelSource::open(path).manifest()["architecture"]["headDim"], 64);
}

TEST(Artifact, OpensAndVerifiesTheOriginalsArtifacts) {
  CANDOR_SKIP_WITHOUT_SHARED();
  ThreadPool pool(2);
  for (const char* name : {"tiny-rdrr-f16", "tiny-rdrr-q4k"}) {
    const ModelSource source = ModelSource::open(shared_folder() / "goldens/rdrr" / name);
    EXPECT_EQ(source.tensors().size(), 41u);
    EXPECT_TRUE(source.tokenizer_json().has_value());
    EXPECT_TRUE(verify_artifact(source, pool).empty());
  }
}

TEST(Artifact, TheOriginalsQuantizationIsCloseToItsSource) {
  CANDOR_SKIP_WITHOUT_SHARED();
  const ModelSource exact = ModelSource::open(shared_folder() / "goldens/rdrr/tiny-rdrr-f16");
  const ModelSource coarse = ModelSource::open(shared_folder() / "goldens/rdrr/tiny-rdrr-q4k");
  int quantized = 0;
  for (const TensorInfo& tensor : coarse.tensors()) {
    if (tensor.encoding != Encoding::q4_k) continue;
    ++quantized;
    const TensorInfo* other = exact.find(tensor.name);
    ASSERT_NE(other, nullptr);
    std::vector<float> a(tensor.elements());
    std::vector<float> b(tensor.elements());
    dequantize(tensor.encoding, coarse.bytes(tensor).data(), a.data(), a.size());
    dequantize(other->encoding, exact.bytes(*other).data(), b.data(), b.size());
    double error = 0;
    double norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      error += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
      norm += std::pow(static_cast<double>(b[i]), 2);
    }
    EXPECT_LT(std::sqrt(error / norm), 0.12) << tensor.name;
  }
  EXPECT_EQ(quantized, 21);
}

TEST(Artifact, OnlyArtifactsAreVerified) {
  const TestFolder folder;
  const auto path = folder.write("m.gguf", sample_gguf());
  const ModelSource source = ModelSource::open(path);
  ThreadPool pool(1);
  EXPECT_THAT(error_of(ErrorCode::usage, [&] { (void)verify_artifact(source, pool); }), HasSubstr("only artifacts"));
}

/// The tree was checked against another implementation of BLAKE3 with the same two changes.
TEST(ShardHash, Blake3VariantMatchesKnownDigests) {
  const auto digest = [](std::size_t size, std::size_t step) {
    std::vector<std::byte> data(size);
    for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i % 251);
    Blake3Variant hash;
    for (std::size_t i = 0; i < size; i += step) hash.update(std::span(data).subspan(i, std::min(step, size - i)));
    return hash.hex();
  };
  EXPECT_EQ(digest(0, 1), "fda1200e7626ed65703a9c8eb28987d8142bf29fcf7cf582e0c44cc7ad8a8ea8");
  Blake3Variant abc;
  abc.update(std::as_bytes(std::span("abc", 3)));
  EXPECT_EQ(abc.hex(), "46b20ea3c367f5c1f3d24a885eb5bf478b2b0002ac02c1087a7cafb5c5d703bf");
  for (const std::size_t step : {1u, 64u, 1000u, 1u << 20}) {
    EXPECT_EQ(digest(1024, step), "720a04b59cf6a8b148ca1f6ef8a3b2168077f2baf111197742bc6b17e2dbc694");
    EXPECT_EQ(digest(1025, step), "b74c0de1b15fd2449d0ca9d16e22a356275308cc3ca15c34659c6773168a5179");
    EXPECT_EQ(digest(3073, step), "e503b45df53e8819cb6c7a3052889aceb321a5f52af45194fbaccee83dd53213");
    EXPECT_EQ(digest(102400, step), "670bc3a6daff417df3b8ceec172e14fa61ece7f3b93145e6c6f8d679ae8d6f52");
  }
}

}  // namespace
}  // namespace candor
