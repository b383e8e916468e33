#include "models/config_reader.h"

#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"

namespace candor::models {

ConfigReader::ConfigReader(const Json& config, std::string label) : config_(config), label_(std::move(label)) {
  if (!config.is_object()) fail(ErrorCode::format, "{}: must be a JSON object", label_);
}

const Json* ConfigReader::find(std::string_view key) {
  used_.emplace(key);
  const auto found = config_.find(std::string(key));
  if (found == config_.end() || found->is_null()) return nullptr;
  return &*found;
}

void ConfigReader::wrong_type(std::string_view key, const Json& value, std::string_view wanted) const {
  fail(ErrorCode::format, "{}: {} must be {}; got {}", label_, key, wanted, printable(to_js_json(value)));
}

std::optional<std::uint64_t> ConfigReader::optional_positive(std::string_view key) {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  constexpr double kLargest = 1ull << 40;
  if (!value->is_number()) wrong_type(key, *value, "a positive integer");
  const double number = value->get<double>();
  if (!(number >= 1 && number <= kLargest) || number != std::floor(number))
    wrong_type(key, *value, "a positive integer");
  return static_cast<std::uint64_t>(number);
}

std::uint64_t ConfigReader::positive(std::string_view key) {
  if (const auto value = optional_positive(key)) return *value;
  fail(ErrorCode::format, "{}: {} is missing", label_, key);
}

std::optional<double> ConfigReader::optional_number(std::string_view key) {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>()) || value->get<double>() < 0)
    wrong_type(key, *value, "a finite number, 0 or above");
  return value->get<double>();
}

double ConfigReader::number(std::string_view key) {
  if (const auto value = optional_number(key)) return *value;
  fail(ErrorCode::format, "{}: {} is missing", label_, key);
}

bool ConfigReader::boolean(std::string_view key, bool otherwise) {
  const Json* value = find(key);
  if (!value) return otherwise;
  if (!value->is_boolean()) wrong_type(key, *value, "true or false");
  return value->get<bool>();
}

std::optional<std::string> ConfigReader::optional_string(std::string_view key) {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_string()) wrong_type(key, *value, "a string");
  return value->get<std::string>();
}

std::string ConfigReader::string(std::string_view key) {
  if (auto value = optional_string(key)) return *std::move(value);
  fail(ErrorCode::format, "{}: {} is missing", label_, key);
}

void ConfigReader::must_state(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys)
    if (!config_.contains(std::string(key)))
      fail(ErrorCode::format, "{}: {} is missing; null says that there is none", label_, key);
}

void ConfigReader::harmless(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) used_.emplace(key);
}

void ConfigReader::require(std::string_view key, const Json& wanted, std::string_view why) {
  const Json* value = find(key);
  if (value && *value != wanted)
    fail(ErrorCode::unsupported, "{}: {} is {}; {}", label_, key, printable(to_js_json(*value)), why);
}

void ConfigReader::finish() const {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : config_.items())
    if (!value.is_null() && !used_.contains(key))
      unknown.push_back(printable(key) + " = " + printable(to_js_json(value), 40));
  if (unknown.empty()) return;
  fail(ErrorCode::unsupported,
       "{}: unknown {} {}; a setting that may change the computation is not ignored. Remove it if it has no effect",
       label_, unknown.size() == 1 ? "key" : "keys", fmt::join(unknown, ", "));
}

void mark_huggingface_harmless(ConfigReader& reader) {
  reader.harmless({"_name_or_path",
                   "architectures",
                   "attention_dropout",
                   "auto_map",
                   "bos_token_id",
                   "dtype",
                   "embd_pdrop",
                   "eos_token_id",
                   "hidden_dropout",
                   "initializer_range",
                   "max_length",
                   "model_type",
                   "output_attentions",
                   "output_hidden_states",
                   "pad_token_id",
                   "pretraining_tp",
                   "resid_pdrop",
                   "return_dict",
                   "torch_dtype",
                   "transformers_version",
                   "unk_token_id",
                   "use_cache",
                   "use_return_dict",
                   "attn_implementation",
                   "_attn_implementation",
                   "id2label",
                   "label2id",
                   "is_decoder",
                   "torchscript"});
}

}  // namespace candor::models
