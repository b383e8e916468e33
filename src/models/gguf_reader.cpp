#include "models/gguf_reader.h"

#include <utility>

#include "base/error.h"

namespace candor::models {

GgufReader::GgufReader(const ModelSource& source, std::string architecture)
    : source_(source),
      metadata_(*source.gguf()),
      label_(source.path().string()),
      prefix_(std::move(architecture) + ".") {
  // Where a model came from and what it was called.
  harmless({"vocab_size", "tensor_data_layout", "rope.scaling.finetuned"});
}

const std::string& GgufReader::use(std::string_view key) {
  return *used_.insert(full_name(key)).first;
}

std::optional<std::uint64_t> GgufReader::optional_positive(std::string_view key) {
  const auto value = metadata_.unsigned_integer(use(key));
  if (value && *value == 0) fail(ErrorCode::format, "{}: {}{} must be positive; got 0", label_, prefix_, key);
  return value;
}

std::uint64_t GgufReader::positive(std::string_view key) {
  if (const auto value = optional_positive(key)) return *value;
  fail(ErrorCode::format, "{}: {}{} is missing", label_, prefix_, key);
}

std::uint64_t GgufReader::count(std::string_view key) {
  return metadata_.unsigned_integer(use(key)).value_or(0);
}

std::optional<double> GgufReader::optional_number(std::string_view key) {
  return metadata_.number(use(key));
}

double GgufReader::number(std::string_view key) {
  if (const auto value = optional_number(key)) return *value;
  fail(ErrorCode::format, "{}: {}{} is missing", label_, prefix_, key);
}

std::optional<bool> GgufReader::optional_boolean(std::string_view key) {
  return metadata_.boolean(use(key));
}

std::optional<std::string_view> GgufReader::optional_string(std::string_view key) {
  return metadata_.string(use(key));
}

std::vector<std::uint64_t> GgufReader::by_layer(std::string_view key, std::uint32_t layers) {
  const std::string& name = use(key);
  const GgufValue* value = metadata_.find(name);
  if (!value) fail(ErrorCode::format, "{}: {} is missing", label_, name);
  if (value->type != GgufType::array) return std::vector<std::uint64_t>(layers, count(key));
  const std::vector<std::int32_t> numbers = *metadata_.integers(name);
  if (numbers.size() != layers)
    fail(ErrorCode::format, "{}: {} has {} values for {} layers", label_, name, numbers.size(), layers);
  std::vector<std::uint64_t> out;
  for (const std::int32_t number : numbers) {
    if (number < 0) fail(ErrorCode::format, "{}: {} holds {}; counts are not negative", label_, name, number);
    out.push_back(static_cast<std::uint64_t>(number));
  }
  return out;
}

bool GgufReader::is_array(std::string_view key) const {
  const GgufValue* value = metadata_.find(full_name(key));
  return value && value->type == GgufType::array;
}

std::vector<bool> GgufReader::booleans(std::string_view key, std::uint32_t layers) {
  const std::string& name = use(key);
  auto values = metadata_.booleans(name);
  if (!values || values->size() != layers)
    fail(ErrorCode::format, "{}: {} must hold {} booleans, one a layer", label_, name, layers);
  return *std::move(values);
}

void GgufReader::harmless(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) (void)use(key);
}

void GgufReader::finish() const {
  std::vector<std::string> unknown;
  for (const std::string& key : metadata_.keys())
    if (key.starts_with(prefix_) && !used_.contains(key)) unknown.push_back(printable(key));
  if (unknown.empty()) return;
  fail(ErrorCode::unsupported, "{}: unknown {} {}; a setting that may change the computation is not ignored", label_,
       unknown.size() == 1 ? "key" : "keys", fmt::join(unknown, ", "));
}

}  // namespace candor::models
