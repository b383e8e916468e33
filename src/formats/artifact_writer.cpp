#include "formats/artifact_writer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "formats/file_name.h"
#include "formats/manifest.h"

namespace candor {
namespace {

std::vector<TensorInfo> with_sizes(std::vector<TensorInfo> tensors) {
  for (TensorInfo& tensor : tensors)
    tensor.bytes = padded_bytes(tensor.encoding, tensor.shape, tensor.layout,
                                fmt::format("tensor \"{}\"", printable(tensor.name)));
  return tensors;
}

/// Roles by tensor name from a header's `tensors`; where it has none, by name.
class Roles {
 public:
  explicit Roles(const Json& header) {
    const auto tensors = header.find("tensors");
    if (tensors == header.end() || !tensors->is_object()) return;
    for (const auto& [name, entry] : tensors->items())
      if (entry.is_object() && entry.contains("role")) roles_.emplace(name, entry["role"].get<std::string>());
  }

  [[nodiscard]] std::string of(const std::string& name) const {
    const auto found = roles_.find(name);
    return found == roles_.end() ? std::string(tensor_role(name)) : found->second;
  }

 private:
  std::unordered_map<std::string, std::string> roles_;
};

Json tensor_entry(const TensorInfo& tensor, const std::string& role, const std::string& sha256) {
  Json entry = Json::object();
  if (tensor.extents.size() == 1) {
    entry["shard"] = tensor.extents.front().file;
    entry["offset"] = tensor.extents.front().offset;
  } else {
    Json spans = Json::array();
    for (const TensorExtent& extent : tensor.extents)
      spans.push_back({{"shardIndex", extent.file}, {"offset", extent.offset}, {"size", extent.size}});
    entry["spans"] = std::move(spans);
  }
  entry["size"] = tensor.bytes;
  entry["shape"] = tensor.shape;
  entry["dtype"] = dtype_name(tensor.encoding);
  entry["role"] = role;
  if (tensor.layout == TensorLayout::columns) entry["layout"] = "col";
  if (tensor.layout == TensorLayout::rows && tensor.encoding == Encoding::q4_k) entry["layout"] = "row";
  entry["sha256"] = sha256;
  return entry;
}

Json tensor_entries(const OutputLayout& layout, const std::vector<WrittenTensor>& written, const Roles& roles) {
  Json entries = Json::object();
  // Names are unique, so entries are appended without the object's linear look-up.
  auto& members = static_cast<std::vector<Json::object_t::value_type>&>(entries.get_ref<Json::object_t&>());
  for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
    const TensorInfo& tensor = layout.tensors[i];
    members.emplace_back(tensor.name, tensor_entry(tensor, roles.of(tensor.name), written[i].sha256));
  }
  return entries;
}

Json shard_entries(const StagedWriter& writer, ThreadPool& pool) {
  const std::vector<OutputFile>& files = writer.layout().files;
  std::vector<MappedFile> shards;
  for (std::size_t i = 0; i < files.size(); ++i) shards.emplace_back(writer.staged_path(i));
  std::vector<std::string> digests(files.size());
  pool.parallel_for(static_cast<std::uint32_t>(files.size()), [&](std::uint32_t i, unsigned) {
    digests[i] = sha256_hex(shards[i].bytes());
    shards[i].drop_pages(0, shards[i].size());
  });
  Json entries = Json::array();
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    entries.push_back(
        {{"index", i}, {"filename", files[i].name}, {"size", files[i].size}, {"hash", digests[i]}, {"offset", offset}});
    offset += files[i].size;
  }
  return entries;
}

Json file_entries(const std::vector<SideFile>& files) {
  Json entries = Json::object();
  for (const SideFile& file : files)
    entries[file.name] = {{"size", file.content.size()}, {"sha256", sha256_hex(file.content)}};
  return entries;
}

const SideFile* find_file(std::span<const SideFile> files, std::string_view name) {
  const auto found = std::find_if(files.begin(), files.end(), [&](const SideFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

}  // namespace

Json tokenizer_section(std::span<const SideFile> files) {
  if (const SideFile* file = find_file(files, "tokenizer.json")) {
    Json section{{"type", "bundled"}, {"file", file->name}};
    const nlohmann::json content = parse_json_sorted(file->content, file->name);
    const auto model = content.is_object() ? content.find("model") : content.end();
    if (content.is_object() && model != content.end() && model->is_object() && model->contains("vocab"))
      section["vocabSize"] = (*model)["vocab"].size();
    return section;
  }
  if (const SideFile* file = find_file(files, "tokenizer.model"))
    return {{"type", "sentencepiece"}, {"sentencepieceModel", file->name}};
  if (const SideFile* file = find_file(files, "tokenizer.gguf")) return {{"type", "gguf"}, {"file", file->name}};
  return nullptr;
}

ArtifactWriter::ArtifactWriter(const std::filesystem::path& folder, ArtifactContent content, std::string_view key)
    : header_(std::move(content.header)),
      files_(std::move(content.files)),
      writer_(folder, layout_shards(with_sizes(std::move(content.tensors)), content.shard_bytes), key) {
  for (const SideFile& file : files_) check_plain_file_name(file.name, "artifact file");
}

Json ArtifactWriter::make_manifest(ThreadPool& pool) const {
  Json manifest = Json::object();
  const Roles roles(header_);
  for (const auto& [key, value] : header_.items())
    if (key != "tensors" && key != "manifestDigest") manifest[key] = value;
  manifest["shards"] = shard_entries(writer_, pool);
  manifest["tensors"] = tensor_entries(writer_.layout(), writer_.written(), roles);
  manifest["totalSize"] = writer_.layout().total_bytes();
  manifest["hashAlgorithm"] = "sha256";
  if (const Json tokenizer = tokenizer_section(files_); !tokenizer.is_null()) manifest["tokenizer"] = tokenizer;
  manifest["files"] = file_entries(files_);
  seal_manifest(manifest);
  return manifest;
}

Json ArtifactWriter::finish(ThreadPool& pool) {
  Json manifest = make_manifest(pool);
  const std::string text = to_js_json(manifest, 2);
  (void)parse_manifest(text, "manifest.json");  // what the caller's header lacks is found before anything appears
  for (const SideFile& file : files_) writer_.add_file(file.name, file.content);
  writer_.add_file("manifest.json", text);
  writer_.commit_folder();
  return manifest;
}

void replace_manifest(const std::filesystem::path& folder, Json manifest) {
  const std::filesystem::path path = folder / "manifest.json";
  if (manifest.contains("manifestDigest")) seal_manifest(manifest);
  const std::string text = to_js_json(manifest, 2);
  (void)parse_manifest(text, path.string());
  write_file_atomically(path, text);
}

}  // namespace candor
