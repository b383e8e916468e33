// Conversion: a model from any format to an artifact, a GGUF file or a safetensors folder, its matrices re-encoded by a
// mix. Tensors are read, encoded and written one at a time; an interrupted conversion goes on where it stopped; the
// output appears only when it is complete. What depends on model families or kernels comes from the caller: the
// manifest's header, and for GGUF made of another format the names, orders and metadata.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/progress.h"
#include "base/thread_pool.h"
#include "formats/gguf_writer.h"
#include "formats/model_source.h"
#include "formats/output_layout.h"
#include "formats/quant_map.h"
#include "formats/quant_mix.h"
#include "formats/tensor_edit.h"

namespace candor {

enum class OutputFormat : std::uint8_t { artifact, gguf, safetensors };

[[nodiscard]] std::string_view to_string(OutputFormat format);
[[nodiscard]] std::optional<OutputFormat> parse_output_format(std::string_view name);

/// A vector that the output has and the source has not: f32.
struct AddedTensor {
  std::string name;
  std::vector<float> values;
};

struct ConvertOptions {
  std::filesystem::path output;  ///< a folder, or for GGUF a file; must not exist
  OutputFormat format = OutputFormat::artifact;
  QuantMix mix = QuantMix::keep;
  QuantMap map;  ///< over the mix; patterns of names as the source has them, or as the output will
  /// Tensors in block encodings are decoded and encoded anew only if this is set: it loses precision twice.
  bool requantize = false;
  std::uint64_t shard_bytes = kShardBytes;  ///< artifacts

  /// For artifacts: the manifest's header (artifact_writer.h) for the model as it will be written. If it has `tensors`,
  /// those it leaves out are left out.
  std::function<Json(const ModelSource& planned)> make_header;
  /// Called for each tensor; nothing means unchanged.
  std::function<std::optional<TensorEdit>(const TensorInfo&)> edit;
  std::vector<AddedTensor> added;  ///< after the source's tensors
  /// For GGUF: the metadata. Needed unless the source has its own.
  std::optional<GgufPairs> pairs;
};

struct TensorReport {
  std::string name;
  Encoding from = Encoding::f32;
  Encoding to = Encoding::f32;
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;
  std::optional<EncodingStats> stats;  ///< nothing where the bytes were copied
};

struct ConvertReport {
  std::filesystem::path output;
  std::vector<TensorReport> tensors;
  std::size_t resumed = 0;            ///< tensors that an interrupted run had done
  std::vector<std::string> left_out;  ///< tensors of the source that the manifest does not have

  [[nodiscard]] std::uint64_t bytes_before() const;
  [[nodiscard]] std::uint64_t bytes_after() const;
};

[[nodiscard]] Json to_json(const ConvertReport& report);

/// Bytes that convert will write in tensors; the total for its progress. The same errors as convert's first ones.
[[nodiscard]] std::uint64_t planned_bytes(const ModelSource& source, const ConvertOptions& options);

/// Throws Error(usage) for options that contradict each other or an output that exists; Error(unsupported) for an
/// encoding that the format cannot hold, or a second quantization not asked for; Error(format) for values that are not
/// finite in a tensor to be quantized; Error(resource), Error(io).
ConvertReport convert(const ModelSource& source, const ConvertOptions& options, ThreadPool& pool,
                      Progress* progress = nullptr);

}  // namespace candor
