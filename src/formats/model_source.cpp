#include "formats/model_source.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/limits.h"
#include "formats/model_source_builder.h"

namespace candor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhatToGive =
    "give a .gguf file, a Hugging Face folder (config.json and safetensors), or an "
    "artifact folder (manifest.json and shards)";

bool has_file(const fs::path& folder, std::string_view name) {
  std::error_code error;
  const fs::file_status status = fs::status(folder / name, error);
  if (status.type() == fs::file_type::none) fail(ErrorCode::io, "{}: {}", (folder / name).string(), error.message());
  return fs::is_regular_file(status);
}

/// The name of some file in `folder` that ends in `extension`, or empty.
std::string find_by_extension(const fs::path& folder, std::string_view extension) {
  std::error_code error;
  std::string least;
  const fs::directory_iterator entries(folder, error);
  if (error) fail(ErrorCode::io, "{}: the folder cannot be read: {}", folder.string(), error.message());
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(extension) && (least.empty() || name < least)) least = name;
  }
  return least;
}

[[noreturn]] void refuse_folder(const fs::path& folder) {
  if (const std::string name = find_by_extension(folder, ".gguf"); !name.empty())
    fail(ErrorCode::format, "{}: a folder without config.json or manifest.json; it holds {}: open that file instead",
         folder.string(), printable(name));
  if (const std::string name = find_by_extension(folder, ".safetensors"); !name.empty())
    fail(ErrorCode::format, "{}: the folder holds {} but no config.json; fetch config.json of the same model",
         folder.string(), printable(name));
  fail(ErrorCode::format, "{}: the folder has neither config.json nor manifest.json; {}", folder.string(), kWhatToGive);
}

ModelSource open_folder(const fs::path& folder) {
  if (has_file(folder, "manifest.json")) return read_artifact_folder(folder);
  if (has_file(folder, "config.json")) return read_huggingface_folder(folder);
  refuse_folder(folder);
}

ModelSource open_file(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name == "config.json" || name == "manifest.json" || name.ends_with(".safetensors") ||
      name.ends_with(".safetensors.index.json"))
    fail(ErrorCode::usage, "{}: is one file of a model; give its folder, {}", path.string(),
         path.has_parent_path() ? path.parent_path().string() : ".");
  if (name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth") || name.ends_with(".ckpt"))
    fail(ErrorCode::unsupported, "{}: PyTorch pickles are not read; convert the weights to safetensors", path.string());
  return read_gguf_model(path);
}

}  // namespace

std::string_view to_string(SourceFormat format) {
  switch (format) {
    case SourceFormat::gguf:
      return "gguf";
    case SourceFormat::huggingface:
      return "huggingface";
    case SourceFormat::artifact:
      return "artifact";
  }
  return "unknown";
}

ModelSource ModelSource::open(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found)
    fail(ErrorCode::not_found, "{}: no such file or folder; {}", path.string(), kWhatToGive);
  if (error) fail(ErrorCode::io, "{}: {}", path.string(), error.message());
  return fs::is_directory(status) ? open_folder(path) : open_file(path);
}

ModelSource ModelSource::with_tensors(std::vector<TensorInfo> tensors) const {
  ModelSourceBuilder builder(format_, path_);
  builder.config() = config_;
  builder.generation_config() = generation_config_;
  builder.manifest() = manifest_;
  builder.share_gguf(gguf_);
  builder.tokenizer_json() = tokenizer_json_;
  builder.tokenizer_config() = tokenizer_config_;
  builder.sentencepiece_model() = sentencepiece_model_;
  builder.chat_template() = chat_template_;
  for (TensorInfo& tensor : tensors) {
    tensor.extents.clear();
    builder.add_tensor(std::move(tensor));
  }
  ModelSource planned = builder.finish();
  planned.origin_ = this;
  return planned;
}

void ModelSource::state_configuration(Json config, std::optional<std::string> tokenizer_config) {
  config_ = std::move(config);
  if (!tokenizer_config_) tokenizer_config_ = std::move(tokenizer_config);
}

ModelSource ModelSource::planned_gguf(const fs::path& path, std::string_view header, std::vector<TensorInfo> tensors) {
  ModelSourceBuilder builder(SourceFormat::gguf, path);
  builder.set_gguf(parse_gguf(std::as_bytes(std::span(header)), path.string()).metadata);
  for (TensorInfo& tensor : tensors) builder.add_tensor(std::move(tensor));
  return builder.finish();
}

std::string ModelSource::tokenizer_label() const {
  if (format_ == SourceFormat::gguf) return path_.string();
  if (gguf_) return (path_ / "tokenizer.gguf").string();
  return (path_ / (tokenizer_json_ ? "tokenizer.json" : "tokenizer.model")).string();
}

std::string ModelSource::chat_template_label() const {
  if (format_ == SourceFormat::gguf) return path_.string() + ": tokenizer.chat_template";
  constexpr const char* kOwnFile = "chat_template.jinja";
  if (has_file(path_, kOwnFile)) return (path_ / kOwnFile).string();
  return (path_ / (tokenizer_config_ ? "tokenizer_config.json" : "tokenizer.gguf")).string();
}

const TensorInfo* ModelSource::find(std::string_view name) const {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](std::uint32_t index, std::string_view wanted) { return tensors_[index].name < wanted; });
  return found == by_name_.end() || tensors_[*found].name != name ? nullptr : &tensors_[*found];
}

std::span<const std::byte> ModelSource::bytes(const TensorInfo& tensor) const {
  if (tensor.extents.size() != 1)
    fail(ErrorCode::internal, "tensor \"{}\" lies in {} pieces; copy_bytes joins them", printable(tensor.name),
         tensor.extents.size());
  const TensorExtent& extent = tensor.extents.front();
  return files_[extent.file].bytes().subspan(extent.offset, extent.size);
}

void ModelSource::copy_bytes(const TensorInfo& tensor, std::span<std::byte> out) const {
  if (out.size() != tensor.bytes)
    fail(ErrorCode::internal, "tensor \"{}\" has {} bytes, the buffer {}", printable(tensor.name), tensor.bytes,
         out.size());
  copy_bytes(tensor, 0, out);
}

namespace {

/// Calls `use` with each piece of `size` bytes of a tensor, from its byte `first` on: file, offset there, bytes.
template <typename Use>
void for_each_piece(const TensorInfo& tensor, std::uint64_t first, std::uint64_t size, Use use) {
  if (first > tensor.bytes || size > tensor.bytes - first)
    fail(ErrorCode::internal, "tensor \"{}\" has {} bytes; {} from {} on are asked for", printable(tensor.name),
         tensor.bytes, size, first);
  for (const TensorExtent& extent : tensor.extents) {
    const std::uint64_t skipped = std::min(first, extent.size);
    const std::uint64_t taken = std::min(size, extent.size - skipped);
    if (taken > 0) use(extent.file, extent.offset + skipped, taken);
    first -= skipped;
    size -= taken;
  }
}

}  // namespace

void ModelSource::copy_bytes(const TensorInfo& tensor, std::uint64_t first, std::span<std::byte> out) const {
  if (origin_) {
    const TensorInfo* stored = origin_->find(tensor.name);
    if (!stored || stored->bytes != tensor.bytes)
      fail(ErrorCode::internal, "tensor \"{}\" is not written yet", printable(tensor.name));
    origin_->copy_bytes(*stored, first, out);
    return;
  }
  for_each_piece(tensor, first, out.size(), [&](std::uint32_t file, std::uint64_t offset, std::uint64_t size) {
    std::memcpy(out.data(), files_[file].bytes().data() + offset, size);
    out = out.subspan(size);
  });
}

bool ModelSource::have_same_bytes(const TensorInfo& a, const TensorInfo& b) const {
  if (a.encoding != b.encoding || a.bytes != b.bytes) return false;
  if (origin_) {
    const TensorInfo* from_a = origin_->find(a.name);
    const TensorInfo* from_b = origin_->find(b.name);
    return from_a && from_b && origin_->have_same_bytes(*from_a, *from_b);
  }
  constexpr std::uint64_t kAtOnce = 1 << 20;
  std::vector<std::byte> left(std::min(a.bytes, kAtOnce));
  std::vector<std::byte> right(left.size());
  for (std::uint64_t done = 0; done < a.bytes; done += kAtOnce) {
    const std::uint64_t count = std::min(kAtOnce, a.bytes - done);
    copy_bytes(a, done, std::span(left).first(count));
    copy_bytes(b, done, std::span(right).first(count));
    if (std::memcmp(left.data(), right.data(), count) != 0) return false;
  }
  drop_pages(a);
  drop_pages(b);
  return true;
}

void ModelSource::drop_pages(const TensorInfo& tensor, std::uint64_t first, std::uint64_t size) const {
  for_each_piece(tensor, first, size, [&](std::uint32_t file, std::uint64_t offset, std::uint64_t count) {
    files_[file].drop_pages(offset, count);
  });
}

ModelSourceBuilder::ModelSourceBuilder(SourceFormat format, fs::path path) {
  source_.format_ = format;
  source_.path_ = std::move(path);
}

void ModelSourceBuilder::set_gguf(GgufMetadata metadata) {
  source_.gguf_ = std::make_shared<const GgufMetadata>(std::move(metadata));
}

std::uint32_t ModelSourceBuilder::add_file(MappedFile file) {
  if (source_.files_.size() == limits::shards)
    fail(ErrorCode::format, "{}: more than {} files", source_.path_.string(), limits::shards);
  source_.files_.push_back(std::move(file));
  return static_cast<std::uint32_t>(source_.files_.size() - 1);
}

void ModelSourceBuilder::add_tensors(std::vector<TensorInfo> tensors, std::uint32_t file) {
  for (TensorInfo& tensor : tensors) {
    for (TensorExtent& extent : tensor.extents) extent.file = file;
    add_tensor(std::move(tensor));
  }
}

ModelSource ModelSourceBuilder::finish() {
  if (source_.tensors_.size() > limits::tensors)
    fail(ErrorCode::format, "{}: {} tensors, more than the limit of {}", source_.path_.string(),
         source_.tensors_.size(), limits::tensors);
  check_extents();
  index_names();
  return std::move(source_);
}

void ModelSourceBuilder::check_extents() const {
  for (const TensorInfo& tensor : source_.tensors_) {
    for (const TensorExtent& extent : tensor.extents) {
      const std::uint64_t size = source_.files_.at(extent.file).size();
      if (extent.offset > size || extent.size > size - extent.offset)
        fail(ErrorCode::format, "{}: tensor \"{}\" needs {} bytes at offset {}, but the file has {}",
             source_.files_[extent.file].path().string(), printable(tensor.name), extent.size, extent.offset, size);
    }
  }
}

void ModelSourceBuilder::index_names() {
  const auto& tensors = source_.tensors_;
  auto& order = source_.by_name_;
  order.resize(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return tensors[a].name < tensors[b].name; });
  const auto same = [&](std::uint32_t a, std::uint32_t b) { return tensors[a].name == tensors[b].name; };
  const auto repeated = std::adjacent_find(order.begin(), order.end(), same);
  if (repeated != order.end())
    fail(ErrorCode::format, "{}: tensor \"{}\" occurs twice", source_.path_.string(),
         printable(tensors[*repeated].name));
}

std::optional<std::string> read_optional_file(const fs::path& folder, std::string_view name) {
  if (!has_file(folder, name)) return std::nullopt;
  return read_file(folder / name, limits::json_bytes);
}

}  // namespace candor
