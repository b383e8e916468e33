// Valid model files of each format with one or two fields changed that carry meaning: counts, sizes, offsets,
// alignment, dimensions, types. Blind mutation rarely gets past the first checks; this starts behind them.
#include <cstdint>
#include <string>
#include <vector>

#include "allocation_limit.h"
#include "base/error.h"
#include "choices.h"
#include "formats/gguf_writer.h"
#include "formats/safetensors_writer.h"
#include "model_invariants.h"

namespace candor {
namespace {

TensorInfo tensor(std::string name, Encoding encoding, std::vector<std::uint64_t> shape) {
  TensorInfo info;
  info.name = std::move(name);
  info.encoding = encoding;
  info.shape = std::move(shape);
  return info;
}

std::string with_data(const OutputLayout& layout) {
  std::string out = layout.files[0].header;
  out.resize(layout.files[0].size);
  return out;
}

/// Any 1, 4 or 8 bytes of the header: with fields this dense, most hit a count, a length, a type, a dimension or an
/// offset.
std::string perturbed_gguf(Choices& choices) {
  static const OutputLayout layout = [] {
    GgufPairs pairs;
    pairs.set_string("general.architecture", "llama");
    pairs.set_u32("general.alignment", 64);
    pairs.set_strings("tokens", std::vector<std::string>{"a", "bc"});
    pairs.set_f32s("scores", std::vector<float>{1, 2, 3});
    pairs.set_boolean("flag", true);
    return layout_gguf("f", pairs,
                       {tensor("a", Encoding::f32, {2, 3}), tensor("b", Encoding::q4_k, {2, 256}),
                        tensor("c", Encoding::q8_0, {1, 2, 32})},
                       64);
  }();
  std::string bytes = with_data(layout);
  const std::size_t changes = 1 + choices.below(2);
  for (std::size_t i = 0; i < changes; ++i) {
    constexpr std::size_t kWidths[] = {1, 4, 8};
    const std::size_t at = choices.below(layout.files[0].header.size());
    poke(bytes, at, choices.value(), kWidths[choices.below(3)]);
  }
  return bytes;
}

/// One number of the header replaced, with the header's length kept right or not.
std::string perturbed_safetensors(Choices& choices) {
  const auto offset = [&](std::uint64_t usual) { return choices.below(6) == 0 ? choices.value() : usual; };
  const std::string header = fmt::format(R"({{"a":{{"dtype":"F32","shape":[{},{}],"data_offsets":[{},{}]}},)"
                                         R"("b":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}}}})",
                                         offset(2), offset(3), offset(0), offset(24),
                                         choices.below(4) == 0 ? "I64" : "U8", offset(8), offset(24), offset(32));
  std::string bytes(8, '\0');
  poke(bytes, 0, offset(header.size()), 8);
  return bytes + header + std::string(32, '\0');
}

Json valid_manifest() {
  Json manifest = parse_json(R"({
    "version": 1, "modelId": "m", "modelType": "transformer", "quantization": "Q4_K_M", "hashAlgorithm": "sha256",
    "eos_token_id": 1,
    "architecture": {"numLayers": 1, "hiddenSize": 2, "intermediateSize": 2, "numAttentionHeads": 1,
                     "numKeyValueHeads": 1, "headDim": 2, "vocabSize": 4, "maxSeqLen": 8},
    "moeConfig": {"numExperts": 4, "numExpertsPerToken": 2, "expertFormat": "mixtral"},
    "inference": {"normalization": {"postAttentionNorm": false}},
    "shards": [{"index": 0, "filename": "s0", "size": 100, "hash": "", "offset": 0},
               {"index": 1, "filename": "s1", "size": 80, "hash": "", "offset": 100}],
    "totalSize": 180,
    "tensors": {
      "n": {"shard": 0, "offset": 0, "size": 16, "shape": [4], "dtype": "F32", "role": "norm"},
      "w": {"spans": [{"shardIndex": 0, "offset": 16, "size": 84}, {"shardIndex": 1, "offset": 0, "size": 60}],
            "size": 144, "shape": [1, 256], "dtype": "Q4_K_M", "role": "matmul", "layout": "row"}}
  })",
                             "valid");
  for (Json& shard : manifest["shards"]) shard["hash"] = std::string(64, 'a');
  return manifest;
}

std::string perturbed_manifest(Choices& choices) {
  static const Json valid = valid_manifest();
  Json manifest = valid;
  const std::size_t changes = 1 + choices.below(2);
  for (std::size_t i = 0; i < changes; ++i) perturb_leaf(manifest, 64, choices);
  return manifest.dump();
}

void run(Choices& choices) {
  const std::size_t format = choices.below(3);
  if (format == 0) {
    const std::string bytes = perturbed_gguf(choices);
    const AllocationLimit limit(bytes.size());
    check_accepted_gguf(std::as_bytes(std::span(bytes)));
  } else if (format == 1) {
    const std::string bytes = perturbed_safetensors(choices);
    const AllocationLimit limit(bytes.size());
    check_accepted_safetensors(std::as_bytes(std::span(bytes)));
  } else {
    const std::string text = perturbed_manifest(choices);
    const AllocationLimit limit(text.size(), 256);
    check_accepted_manifest(text);
  }
}

}  // namespace
}  // namespace candor

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  candor::Choices choices(data, size);
  try {
    candor::run(choices);
  } catch (const candor::Error&) {
  }
  return 0;
}
