#include "kernels/registry.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "base/js_value.h"
#include "base/limits.h"

namespace candor::kernels {
namespace {

std::string key_of(std::string_view file, std::string_view entry) {
  return fmt::format("{}#{}", file, entry);
}

/// What a registry is made of, read with errors that name the place. `where` is
/// "operations.<operation>.variants.<name>".
class Reader {
 public:
  Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail(ErrorCode::format, "kernel registry: {} must be an object", where_);
  }

  [[nodiscard]] const Json* find(std::string_view key) const {
    const Json* value = js::get(&object_, key);
    return js::nullish(value) ? nullptr : value;
  }

  [[nodiscard]] const Json& object(std::string_view key) const {
    const Json* value = find(key);
    if (value == nullptr || !value->is_object()) wrong(key, "an object");
    return *value;
  }

  [[nodiscard]] std::string text(std::string_view key, std::string_view fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return std::string(fallback);
    if (!value->is_string()) wrong(key, "a string");
    return value->get<std::string>();
  }

  [[nodiscard]] std::uint64_t count(std::string_view key) const {
    const Json* value = find(key);
    return value == nullptr ? 0 : to_count(*value, key);
  }

  [[nodiscard]] const Json* array(std::string_view key) const {
    const Json* value = find(key);
    if (value != nullptr && !value->is_array()) wrong(key, "an array");
    return value;
  }

  [[nodiscard]] std::uint64_t to_count(const Json& value, std::string_view key) const {
    constexpr double kLargest = 9007199254740991.0;  // integers are exact in a double up to here
    if (!js::is_integer(&value) || value.get<double>() < 0 || value.get<double>() > kLargest)
      wrong(key, "a non-negative integer");
    return static_cast<std::uint64_t>(value.get<double>());
  }

  [[noreturn]] void wrong(std::string_view key, std::string_view what) const {
    fail(ErrorCode::format, "kernel registry: {}.{} must be {}", where_, key, what);
  }

 private:
  const Json& object_;
  std::string where_;
};

/// The operation's bindings, each replaced by the override of the same index, further ones added, in order of index.
Json merge_bindings(const Json* base, const Json* overrides) {
  std::vector<Json> bindings;
  if (base != nullptr) bindings.assign(base->begin(), base->end());
  if (overrides == nullptr || overrides->empty()) return bindings;
  for (const Json& binding : *overrides) {
    const auto same = std::find_if(bindings.begin(), bindings.end(), [&](const Json& other) {
      return js::strict_equal(js::get(&other, "index"), js::get(&binding, "index"));
    });
    if (same == bindings.end()) {
      bindings.push_back(binding);
    } else {
      *same = binding;
    }
  }
  std::stable_sort(bindings.begin(), bindings.end(), [](const Json& a, const Json& b) {
    return js::to_number(js::get(&a, "index")) < js::to_number(js::get(&b, "index"));
  });
  return bindings;
}

void check_bindings(const Reader& reader, std::string_view key, const Json* bindings) {
  if (bindings == nullptr) return;
  for (const Json& binding : *bindings)
    if (!js::is_integer(js::get(&binding, "index"))) reader.wrong(key, "an array of objects with an integer `index`");
}

std::array<std::uint32_t, 3> read_workgroup(const Reader& reader) {
  std::array<std::uint32_t, 3> workgroup{};
  const Json* sizes = reader.array("workgroup");
  if (sizes == nullptr) return workgroup;
  if (sizes->size() != workgroup.size()) reader.wrong("workgroup", "three integers");
  for (std::size_t i = 0; i < workgroup.size(); ++i) {
    const std::uint64_t size = reader.to_count((*sizes)[i], "workgroup");
    if (size > std::numeric_limits<std::uint32_t>::max()) reader.wrong("workgroup", "three 32-bit integers");
    workgroup[i] = static_cast<std::uint32_t>(size);
  }
  return workgroup;
}

std::vector<std::string> read_features(const Reader& reader) {
  std::vector<std::string> features;
  const Json* list = reader.array("requires");
  if (list == nullptr) return features;
  for (const Json& feature : *list) {
    if (!feature.is_string()) reader.wrong("requires", "an array of strings");
    features.push_back(feature.get<std::string>());
  }
  return features;
}

KernelVariant read_variant(const std::string& operation, const Reader& base, const std::string& name,
                           const Json& json) {
  const Reader reader(json, fmt::format("operations.{}.variants.{}", operation, name));
  KernelVariant variant;
  variant.operation = operation;
  variant.name = name;
  variant.file = reader.text("file", reader.text("wgsl", ""));
  if (variant.file.empty()) reader.wrong("file", "the path of the kernel's source");
  variant.entry = reader.text("entryPoint", "main");
  variant.workgroup = read_workgroup(reader);
  variant.required_features = read_features(reader);
  variant.output_dtype = reader.text("outputDtype", "");
  check_bindings(reader, "bindingsOverride", reader.array("bindingsOverride"));
  variant.bindings = merge_bindings(base.array("baseBindings"), reader.array("bindingsOverride"));
  const Json* uniforms = reader.find("uniformsOverride");
  if (uniforms == nullptr) uniforms = base.find("baseUniforms");
  if (uniforms != nullptr) variant.uniforms = *uniforms;
  if (reader.find("wgslOverrides") != nullptr) variant.wgsl_overrides = reader.object("wgslOverrides");
  variant.shared_memory = reader.count("sharedMemory");
  if (const Json* metadata = reader.find("variantMetadata")) variant.variant_metadata = *metadata;
  variant.raw = json;
  return variant;
}

Json without_variants(const Json& operation) {
  Json out = Json::object();
  for (const auto& [key, value] : operation.get_ref<const Json::object_t&>())
    if (key != "variants") out[key] = value;
  return out;
}

bool is_digest(const Json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

KernelRegistry::KernelRegistry(const Json& registry, const Json& digests) {
  const Json& operations = Reader(registry, "the document").object("operations");
  for (const auto& [name, operation] : operations.get_ref<const Json::object_t&>()) add_operation(name, operation);
  if (!digests.is_object()) fail(ErrorCode::format, "kernel digests: the document must be an object");
  for (const auto& [key, digest] : digests.get_ref<const Json::object_t&>()) {
    if (!is_digest(digest))
      fail(ErrorCode::format, "kernel digests: \"{}\" must be 64 lower-case hexadecimal digits", key);
    digests_.emplace(key, digest.get<std::string>());
  }
}

void KernelRegistry::add_operation(const std::string& name, const Json& operation) {
  const Reader reader(operation, "operations." + name);
  check_bindings(reader, "baseBindings", reader.array("baseBindings"));
  KernelOperation& added = operations_.emplace_back(KernelOperation{name, without_variants(operation), {}});
  for (const auto& [variant_name, json] : reader.object("variants").get_ref<const Json::object_t&>()) {
    const KernelVariant& variant = added.variants.emplace_back(read_variant(name, reader, variant_name, json));
    const Kernel first{operations_.size() - 1, added.variants.size() - 1, {}};
    OutputDtypes& dtypes = kernels_.try_emplace(key_of(variant.file, variant.entry), first).first->second.output_dtypes;
    const std::string dtype = js::to_lower(variant.output_dtype);
    if (!dtype.empty() && std::find(dtypes.begin(), dtypes.end(), dtype) == dtypes.end()) dtypes.push_back(dtype);
  }
}

const KernelOperation* KernelRegistry::find_operation(std::string_view name) const {
  const auto found = std::find_if(operations_.begin(), operations_.end(), [&](auto& op) { return op.name == name; });
  return found == operations_.end() ? nullptr : &*found;
}

const KernelRegistry::Kernel* KernelRegistry::find_kernel(std::string_view file, std::string_view entry) const {
  const auto found = kernels_.find(key_of(file, entry));
  return found == kernels_.end() ? nullptr : &found->second;
}

const KernelVariant* KernelRegistry::find(std::string_view file, std::string_view entry) const {
  const Kernel* kernel = find_kernel(file, entry);
  return kernel == nullptr ? nullptr : &operations_[kernel->operation].variants[kernel->variant];
}

const KernelVariant& KernelRegistry::get(std::string_view operation, std::string_view variant) const {
  if (const KernelOperation* found = find_operation(operation)) {
    for (const KernelVariant& candidate : found->variants)
      if (candidate.name == variant) return candidate;
  }
  fail(ErrorCode::not_found, "Unknown kernel: {}/{}", operation, variant);
}

const OutputDtypes* KernelRegistry::output_dtypes(std::string_view file, std::string_view entry) const {
  const Kernel* kernel = find_kernel(file, entry);
  return kernel == nullptr ? nullptr : &kernel->output_dtypes;
}

std::optional<std::string> KernelRegistry::digest(std::string_view file, std::string_view entry) const {
  const auto found = digests_.find(key_of(file, entry));
  if (found == digests_.end()) return std::nullopt;
  return found->second;
}

KernelRegistry load_registry(const std::filesystem::path& directory) {
  const auto load = [&](const char* name) {
    const auto path = directory / name;
    return parse_json(read_file(path, limits::json_bytes), path.string());
  };
  return {load("registry.json"), load("kernel-ref-digests.json")};
}

}  // namespace candor::kernels
