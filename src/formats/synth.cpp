#include "formats/synth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "base/error.h"
#include "formats/artifact_writer.h"
#include "formats/model_source.h"
#include "formats/tensor_encoder.h"

namespace candor {
namespace {

constexpr std::array kShapes = std::to_array<SynthShape>({
    {"llama-1m", 2, 256, 4, 2, 512, 512, 512, 10000.0f, true},
    {"llama-15m", 6, 288, 6, 6, 768, 32000, 256, 10000.0f, true},
    {"llama-160m", 12, 768, 12, 12, 3072, 32000, 2048},
    {"llama-1.1b", 22, 2048, 32, 4, 5632, 32000, 2048},
    {"llama-3.2b", 28, 3072, 24, 8, 8192, 128256, 131072, 500000.0f, true},
    {"llama-8b", 32, 4096, 32, 8, 14336, 128256, 8192, 500000.0f},
});

constexpr std::uint32_t kControlTokens = 3;
constexpr std::uint32_t kByteTokens = 256;
constexpr std::uint32_t kLeastVocabulary = kControlTokens + kByteTokens + 1;

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection whose outputs for a counter pass for random.
std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Four 16-bit uniform numbers added: near normal, mean 0, deviation 1, never beyond ±3.5.
float near_normal(std::uint64_t bits) {
  const auto sum = (bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48);
  constexpr float kDeviation = 37837.2f;  // 65536 / √3
  return (static_cast<float>(sum) - 131070.0f) * (1.0f / kDeviation);
}

/// Norms are 1; matrices have deviation 0.02, those that write into the residual stream less the deeper the model.
struct Distribution {
  bool ones = false;
  float deviation = 0.02f;
};

struct SynthTensor {
  TensorInfo info;
  Distribution distribution;
};

std::vector<SynthTensor> list_tensors(const SynthShape& shape) {
  std::vector<SynthTensor> out;
  const auto add = [&](std::string name, std::vector<std::uint64_t> dimensions, Distribution distribution) {
    TensorInfo tensor;
    tensor.name = std::move(name);
    tensor.shape = std::move(dimensions);
    out.push_back({std::move(tensor), distribution});
  };
  const std::uint64_t hidden = shape.hidden;
  const std::uint64_t kv = hidden / shape.heads * shape.kv_heads;
  const Distribution ones{true};
  const Distribution plain{};
  const Distribution residual{false, 0.02f / std::sqrt(2.0f * static_cast<float>(shape.layers))};
  add("token_embd.weight", {shape.vocabulary, hidden}, plain);
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    const std::string prefix = fmt::format("blk.{}.", layer);
    add(prefix + "attn_norm.weight", {hidden}, ones);
    add(prefix + "attn_q.weight", {hidden, hidden}, plain);
    add(prefix + "attn_k.weight", {kv, hidden}, plain);
    add(prefix + "attn_v.weight", {kv, hidden}, plain);
    add(prefix + "attn_output.weight", {hidden, hidden}, residual);
    add(prefix + "ffn_norm.weight", {hidden}, ones);
    add(prefix + "ffn_gate.weight", {shape.feed_forward, hidden}, plain);
    add(prefix + "ffn_up.weight", {shape.feed_forward, hidden}, plain);
    add(prefix + "ffn_down.weight", {hidden, shape.feed_forward}, residual);
  }
  add("output_norm.weight", {hidden}, ones);
  if (!shape.tied_head) add("output.weight", {shape.vocabulary, hidden}, plain);
  return out;
}

void add_tokenizer(GgufPairs& pairs, std::uint32_t vocabulary) {
  constexpr std::int32_t kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6;
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types = {kUnknown, kControl, kControl};
  for (std::uint32_t byte = 0; byte < kByteTokens; ++byte) {
    tokens.push_back(fmt::format("<0x{:02X}>", byte));
    types.push_back(kByte);
  }
  tokens.emplace_back("\xe2\x96\x81");  // the space of SentencePiece
  while (tokens.size() < vocabulary) tokens.push_back(fmt::format("<filler-{}>", tokens.size()));
  types.resize(tokens.size(), kNormal);
  std::vector<float> scores(tokens.size(), 0.0f);
  for (std::size_t i = kLeastVocabulary; i < scores.size(); ++i) scores[i] = -static_cast<float>(i);
  pairs.set_string("tokenizer.ggml.model", "llama");
  pairs.set_strings("tokenizer.ggml.tokens", tokens);
  pairs.set_f32s("tokenizer.ggml.scores", scores);
  pairs.set_i32s("tokenizer.ggml.token_type", types);
  pairs.set_u32("tokenizer.ggml.unknown_token_id", 0);
  pairs.set_u32("tokenizer.ggml.bos_token_id", 1);
  pairs.set_u32("tokenizer.ggml.eos_token_id", 2);
  pairs.set_boolean("tokenizer.ggml.add_bos_token", true);
}

GgufPairs make_pairs(const SynthShape& shape) {
  GgufPairs pairs;
  pairs.set_string("general.architecture", "llama");
  pairs.set_string("general.name", fmt::format("synthetic {}", shape.name));
  pairs.set_u32("llama.context_length", shape.context);
  pairs.set_u32("llama.embedding_length", shape.hidden);
  pairs.set_u32("llama.block_count", shape.layers);
  pairs.set_u32("llama.feed_forward_length", shape.feed_forward);
  pairs.set_u32("llama.attention.head_count", shape.heads);
  pairs.set_u32("llama.attention.head_count_kv", shape.kv_heads);
  pairs.set_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  pairs.set_u32("llama.rope.dimension_count", shape.hidden / shape.heads);
  pairs.set_f32("llama.rope.freq_base", shape.rope_theta);
  pairs.set_u32("llama.vocab_size", shape.vocabulary);
  add_tokenizer(pairs, shape.vocabulary);
  return pairs;
}

void check_shape(const SynthShape& shape) {
  const auto require = [&](bool holds, std::string_view what) {
    if (!holds) fail(ErrorCode::usage, "shape {}: {}", shape.name, what);
  };
  require(shape.layers > 0 && shape.hidden > 0 && shape.heads > 0 && shape.kv_heads > 0 && shape.feed_forward > 0 &&
              shape.context > 0,
          "every dimension must be at least 1");
  require(shape.hidden % shape.heads == 0 && shape.hidden / shape.heads % 2 == 0,
          "the hidden size must be the number of heads times an even head size");
  require(shape.heads % shape.kv_heads == 0, "the number of heads must be a multiple of the key/value heads");
  require(shape.vocabulary >= kLeastVocabulary, "the vocabulary must have at least 260 tokens");
}

std::vector<TensorInfo> infos_of(const std::vector<SynthTensor>& tensors) {
  std::vector<TensorInfo> infos;
  for (const SynthTensor& tensor : tensors) infos.push_back(tensor.info);
  return infos;
}

/// The tensors in the encodings of the mix.
std::vector<SynthTensor> plan(const SynthOptions& options) {
  check_shape(options.shape);
  std::vector<SynthTensor> tensors = list_tensors(options.shape);
  const std::vector<Encoding> encodings = choose_encodings(options.mix, infos_of(tensors));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TensorInfo& info = tensors[i].info;
    info.encoding = encodings[i];
    info.bytes = stored_bytes(info.encoding, info.shape, info.name);
  }
  return tensors;
}

ElementReader generator(const Distribution& distribution, std::uint64_t key) {
  if (distribution.ones) return [](std::uint64_t, std::span<float> out) { std::fill(out.begin(), out.end(), 1.0f); };
  return [key, deviation = distribution.deviation](std::uint64_t first, std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = near_normal(mix_bits(key ^ (first + i))) * deviation;
  };
}

void write_tensors(StagedWriter& writer, const std::vector<SynthTensor>& tensors, std::uint64_t seed, ThreadPool& pool,
                   Progress* progress) {
  std::uint64_t done = 0;
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo& info = tensors[i].info;
    done += info.bytes;
    if (i < writer.written().size()) continue;                                    // done by an interrupted run
    const std::uint64_t key = mix_bits(mix_bits(seed) + i) & ~0xffff'ffff'ffull;  // the low 40 bits count elements
    bytes.resize(info.bytes);
    encode_tensor(generator(tensors[i].distribution, key), info.shape, info.encoding, bytes, pool);
    writer.write(bytes);
    if (progress) progress->update(done);
  }
}

ArtifactContent artifact_content(const SynthOptions& options, const GgufPairs& pairs,
                                 const std::vector<SynthTensor>& tensors) {
  if (!options.make_header) fail(ErrorCode::internal, "an artifact needs the manifest's header");
  const std::string metadata = layout_gguf("tokenizer.gguf", pairs, {}).files.front().header;
  ArtifactContent content;
  content.header = options.make_header(ModelSource::planned_gguf(options.output, metadata, infos_of(tensors)));
  content.tensors = infos_of(tensors);
  content.files = {{"tokenizer.gguf", metadata}};
  return content;
}

}  // namespace

std::span<const SynthShape> synth_shapes() {
  return kShapes;
}

const SynthShape& find_synth_shape(std::string_view name) {
  std::string names;
  for (const SynthShape& shape : kShapes) {
    if (shape.name == name) return shape;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", shape.name);
  }
  fail(ErrorCode::usage, "there is no shape \"{}\"; known are {}", printable(name), names);
}

std::uint64_t synth_bytes(const SynthOptions& options) {
  std::uint64_t total = 0;
  for (const SynthTensor& tensor : plan(options)) total += tensor.info.bytes;
  return total;
}

void synthesize(const SynthOptions& options, ThreadPool& pool, Progress* progress) {
  const std::vector<SynthTensor> tensors = plan(options);
  const GgufPairs pairs = make_pairs(options.shape);
  const std::string key = fmt::format("synthetic {} seed {}", options.shape.name, options.seed);
  if (options.format == OutputFormat::gguf) {
    StagedWriter writer(options.output, layout_gguf(options.output.filename().string(), pairs, infos_of(tensors)), key);
    write_tensors(writer, tensors, options.seed, pool, progress);
    writer.commit_file();
  } else if (options.format == OutputFormat::artifact) {
    ArtifactWriter writer(options.output, artifact_content(options, pairs, tensors), key);
    write_tensors(writer.staged(), tensors, options.seed, pool, progress);
    writer.finish(pool);
  } else {
    fail(ErrorCode::usage, "a synthetic model is written as gguf or artifact, not as {}", to_string(options.format));
  }
}

}  // namespace candor
