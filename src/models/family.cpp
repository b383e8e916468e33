#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "models/config_reader.h"
#include "models/description.h"
#include "models/families.h"

namespace candor::models {
namespace {

std::string known(std::vector<std::string_view> Family::*names) {
  std::vector<std::string_view> all;
  for (const Family& family : families())
    for (const std::string_view name : family.*names) all.push_back(name);
  std::sort(all.begin(), all.end());
  return fmt::format("{}", fmt::join(all, ", "));
}

const Family& find_family(const ModelSource& source) {
  const bool is_gguf = source.gguf() != nullptr;
  const auto names = is_gguf ? &Family::gguf_architectures : &Family::model_types;
  std::string wanted;
  if (is_gguf) {
    const auto architecture = source.gguf()->string("general.architecture");
    if (!architecture) fail(ErrorCode::format, "{}: general.architecture is missing", source.path().string());
    wanted = *architecture;
  } else {
    ConfigReader reader(source.config(), (source.path() / "config.json").string());
    wanted = reader.string("model_type");
  }
  for (const Family& family : families()) {
    const auto& entries = family.*names;
    if (std::find(entries.begin(), entries.end(), wanted) != entries.end()) return family;
  }
  fail(ErrorCode::unsupported, "{}: {} \"{}\" is not a family this build knows; known are {}", source.path().string(),
       is_gguf ? "architecture" : "model_type", printable(wanted), known(names));
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void append_list(std::string& message, std::string_view title, const std::vector<std::string>& items) {
  if (items.empty()) return;
  constexpr std::size_t kShown = 8;
  message += fmt::format("; {} {}: ", items.size(), title);
  message += fmt::format(
      "{}", fmt::join(items.begin(), items.begin() + std::min<long>(kShown, static_cast<long>(items.size())), ", "));
  if (items.size() > kShown) message += ", …";
}

/// Every tensor the steps read must be there in its shape, and every tensor that is there must be read.
void check_tensors(const ModelSource& source, const ModelDescription& description) {
  std::vector<std::string> missing;
  std::vector<std::string> misshapen;
  std::vector<std::string> unexpected;
  std::map<std::string_view, bool> wanted;
  for (const ExpectedTensor& expected : description.tensors) {
    wanted.emplace(expected.name, true);
    const TensorInfo* tensor = source.find(expected.name);
    if (!tensor) {
      missing.push_back(expected.name);
    } else if (tensor->shape != expected.shape) {
      misshapen.push_back(
          fmt::format("{} is {}, expected {}", expected.name, shape_text(tensor->shape), shape_text(expected.shape)));
    }
  }
  const auto& ignored = description.ignored_tensors;
  for (const TensorInfo& tensor : source.tensors())
    if (!wanted.contains(tensor.name) && std::find(ignored.begin(), ignored.end(), tensor.name) == ignored.end())
      unexpected.push_back(printable(tensor.name));
  if (missing.empty() && misshapen.empty() && unexpected.empty()) return;
  std::string message =
      fmt::format("{}: the tensors do not fit the {} configuration", source.path().string(), description.family);
  append_list(message, "missing", missing);
  append_list(message, "of another shape", misshapen);
  append_list(message, "unexpected", unexpected);
  throw Error(ErrorCode::format, message);
}

/// What artifacts state of norms must fit the tensors' names; their readers compare.
void state_norms(ModelDescription& description) {
  constexpr std::array<std::pair<const char*, std::string_view>, 3> kNorms{
      {{"postAttentionNorm", "post_attention_layernorm.weight"},
       {"preFeedforwardNorm", "pre_feedforward_layernorm.weight"},
       {"postFeedforwardNorm", "post_feedforward_layernorm.weight"}}};
  for (const auto& [flag, ending] : kNorms)
    description.inference["normalization"][flag] =
        std::any_of(description.tensors.begin(), description.tensors.end(),
                    [&ending = ending](const ExpectedTensor& tensor) { return tensor.name.ends_with(ending); });
}

}  // namespace

std::string expand_pattern(std::string pattern, std::uint64_t layer, std::uint64_t expert) {
  const auto replace = [&](std::string_view placeholder, std::uint64_t number) {
    if (const auto at = pattern.find(placeholder); at != std::string::npos)
      pattern.replace(at, placeholder.size(), std::to_string(number));
  };
  replace(kLayerPlaceholder, layer);
  replace(kExpertPlaceholder, expert);
  return pattern;
}

const std::vector<Family>& families() {
  static const std::vector<Family> all{bert_family(),     gemma2_family(), gemma3_family(),  gpt2_family(),
                                       lfm2_family(),     llama_family(),  mistral_family(), mixtral_family(),
                                       olmo2_family(),    phi3_family(),   qwen2_family(),   qwen3_family(),
                                       qwen3_moe_family()};
  return all;
}

ModelDescription describe(const ModelSource& source, const DescribeOptions& options) {
  ModelDescription description = find_family(source).describe(source, options);
  check_tensors(source, description);
  state_norms(description);
  return description;
}

}  // namespace candor::models
