// Small model files made in memory by the writers, as the tests of readers need them.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf_writer.h"
#include "formats/output_layout.h"
#include "formats/safetensors_writer.h"

namespace candor {

inline TensorInfo make_tensor(std::string name, Encoding encoding, std::vector<std::uint64_t> shape) {
  TensorInfo tensor;
  tensor.name = std::move(name);
  tensor.encoding = encoding;
  tensor.shape = std::move(shape);
  return tensor;
}

/// One file of a layout: its header, then bytes 0, 1, 2, … for data and padding.
inline std::string file_bytes(const OutputLayout& layout, std::size_t file = 0) {
  std::string out = layout.files[file].header;
  while (out.size() < layout.files[file].size) out += static_cast<char>(out.size() % 251);
  return out;
}

inline std::span<const std::byte> view(const std::string& bytes) {
  return std::as_bytes(std::span(bytes));
}

/// A GGUF file with every kind of metadata and a few tensors.
inline std::string sample_gguf() {
  GgufPairs pairs;
  pairs.set_string("general.architecture", "llama");
  pairs.set_u32("llama.block_count", 2);
  pairs.set_i32("a.negative", -5);
  pairs.set_u64("a.large", 1ull << 40);
  pairs.set_u16("a.short", 7);
  pairs.set_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  pairs.set_boolean("tokenizer.ggml.add_bos_token", true);
  pairs.set_strings("tokenizer.ggml.tokens", std::vector<std::string>{"<s>", "a", "\xff"});
  pairs.set_f32s("tokenizer.ggml.scores", std::vector<float>{0.5f, -1.0f, 2.0f});
  pairs.set_i32s("tokenizer.ggml.token_type", std::vector<std::int32_t>{3, 1, 6});
  return file_bytes(layout_gguf("model.gguf", pairs,
                                {make_tensor("token_embd.weight", Encoding::f16, {3, 64}),
                                 make_tensor("blk.0.attn_norm.weight", Encoding::f32, {64}),
                                 make_tensor("blk.0.attn_q.weight", Encoding::q8_0, {64, 64}),
                                 make_tensor("blk.0.ffn_down.weight", Encoding::q4_k, {4, 256})}));
}

/// Overwrites bytes in place.
template <typename T>
void poke(std::string& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

/// The offset just behind the first occurrence of `text`.
inline std::size_t after(const std::string& bytes, std::string_view text) {
  return bytes.find(text) + text.size();
}

/// A safetensors file with this JSON header and `data` bytes of data.
inline std::string safetensors_file(const std::string& header, std::size_t data) {
  const std::uint64_t length = header.size();
  std::string out(sizeof length, '\0');
  poke(out, 0, length);
  return out + header + std::string(data, '\x01');
}

}  // namespace candor
