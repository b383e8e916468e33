// Writes a model of known layout, tensor by tensor, so that it appears under its name complete or not at all, and so
// that an interrupted run goes on where it stopped. Everything lies in TARGET.partial, with a journal of the tensors
// that are done and their digests; committing syncs it and renames it. Memory: one tensor, the caller's. Not a goal:
// changing a model that exists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "formats/output_layout.h"

namespace candor {

/// A tensor that has been written.
struct WrittenTensor {
  std::string sha256;  ///< of its bytes
  Json note;           ///< the caller's, kept in the journal
};

class StagedWriter {
 public:
  /// Starts, or goes on with what a run with the same `key` and layout left. Throws Error(usage) if `target` exists or
  /// another process is writing it, Error(resource) if the disk has too little space.
  StagedWriter(std::filesystem::path target, OutputLayout layout, std::string_view key);
  ~StagedWriter();
  StagedWriter(const StagedWriter&) = delete;
  StagedWriter& operator=(const StagedWriter&) = delete;

  [[nodiscard]] const OutputLayout& layout() const { return layout_; }
  /// Those done so far, the ones of an interrupted run included; the next to be written is layout().tensors[size()].
  [[nodiscard]] const std::vector<WrittenTensor>& written() const { return written_; }

  /// Writes the next tensor whole. Throws Error(io), Error(internal) if the size is not the layout's.
  void write(std::span<const std::byte> bytes, Json note = nullptr);

  /// Where the file of this index is being written.
  [[nodiscard]] std::filesystem::path staged_path(std::size_t file) const;
  /// Adds a small file to the folder.
  void add_file(std::string_view name, std::string_view content);

  /// Makes the folder of all files appear as the target. All tensors must have been written.
  void commit_folder();
  /// Makes the layout's only file appear as the target.
  void commit_file();

 private:
  void start(const std::string& heading);
  void resume();
  [[nodiscard]] bool is_intact(const TensorInfo& tensor, const std::string& digest) const;
  void create_files() const;
  void append_journal(const std::string& line);
  void finish_staging();

  std::filesystem::path target_;
  std::filesystem::path staging_;
  OutputLayout layout_;
  std::vector<WrittenTensor> written_;
  int journal_ = -1;
};

}  // namespace candor
