// ModelSource: what a model's files say, before anything decides how to run it. One value for a GGUF file (or its split
// parts), a Hugging Face folder, and an artifact folder (manifest.json + shards). Files are mapped, never read whole;
// every extent is checked against the size of its file before the value exists. Not a goal: knowing model families or
// kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "formats/gguf.h"
#include "formats/tensor.h"

namespace candor {

enum class SourceFormat { gguf, huggingface, artifact };

[[nodiscard]] std::string_view to_string(SourceFormat format);

class ModelSource {
 public:
  /// Opens a .gguf file (for split models any part), a folder with config.json and safetensors, or an artifact folder.
  /// Throws Error: not_found, format (which check failed, the tensor and the numbers), unsupported (big-endian, pickle,
  /// …).
  [[nodiscard]] static ModelSource open(const std::filesystem::path& path);

  [[nodiscard]] SourceFormat format() const { return format_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// The same facts with another tensor directory whose bytes lie nowhere: a model that is yet to be written. It reads
  /// this one's metadata, so this one must live on.
  [[nodiscard]] ModelSource with_tensors(std::vector<TensorInfo> tensors) const;

  /// config.json of a Hugging Face folder, or the one an artifact was made from; else null.
  [[nodiscard]] const Json& config() const { return config_; }
  /// generation_config.json, or null.
  [[nodiscard]] const Json& generation_config() const { return generation_config_; }
  /// manifest.json of an artifact, or null.
  [[nodiscard]] const Json& manifest() const { return manifest_; }
  /// Metadata of a GGUF file (of its first part) or of an artifact's tokenizer.gguf; else nullptr.
  [[nodiscard]] const GgufMetadata* gguf() const { return gguf_.get(); }

  /// Texts of the tokenizer files that a folder holds; absent for GGUF, whose tokenizer is in its metadata.
  [[nodiscard]] const std::optional<std::string>& tokenizer_json() const { return tokenizer_json_; }
  [[nodiscard]] const std::optional<std::string>& tokenizer_config() const { return tokenizer_config_; }
  [[nodiscard]] const std::optional<std::string>& sentencepiece_model() const { return sentencepiece_model_; }
  /// The Jinja source of the chat template: chat_template.jinja, else tokenizer_config.json's, an artifact's, or GGUF's
  /// tokenizer.chat_template (several named templates: "default").
  [[nodiscard]] const std::optional<std::string>& chat_template() const { return chat_template_; }

  [[nodiscard]] const std::vector<TensorInfo>& tensors() const { return tensors_; }
  /// The tensor of that name, or nullptr. Logarithmic in the number of tensors.
  [[nodiscard]] const TensorInfo* find(std::string_view name) const;

  /// A tensor's bytes when they lie in one piece; no alignment is promised, so read through memcpy or unaligned loads.
  /// Throws Error(internal) if it has several extents.
  [[nodiscard]] std::span<const std::byte> bytes(const TensorInfo& tensor) const;
  /// Copies a tensor's bytes, from however many extents; `out` has tensor.bytes bytes.
  void copy_bytes(const TensorInfo& tensor, std::span<std::byte> out) const;

  [[nodiscard]] const std::vector<MappedFile>& files() const { return files_; }

 private:
  friend class ModelSourceBuilder;  // model_source_builder.h: readers fill the fields, then extents and names are
                                    // checked

  SourceFormat format_ = SourceFormat::gguf;
  std::filesystem::path path_;
  Json config_;
  Json generation_config_;
  Json manifest_;
  std::shared_ptr<const GgufMetadata> gguf_;
  std::optional<std::string> tokenizer_json_;
  std::optional<std::string> tokenizer_config_;
  std::optional<std::string> sentencepiece_model_;
  std::optional<std::string> chat_template_;
  std::vector<MappedFile> files_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::uint32_t> by_name_;  ///< indices into tensors_, sorted by name
};

}  // namespace candor
