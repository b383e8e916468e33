// A small artifact for tests: four tensors that cross shard borders, with tokenizer and template.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/artifact_writer.h"
#include "model_bytes.h"

namespace candor {

inline Json sample_header() {
  return parse_json(R"({
    "version": 1, "modelId": "sample", "modelType": "transformer", "quantization": "Q4_K_M",
    "architecture": {"numLayers": 1, "hiddenSize": 256, "intermediateSize": 256, "numAttentionHeads": 2,
                     "numKeyValueHeads": 1, "headDim": 128, "vocabSize": 4, "maxSeqLen": 64},
    "moeConfig": null,
    "inference": {"schema": "doppler.execution/v0", "execution": {"steps": [], "policies": {}}},
    "eos_token_id": [1, 2]
  })",
                    "header");
}

inline ArtifactContent sample_content() {
  ArtifactContent content;
  content.header = sample_header();
  content.tensors = {make_tensor("model.embed_tokens.weight", Encoding::f16, {4, 256}),
                     make_tensor("model.layers.0.self_attn.q_proj.weight", Encoding::q4_k, {3, 300}),
                     make_tensor("model.layers.0.input_layernorm.weight", Encoding::f32, {256}),
                     make_tensor("model.layers.0.mlp.down_proj.weight", Encoding::q8_0, {2, 256})};
  content.files = {{"tokenizer.json", R"({"model":{"vocab":{"a":0,"b":1}}})"},
                   {"tokenizer_config.json", R"({"chat_template":"{{ messages }}"})"}};
  content.shard_bytes = 900;
  return content;
}

/// Bytes of tensor `index`: a run that differs from tensor to tensor.
inline std::vector<std::byte> sample_bytes(const TensorInfo& tensor, std::size_t index) {
  std::vector<std::byte> bytes(tensor.bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i * 7 + index * 31) % 256);
  return bytes;
}

inline void write_rest(StagedWriter& writer) {
  while (writer.written().size() < writer.layout().tensors.size()) {
    const std::size_t index = writer.written().size();
    writer.write(sample_bytes(writer.layout().tensors[index], index));
  }
}

inline Json write_sample(const std::filesystem::path& folder) {
  ThreadPool pool(2);
  ArtifactWriter writer(folder, sample_content(), "key");
  write_rest(writer.staged());
  return writer.finish(pool);
}

}  // namespace candor
