// Models with random weights of a real model's shape, for benchmarks and tests of sizes that cannot be shipped. Every
// weight is a function of (seed, tensor, position): the same options give the same bytes on any machine and with any
// number of threads. Values are near normal, scaled as trained models start, so that activations stay finite. The
// tokenizer has byte tokens and fillers: it encodes any text, and means nothing. Not a goal: text that reads well.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "base/json.h"
#include "base/progress.h"
#include "base/thread_pool.h"
#include "formats/convert.h"
#include "formats/model_source.h"
#include "formats/quant_mix.h"

namespace candor {

/// A Llama-architecture model; head size is hidden / heads.
struct SynthShape {
  std::string_view name;
  std::uint32_t layers = 0;
  std::uint32_t hidden = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t feed_forward = 0;
  std::uint32_t vocabulary = 0;  ///< at least 260: three control tokens, 256 bytes, a space
  std::uint32_t context = 0;
  float rope_theta = 10000.0f;
  bool tied_head = false;
};

/// The shapes known by name, smallest first.
[[nodiscard]] std::span<const SynthShape> synth_shapes();
/// Throws Error(usage) listing the names if there is none such.
[[nodiscard]] const SynthShape& find_synth_shape(std::string_view name);

struct SynthOptions {
  std::filesystem::path output;  ///< a .gguf file or an artifact folder; must not exist
  OutputFormat format = OutputFormat::gguf;
  SynthShape shape;
  QuantMix mix = QuantMix::q8_0;  ///< `keep` means f32
  std::uint64_t seed = 0;
  std::function<Json(const ModelSource& planned)> make_header;  ///< for artifacts, as ConvertOptions has it
};

/// Bytes of all tensors; the total for its progress.
[[nodiscard]] std::uint64_t synth_bytes(const SynthOptions& options);

/// Throws Error(usage) for safetensors, a shape that is none, or an output that exists.
void synthesize(const SynthOptions& options, ThreadPool& pool, Progress* progress = nullptr);

}  // namespace candor
