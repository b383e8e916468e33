// Content digests: what a kernel ref pins. The digest of a kernel covers its source text and nothing else, so that the
// same source has the same digest on every machine, and any change to it, a comment's included, has another.
//
// The bytes that are hashed with SHA-256, for a kernel (file, entry), where text means the file's bytes with every
// CR LF replaced by LF and nothing else changed:
//   1. the text of the file, whose path is relative to src/kernels;
//   2. unless the file ends in ".wgsl": for each project header it includes, directly or through other headers, in
//      ascending byte order of PATH, the bytes "\n@@file:" PATH "\n" and then the header's text. PATH is relative to
//      src/kernels for a header inside it, otherwise relative to src. A project header is a file named by a line
//      `#include "…"` that exists under src, looked for beside the including file first and then from src; whether the
//      preprocessor would reach the line does not matter. Each header counts once, the file itself not at all;
//   3. the bytes "\n@@entry:" and the entry's name.
// Not covered: system headers, the compiler and its flags; a receipt names the build instead.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace candor::kernels {

/// Computes content digests of the kernels under one `src` folder. Files are read once.
class ContentDigester {
 public:
  /// `source_directory` is the `src` folder.
  explicit ContentDigester(const std::filesystem::path& source_directory);

  /// 64 lower-case hexadecimal digits. `file` is relative to src/kernels.
  /// Throws Error(not_found) if it does not exist, Error(format) if it lies outside of src.
  [[nodiscard]] std::string digest(std::string_view file, std::string_view entry);

  /// All files read so far.
  [[nodiscard]] std::set<std::filesystem::path> files_read() const;

 private:
  struct Source {
    std::string text;
    std::set<std::filesystem::path> includes;  // project headers named in it
  };

  const Source& read(const std::filesystem::path& path);
  [[nodiscard]] std::set<std::filesystem::path> project_includes(const std::filesystem::path& path,
                                                                 std::string_view text) const;
  [[nodiscard]] bool is_inside(const std::filesystem::path& path) const;
  [[nodiscard]] std::string display(const std::filesystem::path& path) const;
  [[nodiscard]] std::set<std::filesystem::path> headers_of(const std::filesystem::path& file);

  std::filesystem::path source_;   // absolute, normal
  std::filesystem::path kernels_;  // source_ / "kernels"
  std::unordered_map<std::string, Source> sources_;
};

}  // namespace candor::kernels
