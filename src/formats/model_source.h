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

  /// States the configuration of an artifact whose manifest says it in another way, and of its tokenizer.
  void state_configuration(Json config, std::optional<std::string> tokenizer_config);

  /// A GGUF model that is yet to be written: the metadata of `header`, a GGUF file without tensors that must live on,
  /// and tensors whose bytes lie nowhere. `path` is what it is called in messages.
  [[nodiscard]] static ModelSource planned_gguf(const std::filesystem::path& path, std::string_view header,
                                                std::vector<TensorInfo> tensors);

  [[nodiscard]] SourceFormat format() const { return format_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// The same facts with another tensor directory: a model that is yet to be written. Bytes are copied from this one's
  /// tensors, which must live on: of a tensor of the same name, so only what a conversion leaves as it is may be asked
  /// for.
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

  /// Where the tokenizer and the chat template stand, as messages about them begin: a file, or a GGUF key's file.
  [[nodiscard]] std::string tokenizer_label() const;
  [[nodiscard]] std::string chat_template_label() const;

  [[nodiscard]] const std::vector<TensorInfo>& tensors() const { return tensors_; }
  /// The tensor of that name, or nullptr. Logarithmic in the number of tensors.
  [[nodiscard]] const TensorInfo* find(std::string_view name) const;

  /// A tensor's bytes when they lie in one piece; no alignment is promised, so read through memcpy or unaligned loads.
  /// Throws Error(internal) if it has several extents.
  [[nodiscard]] std::span<const std::byte> bytes(const TensorInfo& tensor) const;
  /// Copies a tensor's bytes, from however many extents; `out` has tensor.bytes bytes.
  void copy_bytes(const TensorInfo& tensor, std::span<std::byte> out) const;
  /// The out.size() bytes of a tensor from its byte `first` on.
  void copy_bytes(const TensorInfo& tensor, std::uint64_t first, std::span<std::byte> out) const;
  /// Whether two tensors are the same values in the same encoding; of a model that is yet to be written, whether they
  /// will be.
  [[nodiscard]] bool have_same_bytes(const TensorInfo& a, const TensorInfo& b) const;
  /// Lets a tensor's bytes, or `size` of them from its byte `first` on, leave the memory of this process; they are read
  /// again when they are touched. Called with what has been copied, hashed or packed, so that no model is in memory
  /// twice.
  void drop_pages(const TensorInfo& tensor) const { drop_pages(tensor, 0, tensor.bytes); }
  void drop_pages(const TensorInfo& tensor, std::uint64_t first, std::uint64_t size) const;

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
  const ModelSource* origin_ = nullptr;  ///< of a model that is yet to be written
  std::vector<TensorInfo> tensors_;
  std::vector<std::uint32_t> by_name_;  ///< indices into tensors_, sorted by name
};

}  // namespace candor
