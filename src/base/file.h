// Files: read-only maps that report a file shrinking under them, whole-file reads with a cap, and writes that are
// either complete or absent. Not a goal: streaming reads; models are mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace candor {

/// A file mapped read-only. Its size is that at opening; the map stays valid when the object moves.
class MappedFile {
 public:
  /// Throws Error(not_found) or Error(io), naming the path. A directory or an empty file is an Error(format).
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Lets the whole pages among these bytes leave this process's memory; they are read again when they are touched.
  void drop_pages(std::uint64_t offset, std::uint64_t size) const;

 private:
  void release() noexcept;

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Makes the process end with one line and the exit status of ErrorCode::io when a mapped file shrinks while it is read
/// (SIGBUS inside a MappedFile). Programs call it once at start; libraries leave signals to their host.
void install_map_fault_handler();

/// The whole of a text or data file. Throws Error(not_found), Error(io), or Error(format) above `limit` bytes.
[[nodiscard]] std::string read_file(const std::filesystem::path& path, std::uint64_t limit);

/// Writes `content` to `path` completely or not at all: a temporary file beside it, synced, then renamed over it.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace candor
