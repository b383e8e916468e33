// How the three readers make a ModelSource: fill its fields, add files and tensors, finish. Private to src/formats.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "formats/model_source.h"

namespace candor {

class ModelSourceBuilder {
 public:
  ModelSourceBuilder(SourceFormat format, std::filesystem::path path);

  Json& config() { return source_.config_; }
  Json& generation_config() { return source_.generation_config_; }
  Json& manifest() { return source_.manifest_; }
  std::optional<std::string>& tokenizer_json() { return source_.tokenizer_json_; }
  std::optional<std::string>& tokenizer_config() { return source_.tokenizer_config_; }
  std::optional<std::string>& sentencepiece_model() { return source_.sentencepiece_model_; }
  std::optional<std::string>& chat_template() { return source_.chat_template_; }
  void set_gguf(GgufMetadata metadata);
  void share_gguf(std::shared_ptr<const GgufMetadata> metadata) { source_.gguf_ = std::move(metadata); }

  /// Returns the file's index for TensorExtent::file.
  std::uint32_t add_file(MappedFile file);
  [[nodiscard]] const MappedFile& file(std::uint32_t index) const { return source_.files_[index]; }
  void add_tensor(TensorInfo tensor) { source_.tensors_.push_back(std::move(tensor)); }
  /// Adds tensors whose extents have file = 0 as tensors of `file`.
  void add_tensors(std::vector<TensorInfo> tensors, std::uint32_t file);

  /// Checks that there are tensors, that names differ and that every extent lies inside its file; gives the value up.
  [[nodiscard]] ModelSource finish();

 private:
  void check_extents() const;
  void index_names();

  ModelSource source_;
};

/// The text of `folder`/`name`, or nothing if there is no such file.
[[nodiscard]] std::optional<std::string> read_optional_file(const std::filesystem::path& folder, std::string_view name);

[[nodiscard]] ModelSource read_gguf_model(const std::filesystem::path& path);
[[nodiscard]] ModelSource read_huggingface_folder(const std::filesystem::path& folder);
[[nodiscard]] ModelSource read_artifact_folder(const std::filesystem::path& folder);

/// The chat template that a tokenizer_config.json holds (of several, "default"); nothing if it has none.
[[nodiscard]] std::optional<std::string> chat_template_of(const std::string& tokenizer_config,
                                                          const std::filesystem::path& path);

}  // namespace candor
