// Writes an artifact folder: shards by StagedWriter, then the pinned files and the sealed manifest last, so that a
// folder with a manifest is a whole one. What the manifest says of the model (architecture, inference, stop tokens,
// roles) is the caller's; where the bytes lie and every digest is filled in here.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/thread_pool.h"
#include "formats/staged_writer.h"

namespace candor {

/// A small file to be kept beside the shards and pinned: tokenizer.json, tokenizer_config.json, tokenizer.model,
/// chat_template.jinja, generation_config.json, tokenizer.gguf.
struct SideFile {
  std::string name;
  std::string content;
};

struct ArtifactContent {
  /// manifest.json without shards, totalSize, hashAlgorithm, files, tokenizer and manifestDigest. Of `tensors`
  /// (optional) only each entry's role is read; other roles come from names.
  Json header;
  std::vector<TensorInfo> tensors;  ///< name, encoding, shape, layout; in the order they will be written
  std::vector<SideFile> files;
  std::uint64_t shard_bytes = kShardBytes;
};

class ArtifactWriter {
 public:
  /// As StagedWriter; `key` tells sources and settings apart when an interrupted run is continued.
  ArtifactWriter(const std::filesystem::path& folder, ArtifactContent content, std::string_view key);

  /// Takes the tensors' bytes. Only finish() commits.
  [[nodiscard]] StagedWriter& staged() { return writer_; }

  /// Hashes the shards as they lie on the disk, writes the files and the manifest, and makes the folder appear. Returns
  /// the manifest.
  Json finish(ThreadPool& pool);

 private:
  [[nodiscard]] Json make_manifest(ThreadPool& pool) const;

  Json header_;
  std::vector<SideFile> files_;
  StagedWriter writer_;
};

/// Replaces the manifest of an artifact whose other files stay as they are; seals it if it was sealed. The old one
/// stays if the new one does not pass the checks or cannot be written.
void replace_manifest(const std::filesystem::path& folder, Json manifest);

/// The `tokenizer` section for these files: bundled (tokenizer.json), sentencepiece (tokenizer.model) or gguf
/// (tokenizer.gguf); null without any.
[[nodiscard]] Json tokenizer_section(std::span<const SideFile> files);

}  // namespace candor
