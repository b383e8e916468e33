// An artifact folder: manifest.json and the shards and files that it names; nothing else in the folder is read. Sizes
// of all files and digests of the small ones are checked here; the shards' digests on request (artifact_verify.h).
#include <algorithm>

#include "base/error.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "formats/file_name.h"
#include "formats/manifest.h"
#include "formats/model_source_builder.h"

namespace candor {
namespace {

namespace fs = std::filesystem;

std::string read_named_file(const fs::path& folder, const std::string& name) {
  auto text = read_optional_file(folder, name);
  if (!text)
    fail(ErrorCode::not_found, "{}: the file {} that manifest.json names is missing; restore it", folder.string(),
         printable(name));
  return std::move(*text);
}

/// The text of the file that `tensorsFile` names, if the manifest has it instead of tensors.
std::optional<std::string> read_external_tensors(const fs::path& folder, const std::string& manifest) {
  if (manifest.find("\"tensorsFile\"") == std::string::npos) return std::nullopt;
  const Json document = parse_json(manifest, (folder / "manifest.json").string());
  if (!document.is_object() || document.contains("tensors")) return std::nullopt;
  const auto name = document.find("tensorsFile");
  if (name == document.end() || !name->is_string()) return std::nullopt;
  check_plain_file_name(name->get_ref<const std::string&>(), (folder / "manifest.json").string() + ": tensorsFile");
  return read_named_file(folder, name->get<std::string>());
}

void map_shards(ModelSourceBuilder& builder, const fs::path& folder, const std::vector<ManifestShard>& shards) {
  for (const ManifestShard& shard : shards) {
    const fs::path path = folder / shard.filename;
    const std::uint32_t file = builder.add_file(MappedFile(path));
    if (builder.file(file).size() != shard.size)
      fail(ErrorCode::format, "{}: has {} bytes, but the manifest says {}; restore it", path.string(),
           builder.file(file).size(), shard.size);
  }
}

/// Reads a pinned file and checks its size and digest.
std::string read_pinned_file(const fs::path& folder, const ManifestFile& file) {
  std::string text = read_named_file(folder, file.name);
  if (text.size() != file.size)
    fail(ErrorCode::integrity, "{}: has {} bytes, but the manifest says {}; restore it", (folder / file.name).string(),
         text.size(), file.size);
  if (const std::string found = sha256_hex(text); found != file.sha256)
    fail(ErrorCode::integrity, "{}: its SHA-256 is {}, but the manifest says {}; restore it",
         (folder / file.name).string(), found, file.sha256);
  return text;
}

void read_tokenizer_metadata(ModelSourceBuilder& builder, const fs::path& path) {
  const std::uint32_t file = builder.add_file(MappedFile(path));
  GgufContent content = parse_gguf(builder.file(file).bytes(), path.string());
  if (!builder.chat_template())
    if (const auto text = content.metadata.string("tokenizer.chat_template"))
      builder.chat_template() = std::string(*text);
  builder.set_gguf(std::move(content.metadata));
}

void take_file(ModelSourceBuilder& builder, const fs::path& folder, const std::string& name, std::string text) {
  if (name == "tokenizer.json") builder.tokenizer_json() = std::move(text);
  if (name == "tokenizer_config.json") builder.tokenizer_config() = std::move(text);
  if (name == "tokenizer.model") builder.sentencepiece_model() = std::move(text);
  if (name == "chat_template.jinja") builder.chat_template() = std::move(text);
  if (name == "generation_config.json") builder.generation_config() = parse_json(text, (folder / name).string());
  if (name == "config.json") builder.config() = parse_json(text, (folder / name).string());
  if (name == "tokenizer.gguf") read_tokenizer_metadata(builder, folder / name);
}

/// An original artifact pins no files; its tokenizer section names one.
void take_unpinned_tokenizer(ModelSourceBuilder& builder, const fs::path& folder, const Json& document) {
  const auto tokenizer = document.find("tokenizer");
  if (tokenizer == document.end() || !tokenizer->is_object()) return;
  const auto take = [&](const char* field, std::optional<std::string>& text) {
    const auto name = tokenizer->find(field);
    if (name != tokenizer->end() && name->is_string() && !text)
      text = read_named_file(folder, name->get<std::string>());
  };
  take("file", builder.tokenizer_json());
  take("sentencepieceModel", builder.sentencepiece_model());
}

}  // namespace

ModelSource read_artifact_folder(const fs::path& folder) {
  const fs::path path = folder / "manifest.json";
  const std::string text = read_file(path, limits::json_bytes);
  const auto external = read_external_tensors(folder, text);
  Manifest manifest = parse_manifest(text, path.string(), external);
  ModelSourceBuilder builder(SourceFormat::artifact, folder);
  map_shards(builder, folder, manifest.shards);
  for (TensorInfo& tensor : manifest.tensors) builder.add_tensor(std::move(tensor));
  for (const ManifestFile& file : manifest.files) take_file(builder, folder, file.name, read_pinned_file(folder, file));
  if (!manifest.sealed) take_unpinned_tokenizer(builder, folder, manifest.document);
  if (!builder.chat_template() && builder.tokenizer_config())
    builder.chat_template() = chat_template_of(*builder.tokenizer_config(), folder / "tokenizer_config.json");
  builder.manifest() = std::move(manifest.document);
  return builder.finish();
}

}  // namespace candor
