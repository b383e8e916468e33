#include "formats/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_folder.h"

namespace candor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A valid original manifest: two shards, a tensor in one, a tensor across both.
Json valid() {
  const std::string digest(64, 'a');
  Json manifest = parse_json(R"({
    "version": 1, "modelId": "m", "modelType": "transformer", "quantization": "Q4_K_M", "hashAlgorithm": "sha256",
    "eos_token_id": 1,
    "architecture": {"numLayers": 1, "hiddenSize": 2, "intermediateSize": 2, "numAttentionHeads": 1,
                     "numKeyValueHeads": 1, "headDim": 2, "vocabSize": 4, "maxSeqLen": 8},
    "moeConfig": null, "inference": {"normalization": {"postAttentionNorm": false}},
    "shards": [{"index": 0, "filename": "s0", "size": 100, "offset": 0},
               {"index": 1, "filename": "s1", "size": 80, "offset": 100}],
    "totalSize": 180,
    "tensors": {
      "norm.weight": {"shard": 0, "offset": 0, "size": 16, "shape": [4], "dtype": "F32", "role": "norm"},
      "w": {"spans": [{"shardIndex": 0, "offset": 16, "size": 84}, {"shardIndex": 1, "offset": 0, "size": 60}],
            "size": 144, "shape": [1, 256], "dtype": "Q4_K_M", "role": "matmul", "layout": "row"}}
  })",
                             "valid");
  for (Json& shard : manifest["shards"]) shard["hash"] = digest;
  return manifest;
}

Manifest parse(const Json& manifest) {
  return parse_manifest(to_js_json(manifest, 2), "manifest.json");
}

std::string refusal(const Json& manifest) {
  return error_of(ErrorCode::format, [&] { (void)parse(manifest); });
}

/// The refusal after `change` was made to a valid manifest.
template <typename Change>
std::string refusal_after(const Change& change) {
  Json manifest = valid();
  change(manifest);
  return refusal(manifest);
}

TEST(Manifest, AcceptsTheOriginalsForm) {
  const Manifest manifest = parse(valid());
  EXPECT_FALSE(manifest.sealed);
  ASSERT_EQ(manifest.tensors.size(), 2u);
  EXPECT_EQ(manifest.tensors[1].encoding, Encoding::q4_k);
  EXPECT_EQ(manifest.tensors[1].extents.size(), 2u);
  Json older = valid();
  for (Json& shard : older["shards"]) {
    shard["blake3"] = shard["hash"];
    shard["fileName"] = shard["filename"];
    for (const char* key : {"hash", "filename", "index", "offset"}) shard.erase(key);
  }
  older["hashAlgorithm"] = "blake3";
  EXPECT_EQ(parse(older).shards[1].filename, "s1");
  EXPECT_EQ(parse(older).shards[1].algorithm, HashAlgorithm::blake3);
}

TEST(Manifest, HeaderFailuresComeTogetherWithTheOriginalsWords) {
  const std::string message = refusal_after([](Json& m) {
    m["version"] = "1abc";
    m["modelId"] = "";
    m.erase("modelType");
    m["quantization"] = 7;
    m["inference"] = "x";
    m["hashAlgorithm"] = "md5";
    m.erase("eos_token_id");
    m["architecture"]["headDim"] = 0;
    m["architecture"]["vocabSize"] = 1.5;
  });
  EXPECT_EQ(message,
            "manifest.json: Invalid manifest:\n  - Invalid version: 1abc\n  - Missing or invalid modelId field\n"
            "  - Missing or invalid modelType field\n  - Missing or invalid quantization field\n"
            "  - Missing or invalid inference field\n  - Invalid hashAlgorithm: md5\n  - Missing eos_token_id\n"
            "  - Invalid architecture.headDim\n  - Invalid architecture.vocabSize");
  EXPECT_THAT(refusal_after([](Json& m) { m.erase("hashAlgorithm"); }), HasSubstr("Missing or invalid hashAlgorithm"));
  EXPECT_THAT(refusal_after([](Json& m) { m["eos_token_id"] = Json::array(); }),
              HasSubstr("Invalid eos_token_id array"));
  EXPECT_THAT(refusal_after([](Json& m) { m["eos_token_id"] = nullptr; }), HasSubstr("Invalid eos_token_id"));
  EXPECT_THAT(refusal_after([](Json& m) { m.erase("architecture"); }), HasSubstr("Missing architecture field"));
}

TEST(Manifest, DiffusionAndLoraAreSparedWhatTheyLack) {
  Json diffusion = valid();
  diffusion["modelType"] = "diffusion";
  diffusion["eos_token_id"] = nullptr;
  diffusion.erase("architecture");
  EXPECT_NO_THROW((void)parse(diffusion));
  Json lora = valid();
  lora["adapterType"] = "lora";
  lora.erase("architecture");
  EXPECT_NO_THROW((void)parse(lora));
}

TEST(Manifest, ShardFailures) {
  EXPECT_THAT(refusal_after([](Json& m) { m["shards"] = Json::array(); }), HasSubstr("Missing or empty shards array"));
  EXPECT_THAT(refusal_after([](Json& m) { m["shards"][1]["index"] = 2; }), HasSubstr("Shard 1 has incorrect index: 2"));
  EXPECT_THAT(refusal_after([](Json& m) { m["shards"][1]["size"] = 0; }), HasSubstr("Shard 1 has invalid size"));
  EXPECT_THAT(refusal_after([](Json& m) { m["shards"][1]["hash"] = "ab"; }), HasSubstr("Shard 1 has invalid hash"));
  EXPECT_THAT(refusal_after([](Json& m) { m["shards"][1]["hash"] = std::string(64, 'A'); }),
              HasSubstr("lower-case hexadecimal"));
  EXPECT_THAT(refusal_after([](Json& m) { m["shards"][1].erase("filename"); }),
              HasSubstr("Shard 1 has invalid filename"));
  EXPECT_THAT(refusal_after([](Json& m) { m["shards"][1]["offset"] = 99; }),
              HasSubstr("Shard 1 has incorrect offset: expected 100, got 99"));
  EXPECT_THAT(refusal_after([](Json& m) { m["totalSize"] = 181; }),
              HasSubstr("totalSize mismatch: declared 181, calculated 180"));
  for (const char* name : {"../s1", "a/b", "..", "a\\b"})
    EXPECT_THAT(refusal_after([&](Json& m) { m["shards"][1]["filename"] = name; }), HasSubstr("same folder"));
  EXPECT_THAT(refusal_after([](Json& m) { m["shards"][1]["filename"] = "s0"; }), HasSubstr("Two shards"));
  EXPECT_THAT(refusal_after([](Json& m) { m["shards"][0] = nullptr; }), HasSubstr("Shard 0"));
}

TEST(Manifest, ExpertAndGroupFailures) {
  EXPECT_THAT(refusal_after([](Json& m) {
                m["moeConfig"] = {{"numExperts", 0}, {"numExpertsPerToken", "x"}};
              }),
              AllOf(HasSubstr("Invalid moeConfig.numExperts\n"), HasSubstr("Invalid moeConfig.numExpertsPerToken"),
                    HasSubstr("Invalid moeConfig.expertFormat")));
  EXPECT_THAT(refusal_after([](Json& m) {
                m["moeConfig"] = {{"numExperts", 2}, {"numExpertsPerToken", 3}, {"expertFormat", "other"}};
              }),
              AllOf(HasSubstr("Invalid moeConfig.expertFormat: other"), HasSubstr("cannot exceed numExperts")));
  EXPECT_THAT(refusal_after([](Json& m) {
                m["groups"]["g"] = {{"shards", {5}}};
              }),
              AllOf(HasSubstr("Group 'g' missing type"), HasSubstr("Group 'g' missing or invalid version"),
                    HasSubstr("Group 'g' references invalid shard index 5"),
                    HasSubstr("Group 'g' missing tensors array"), HasSubstr("Group 'g' missing or invalid hash")));
  EXPECT_THAT(
      refusal_after([](Json& m) {
        m["groups"]["g"] = {{"type", "t"}, {"version", "1.0.0"}, {"shards", {0}}, {"tensors", {"gone"}}, {"hash", "h"}};
      }),
      HasSubstr("names the tensor gone"));
}

TEST(Manifest, NormFlagsMustMatchTensorNames) {
  EXPECT_THAT(
      refusal_after([](Json& m) { m["inference"]["normalization"]["postAttentionNorm"] = true; }),
      HasSubstr(
          "[TENSOR_CONFIG_MISMATCH_INFERENCE_NORMALIZATION_POSTATTENTIONNORM] Config flag "
          "\"inference.normalization.postAttentionNorm\" (=true) is inconsistent with post-attention normalization "
          "tensors (found=false) -> Set inference.normalization.postAttentionNorm to false (no matching tensors "
          "found for pattern: /post_attention_layernorm\\.weight$/)"));
  EXPECT_THAT(
      refusal_after([](Json& m) { m["tensors"]["a.post_attention_layernorm.weight"] = m["tensors"]["norm.weight"]; }),
      HasSubstr("-> Set inference.normalization.postAttentionNorm to true (found 1 tensor(s): "
                "a.post_attention_layernorm.weight...)"));
}

TEST(Manifest, TensorsAreCheckedAgainstDtypeShapeAndShards) {
  const auto tensor = [](const char* name, const char* field, Json value) {
    return refusal_after([&](Json& m) { m["tensors"][name][field] = std::move(value); });
  };
  EXPECT_THAT(refusal_after([](Json& m) { m.erase("tensors"); }),
              HasSubstr("Missing tensorsFile and tensors - one is required"));
  EXPECT_THAT(tensor("w", "role", ""), HasSubstr("Tensor \"w\" missing role"));
  EXPECT_THAT(tensor("w", "dtype", "Q4"), HasSubstr("unknown dtype Q4"));
  EXPECT_THAT(tensor("w", "dtype", "A8_32"), HasSubstr("unknown dtype"));
  EXPECT_THAT(tensor("norm.weight", "size", 20), AllOf(HasSubstr("F32 of shape [4] needs 16 bytes"), HasSubstr("20")));
  EXPECT_THAT(tensor("norm.weight", "shape", {5}), HasSubstr("needs 20 bytes"));
  EXPECT_THAT(tensor("norm.weight", "shape", {0}), HasSubstr("dimension 0"));
  EXPECT_THAT(tensor("norm.weight", "shape", {4.5}), HasSubstr("dimension 4.5"));
  EXPECT_THAT(tensor("norm.weight", "shape", {4294967296, 4294967296}), HasSubstr("overflows"));
  EXPECT_THAT(tensor("norm.weight", "offset", 90), HasSubstr("needs 16 bytes at offset 90 of shard 0, which has 100"));
  EXPECT_THAT(tensor("norm.weight", "offset", -1), HasSubstr("offset -1"));
  EXPECT_THAT(tensor("norm.weight", "shard", 2), HasSubstr("shard 2, but there are 2"));
  EXPECT_THAT(tensor("norm.weight", "offset", 10), AllOf(HasSubstr("overlaps"), HasSubstr("norm.weight")));
  EXPECT_THAT(tensor("w", "size", 143), HasSubstr("size is 143"));
  EXPECT_THAT(tensor("w", "layout", "diagonal"), HasSubstr("unknown layout"));
  EXPECT_THAT(tensor("norm.weight", "layout", "col"), HasSubstr("only block encodings"));
  EXPECT_THAT(refusal_after([](Json& m) { m["tensors"]["w"]["spans"][1]["size"] = 61; }), HasSubstr("spans have 145"));
  EXPECT_THAT(refusal_after([](Json& m) { m["tensors"]["w"]["spans"] = Json::array(); }), HasSubstr("no spans"));
  EXPECT_THAT(refusal_after([](Json& m) { m["tensors"] = Json::array({1}); }), HasSubstr("tensors must be an object"));
}

TEST(Manifest, PaddedRowsColumnsAndFlatRunsAreToldApart) {
  const auto layout_of = [](const char* layout, std::vector<std::uint64_t> shape, std::uint64_t size) {
    Json manifest = valid();
    Json& tensor = manifest["tensors"]["w"];
    tensor = {{"shard", 1},        {"offset", 0},      {"size", size},    {"shape", shape},
              {"dtype", "Q4_K_M"}, {"role", "matmul"}, {"layout", layout}};
    manifest["shards"][1]["size"] = 4096;
    manifest["totalSize"] = 4196;
    return parse(manifest).tensors[1].layout;
  };
  EXPECT_EQ(layout_of("row", {2, 300}, 576), TensorLayout::rows);
  EXPECT_EQ(layout_of("col", {2, 3}, 432), TensorLayout::columns);
  EXPECT_EQ(layout_of("column", {256, 2}, 288), TensorLayout::columns);
  EXPECT_EQ(layout_of("row", {2, 100}, 144), TensorLayout::flat);
  EXPECT_EQ(layout_of("row", {3, 2, 100}, 432), TensorLayout::flat);
}

TEST(Manifest, SealedManifestsNeedEveryDigest) {
  Json manifest = valid();
  seal_manifest(manifest);
  EXPECT_THAT(refusal(manifest), AllOf(HasSubstr("Tensor \"norm.weight\" has no sha256"), HasSubstr("Tensor \"w\"")));
  for (auto& [name, tensor] : manifest["tensors"].items()) tensor["sha256"] = std::string(64, 'b');
  manifest["tokenizer"] = {{"type", "bundled"}, {"file", "tokenizer.json"}};
  seal_manifest(manifest);
  EXPECT_THAT(refusal(manifest), HasSubstr("tokenizer.file \"tokenizer.json\" has no digest in files"));
  manifest["files"]["tokenizer.json"] = {{"size", 3}, {"sha256", std::string(64, 'c')}};
  seal_manifest(manifest);
  EXPECT_TRUE(parse(manifest).sealed);
  manifest["manifestDigest"] = "sha256:" + std::string(64, '0');
  EXPECT_THAT(error_of(ErrorCode::integrity, [&] { (void)parse(manifest); }), HasSubstr("was changed"));
  manifest["files"]["../x"] = {{"size", 3}, {"sha256", "zz"}};
  seal_manifest(manifest);
  EXPECT_THAT(refusal(manifest), HasSubstr("File \"../x\""));
}

TEST(Manifest, TensorsMayStandInAFileOfTheirOwn) {
  Json manifest = valid();
  const std::string tensors = to_js_json(manifest["tensors"]);
  manifest.erase("tensors");
  manifest["tensorsFile"] = "tensors.json";
  EXPECT_EQ(parse_manifest(to_js_json(manifest), "m", tensors).tensors.size(), 2u);
  EXPECT_THAT(refusal(manifest), HasSubstr("tensors must be an object"));
}

TEST(Manifest, AnythingElseIsNoManifest) {
  for (const char* text : {"", "null", "[]", "3", "{\"version\":"})
    EXPECT_THROW((void)parse_manifest(text, "m"), Error) << text;
}

TEST(Manifest, DtypesAndRolesHaveTheOriginalsNames) {
  EXPECT_EQ(dtype_name(Encoding::q4_k), "Q4_K_M");
  EXPECT_EQ(dtype_name(Encoding::q8_0), "Q8_0");
  EXPECT_EQ(parse_dtype("Q4_K"), Encoding::q4_k);
  EXPECT_EQ(parse_dtype("BF16"), Encoding::bf16);
  EXPECT_FALSE(parse_dtype("bf16").has_value());
  EXPECT_EQ(tensor_role("model.embed_tokens.weight"), "embedding");
  EXPECT_EQ(tensor_role("output.weight"), "lm_head");
  EXPECT_EQ(tensor_role("blk.0.attn_output.weight"), "matmul");
  EXPECT_EQ(tensor_role("model.layers.0.mlp.experts.3.w1.weight"), "expert");
  EXPECT_EQ(tensor_role("model.layers.0.block_sparse_moe.gate.weight"), "router");
  EXPECT_EQ(tensor_role("model.layers.0.self_attn.q_norm.weight"), "norm");
  EXPECT_EQ(tensor_role("model.layers.0.conv.conv.weight"), "other");
}

}  // namespace
}  // namespace candor
