#include "engine/tokenizer_file.h"

#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "engine/engine.h"
#include "formats/gguf.h"
#include "formats/model_source.h"

namespace candor {
namespace {

std::unique_ptr<Tokenizer> from_json_file(const std::filesystem::path& path) {
  const auto config = path.parent_path() / "tokenizer_config.json";
  std::error_code ignored;
  const bool has_config = std::filesystem::is_regular_file(config, ignored);
  return load_tokenizer_json(read_file(path, limits::json_bytes),
                             has_config ? read_file(config, limits::json_bytes) : std::string(), path.string());
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& path) {
  const auto extension = path.extension();
  if (extension == ".json") return from_json_file(path);
  if (extension == ".model") {
    const MappedFile file(path);
    return load_sentencepiece_model(file.bytes(), path.string());
  }
  std::unique_ptr<Tokenizer> tokenizer;
  if (extension == ".gguf") {
    const MappedFile file(path);
    const GgufContent content = parse_gguf(file.bytes(), path.string());
    if (content.metadata.contains("tokenizer.ggml.model")) return load_tokenizer_gguf(content.metadata, path.string());
  } else {
    tokenizer = load_tokenizer(ModelSource::open(path));
  }
  if (!tokenizer) fail(ErrorCode::unsupported, "{}: the model's files hold no tokenizer", path.string());
  return tokenizer;
}

}  // namespace candor
