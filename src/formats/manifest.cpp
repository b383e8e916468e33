#include "formats/manifest.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "base/js_value.h"
#include "base/limits.h"
#include "formats/file_name.h"
#include "formats/manifest_checks.h"

namespace candor {
namespace {

using js::Value;

constexpr std::string_view kDigestField = "manifestDigest";
constexpr std::size_t kDigestDigits = 64;

bool is_digest(Value value) {
  if (!js::is_string(value)) return false;
  const auto& text = value->get_ref<const std::string&>();
  return text.size() == kDigestDigits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string upper_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

Value shard_name(const Json& entry) {
  return js::coalesce(js::get(&entry, "filename"), js::get(&entry, "fileName"));
}
Value shard_digest(const Json& entry) {
  return js::coalesce(js::get(&entry, "hash"), js::get(&entry, "blake3"));
}

/// Reads what the original's checks have let through, and makes the checks that it leaves out.
class Reader {
 public:
  Reader(Manifest& manifest, const Json& tensors, std::string_view label)
      : manifest_(manifest), document_(manifest.document), tensors_(tensors), label_(label) {}

  void read() {
    check_as_original(document_, tensors_, failures_);
    refuse_if_failed();
    manifest_.sealed = document_.contains(kDigestField);
    if (!manifest_.sealed && document_.contains("files"))
      fail(ErrorCode::integrity, "{}: {} is missing, but what the manifest says is pinned by it; restore the file",
           label_, kDigestField);
    read_shards();
    read_tensors();
    read_files();
    check_groups();
    refuse_if_failed();
    check_no_overlap(manifest_.tensors, label_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    failures_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void refuse_if_failed() const {
    if (failures_.empty()) return;
    std::string list;
    for (const std::string& failure : failures_) list += "\n  - " + failure;
    fail(ErrorCode::format, "{}: Invalid manifest:{}", label_, list);
  }

  void read_shards() {
    const Json& shards = document_["shards"];
    if (shards.size() > limits::shards)
      fail(ErrorCode::format, "{}: {} shards, more than the limit of {}", label_, shards.size(), limits::shards);
    for (std::size_t i = 0; i < shards.size(); ++i) check_shard(shards[i], i);
    refuse_if_failed();
    manifest_.shards = manifest_shards(document_);
    std::vector<std::string_view> names;
    for (const ManifestShard& shard : manifest_.shards) names.push_back(shard.filename);
    std::sort(names.begin(), names.end());
    const auto repeated = std::adjacent_find(names.begin(), names.end());
    if (repeated != names.end()) add("Two shards have the filename \"{}\"", printable(*repeated));
  }

  void check_shard(const Json& entry, std::size_t position) {
    const Value name = shard_name(entry);
    if (!is_plain_file_name(name->get_ref<const std::string&>()))
      add("Shard {} has invalid filename: \"{}\" is not the name of a file in the same folder", position,
          printable(name->get_ref<const std::string&>()));
    const Value size = js::get(&entry, "size");
    if (!size->is_number_unsigned())
      add("Shard {} has invalid size: {} is not a whole number", position, js::to_string(size));
    if (!is_digest(shard_digest(entry)))
      add("Shard {} has invalid hash: not 64 lower-case hexadecimal digits", position);
    const Value algorithm = js::get(&entry, "hashAlgorithm");
    if (!js::nullish(algorithm) && !js::strict_equal(algorithm, "sha256") && !js::strict_equal(algorithm, "blake3"))
      add("Shard {} has invalid hashAlgorithm: {}", position, printable(js::to_string(algorithm)));
  }

  void read_tensors() {
    if (!tensors_.is_object()) {
      add("tensors must be an object");
      return;
    }
    if (tensors_.size() > limits::tensors)
      fail(ErrorCode::format, "{}: {} tensors, more than the limit of {}", label_, tensors_.size(), limits::tensors);
    manifest_.tensors.reserve(tensors_.size());
    for (const auto& [name, entry] : tensors_.items()) {
      try {
        manifest_.tensors.push_back(read_tensor(name, entry));
      } catch (const Error& error) {
        failures_.emplace_back(error.what());
      }
    }
  }

  TensorInfo read_tensor(const std::string& name, const Json& entry) const {
    const std::string what = fmt::format("Tensor \"{}\"", printable(name));
    if (name.empty() || name.size() > limits::name_bytes || name.find('\0') != std::string::npos)
      fail(ErrorCode::format, "{} has an invalid name", what);
    TensorInfo tensor;
    tensor.name = name;
    tensor.encoding = read_dtype(entry, what);
    tensor.shape = read_shape(entry, what);
    tensor.bytes = whole_number(js::get(&entry, "size"), "size", what);
    tensor.layout = read_layout(entry, tensor, what);
    tensor.extents = read_extents(entry, tensor, what);
    tensor.sha256 = read_tensor_digest(entry, what);
    return tensor;
  }

  static Encoding read_dtype(const Json& entry, const std::string& what) {
    const Value dtype = js::get(&entry, "dtype");
    const auto encoding = js::is_string(dtype) ? parse_dtype(dtype->get_ref<const std::string&>()) : std::nullopt;
    if (!encoding) fail(ErrorCode::format, "{} has the unknown dtype {}", what, printable(js::to_string(dtype)));
    return *encoding;
  }

  static std::vector<std::uint64_t> read_shape(const Json& entry, const std::string& what) {
    const Value shape = js::get(&entry, "shape");
    if (!js::is_array(shape) || shape->size() > limits::safetensors_rank)
      fail(ErrorCode::format, "{} has no shape of at most {} dimensions", what, limits::safetensors_rank);
    std::vector<std::uint64_t> out;
    for (const Json& dimension : *shape) {
      if (!dimension.is_number_unsigned() || dimension == 0)
        fail(ErrorCode::format, "{} has the dimension {}", what, printable(js::to_string(&dimension)));
      out.push_back(dimension.get<std::uint64_t>());
    }
    return out;
  }

  static std::uint64_t whole_number(Value value, std::string_view field, const std::string& what) {
    if (!value || !value->is_number_unsigned())
      fail(ErrorCode::format, "{} has {} {}, which is not a whole number", what, field,
           printable(js::to_string(value)));
    return value->get<std::uint64_t>();
  }

  /// The layout whose size is the tensor's. A tensor whose rows are padded by rule, but whose size is that of one run,
  /// is flat: the original's converter writes so what is not a matrix.
  static TensorLayout read_layout(const Json& entry, const TensorInfo& tensor, const std::string& what) {
    const Value field = js::get(&entry, "layout");
    TensorLayout layout = TensorLayout::rows;
    if (js::strict_equal(field, "col") || js::strict_equal(field, "column")) {
      layout = TensorLayout::columns;
    } else if (!js::nullish(field) && !js::strict_equal(field, "row")) {
      fail(ErrorCode::format, "{} has the unknown layout {}", what, printable(js::to_string(field)));
    }
    if (layout == TensorLayout::columns && info(tensor.encoding).block_size == 1)
      fail(ErrorCode::format, "{} has layout col, which only block encodings have", what);
    const std::uint64_t needed = padded_bytes(tensor.encoding, tensor.shape, layout, what);
    if (tensor.bytes == needed) return layout;
    if (layout == TensorLayout::rows &&
        tensor.bytes == padded_bytes(tensor.encoding, tensor.shape, TensorLayout::flat, what))
      return TensorLayout::flat;
    fail(ErrorCode::format, "{}: {} of shape {} needs {} bytes, but size is {}", what, dtype_name(tensor.encoding),
         print_shape(tensor.shape), needed, tensor.bytes);
  }

  std::vector<TensorExtent> read_extents(const Json& entry, const TensorInfo& tensor, const std::string& what) const {
    const Value spans = js::get(&entry, "spans");
    if (js::nullish(spans)) return {read_extent(entry, tensor.bytes, what)};
    if (!js::is_array(spans) || spans->empty() || spans->size() > manifest_.shards.size())
      fail(ErrorCode::format, "{} has no spans or more than there are shards", what);
    std::vector<TensorExtent> extents;
    std::uint64_t total = 0;
    for (const Json& span : *spans) {
      extents.push_back(read_extent(span, whole_number(js::get(&span, "size"), "span size", what), what));
      total = checked_add(total, extents.back().size, what);
    }
    if (total != tensor.bytes)
      fail(ErrorCode::format, "{} has size {}, but its spans have {} bytes", what, tensor.bytes, total);
    return extents;
  }

  TensorExtent read_extent(const Json& place, std::uint64_t size, const std::string& what) const {
    const Value shard = js::coalesce(js::get(&place, "shard"), js::get(&place, "shardIndex"));
    const std::uint64_t index = js::nullish(shard) ? 0 : whole_number(shard, "shard", what);
    if (index >= manifest_.shards.size())
      fail(ErrorCode::format, "{} is in shard {}, but there are {}", what, index, manifest_.shards.size());
    const std::uint64_t offset = whole_number(js::get(&place, "offset"), "offset", what);
    const std::uint64_t limit = manifest_.shards[index].size;
    if (offset > limit || size > limit - offset)
      fail(ErrorCode::format, "{} needs {} bytes at offset {} of shard {}, which has {}", what, size, offset, index,
           limit);
    return {static_cast<std::uint32_t>(index), offset, size};
  }

  std::string read_tensor_digest(const Json& entry, const std::string& what) const {
    const Value digest = js::get(&entry, "sha256");
    if (!digest && !manifest_.sealed) return {};
    if (!is_digest(digest)) fail(ErrorCode::format, "{} has no sha256 of 64 lower-case hexadecimal digits", what);
    return digest->get<std::string>();
  }

  void read_files() {
    const Value files = js::get(&document_, "files");
    if (js::is_plain_object(files)) {
      for (const auto& [name, entry] : files->items()) read_file_entry(name, entry);
    } else if (files) {
      add("files must be an object");
    }
    const Value tokenizer = js::get(&document_, "tokenizer");
    for (const std::string_view field : {"file", "sentencepieceModel"}) {
      const Value name = js::get(tokenizer, field);
      if (js::nullish(name)) continue;
      if (!js::is_string(name) || !is_plain_file_name(name->get_ref<const std::string&>()))
        add("tokenizer.{} is not the name of a file in the same folder", field);
      else if (manifest_.sealed && !has_file(name->get_ref<const std::string&>()))
        add("tokenizer.{} \"{}\" has no digest in files", field, printable(name->get_ref<const std::string&>()));
    }
  }

  void read_file_entry(const std::string& name, const Json& entry) {
    const std::string what = fmt::format("File \"{}\"", printable(name));
    const Value digest = js::get(&entry, "sha256");
    const Value size = js::get(&entry, "size");
    if (!is_plain_file_name(name)) add("{} is not the name of a file in the same folder", what);
    if (!is_digest(digest)) add("{} has no sha256 of 64 lower-case hexadecimal digits", what);
    if (!size || !size->is_number_unsigned()) add("{} has no size", what);
    if (!is_digest(digest) || !size || !size->is_number_unsigned()) return;
    manifest_.files.push_back({name, size->get<std::uint64_t>(), digest->get<std::string>()});
  }

  [[nodiscard]] bool has_file(std::string_view name) const {
    return std::any_of(manifest_.files.begin(), manifest_.files.end(),
                       [&](const ManifestFile& file) { return file.name == name; });
  }

  /// Groups name tensors that must exist; what they hash is checked by verification.
  void check_groups() {
    const Value groups = js::get(&document_, "groups");
    if (!js::is_plain_object(groups)) return;
    std::vector<std::string_view> names;
    for (const TensorInfo& tensor : manifest_.tensors) names.push_back(tensor.name);
    std::sort(names.begin(), names.end());
    for (const auto& [id, group] : groups->items())
      for (const Json& name : *js::get(&group, "tensors"))
        if (!name.is_string() ||
            !std::binary_search(names.begin(), names.end(), std::string_view(name.get_ref<const std::string&>())))
          add("Group '{}' names the tensor {}, which does not exist", printable(id), printable(js::to_string(&name)));
  }

  Manifest& manifest_;
  const Json& document_;
  const Json& tensors_;
  std::string_view label_;
  std::vector<std::string> failures_;
};

std::string digest_without_seal(Json manifest) {
  manifest.erase(std::string(kDigestField));
  return canonical_digest(manifest);
}

void check_seal(const Json& manifest, std::string_view label) {
  const Value stated = js::get(&manifest, kDigestField);
  if (!stated) return;
  const std::string found = digest_without_seal(manifest);
  if (js::strict_equal(stated, found)) return;
  throw BrokenSeal(
      fmt::format("{}: the manifest's digest is {}, but manifestDigest says {}; it was changed after it was written; "
                  "restore it, or convert the model again",
                  label, found, printable(js::to_string(stated))),
      manifest);
}

}  // namespace

std::string_view to_string(HashAlgorithm algorithm) {
  return algorithm == HashAlgorithm::sha256 ? "sha256" : "blake3";
}

Manifest parse_manifest(std::string_view text, std::string_view label,
                        const std::optional<std::string>& external_tensors) {
  Manifest manifest;
  manifest.document = parse_json(text, label);
  if (!manifest.document.is_object())
    fail(ErrorCode::format, "{}: must be a JSON object, found {}", label, manifest.document.type_name());
  check_seal(manifest.document, label);
  Json tensors;
  if (external_tensors) {
    tensors = parse_json(*external_tensors, fmt::format("{}: tensorsFile", label));
  } else if (manifest.document.contains("tensors")) {
    tensors = manifest.document["tensors"];
  }
  Reader(manifest, tensors, label).read();
  return manifest;
}

std::vector<ManifestShard> manifest_shards(const Json& manifest) {
  std::vector<ManifestShard> shards;
  for (const Json& entry : manifest.at("shards")) {
    const Value own = js::get(&entry, "hashAlgorithm");
    const bool blake3 = js::strict_equal(js::nullish(own) ? js::get(&manifest, "hashAlgorithm") : own, "blake3");
    shards.push_back({shard_name(entry)->get<std::string>(), entry.at("size").get<std::uint64_t>(),
                      shard_digest(entry)->get<std::string>(), blake3 ? HashAlgorithm::blake3 : HashAlgorithm::sha256});
  }
  return shards;
}

void seal_manifest(Json& manifest) {
  const std::string digest = digest_without_seal(manifest);
  manifest.erase(std::string(kDigestField));
  manifest[std::string(kDigestField)] = digest;
}

std::string dtype_name(Encoding encoding) {
  return encoding == Encoding::q4_k ? "Q4_K_M" : upper_case(to_string(encoding));
}

std::optional<Encoding> parse_dtype(std::string_view name) {
  if (name == "Q4_K_M" || name == "Q4_K") return Encoding::q4_k;
  for (int i = 0; i <= static_cast<int>(Encoding::mxfp4); ++i)
    if (upper_case(to_string(static_cast<Encoding>(i))) == name) return static_cast<Encoding>(i);
  return std::nullopt;
}

}  // namespace candor
