#include "formats/manifest_checks.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/error.h"
#include "base/js_value.h"

namespace candor {
namespace {

using js::Value;
using Failures = std::vector<std::string>;

bool is_number(Value value) {
  return value && value->is_number();
}
bool is_positive(Value value) {
  return is_number(value) && value->get<double>() > 0;
}
bool is_nonempty_string(Value value) {
  return js::is_string(value) && !value->get_ref<const std::string&>().empty();
}

template <typename... Args>
void add(Failures& failures, fmt::format_string<Args...> format, Args&&... args) {
  failures.push_back(fmt::format(format, std::forward<Args>(args)...));
}

std::string shown(Value value) {
  return printable(js::to_string(value));
}

/// Models without a vocabulary: stop tokens and the transformer's dimensions are not asked of them.
/// Whether the model makes no text, and so has no token to stop at: the two types of the original, and embedding
/// models.
bool is_textless(Value manifest) {
  const Value type = js::get(manifest, "modelType");
  return js::strict_equal(type, "diffusion") || js::strict_equal(type, "energy") || js::strict_equal(type, "embedding");
}

bool is_lora(Value manifest) {
  return js::strict_equal(js::get(manifest, "adapterType"), "lora") ||
         js::strict_equal(js::get(manifest, "modelType"), "lora") || js::truthy(js::get(manifest, "loraConfig"));
}

void check_header(Value manifest, Failures& failures) {
  const Value version = js::get(manifest, "version");
  if (!is_number(version) || version->get<double>() != 1) add(failures, "Invalid version: {}", shown(version));
  for (const std::string_view field : {"modelId", "modelType", "quantization"})
    if (!is_nonempty_string(js::get(manifest, field))) add(failures, "Missing or invalid {} field", field);
  if (!js::is_plain_object(js::get(manifest, "inference"))) add(failures, "Missing or invalid inference field");
  const Value algorithm = js::get(manifest, "hashAlgorithm");
  if (!is_nonempty_string(algorithm)) {
    add(failures, "Missing or invalid hashAlgorithm");
  } else if (!js::strict_equal(algorithm, "sha256") && !js::strict_equal(algorithm, "blake3")) {
    add(failures, "Invalid hashAlgorithm: {}", shown(algorithm));
  }
}

void check_stop_tokens(Value manifest, Failures& failures) {
  const Value stop = js::get(manifest, "eos_token_id");
  if (!stop) {
    if (!is_textless(manifest)) add(failures, "Missing eos_token_id");
  } else if (js::is_array(stop)) {
    const bool numbers = std::all_of(stop->begin(), stop->end(), [](const Json& id) { return id.is_number(); });
    if (stop->empty() || !numbers) add(failures, "Invalid eos_token_id array");
  } else if (!stop->is_number() && !(stop->is_null() && is_textless(manifest))) {
    add(failures, "Invalid eos_token_id");
  }
}

void check_architecture(Value manifest, Failures& failures) {
  if (is_textless(manifest) || is_lora(manifest)) return;
  const Value architecture = js::get(manifest, "architecture");
  if (!js::is_plain_object(architecture)) {
    add(failures, "Missing architecture field");
    return;
  }
  for (const std::string_view field : {"numLayers", "hiddenSize", "intermediateSize", "numAttentionHeads",
                                       "numKeyValueHeads", "headDim", "vocabSize", "maxSeqLen"}) {
    const Value value = js::get(architecture, field);
    if (!is_positive(value) || !js::is_integer(value)) add(failures, "Invalid architecture.{}", field);
  }
}

void check_groups(Value manifest, Failures& failures) {
  const Value groups = js::get(manifest, "groups");
  if (!js::is_plain_object(groups)) return;
  const Value shards = js::get(manifest, "shards");
  const std::size_t shard_count = js::is_array(shards) ? shards->size() : 0;
  for (const auto& [id, group] : groups->items()) {
    const std::string name = printable(id);
    if (!is_nonempty_string(js::get(&group, "type"))) add(failures, "Group '{}' missing type", name);
    if (!is_nonempty_string(js::get(&group, "version"))) add(failures, "Group '{}' missing or invalid version", name);
    const Value used = js::get(&group, "shards");
    if (!js::is_array(used)) {
      add(failures, "Group '{}' missing shards array", name);
    } else {
      for (const Json& index : *used)
        if (!index.is_number_unsigned() || index.get<std::uint64_t>() >= shard_count)
          add(failures, "Group '{}' references invalid shard index {}", name, shown(&index));
    }
    if (!js::is_array(js::get(&group, "tensors"))) add(failures, "Group '{}' missing tensors array", name);
    if (!is_nonempty_string(js::get(&group, "hash"))) add(failures, "Group '{}' missing or invalid hash", name);
  }
}

void check_tensor_roles(Value manifest, const Json& tensors, Failures& failures) {
  if (!js::truthy(js::get(manifest, "tensorsFile")) && !js::truthy(js::get(manifest, "tensors")) &&
      !js::truthy(js::get(manifest, "groups")))
    add(failures, "Missing tensorsFile and tensors - one is required");
  if (!tensors.is_object()) return;
  for (const auto& [name, entry] : tensors.items())
    if (!is_nonempty_string(js::get(&entry, "role"))) add(failures, "Tensor \"{}\" missing role", printable(name));
}

void check_experts(Value manifest, Failures& failures) {
  const Value config = js::get(manifest, "moeConfig");
  if (js::nullish(config)) return;
  const Value experts = js::get(config, "numExperts");
  const Value per_token = js::get(config, "numExpertsPerToken");
  const Value format = js::get(config, "expertFormat");
  if (!is_positive(experts)) add(failures, "Invalid moeConfig.numExperts");
  if (!is_positive(per_token)) add(failures, "Invalid moeConfig.numExpertsPerToken");
  if (!is_nonempty_string(format)) {
    add(failures, "Invalid moeConfig.expertFormat");
  } else if (!js::strict_equal(format, "mixtral") && !js::strict_equal(format, "gpt-oss")) {
    add(failures, "Invalid moeConfig.expertFormat: {}", shown(format));
  }
  if (is_positive(experts) && is_positive(per_token) && per_token->get<double>() > experts->get<double>())
    add(failures, "numExpertsPerToken cannot exceed numExperts");
}

void check_shard(const Json& shard, std::size_t position, double expected_offset, Failures& failures) {
  const Value index = js::get(&shard, "index");
  if (!js::nullish(index) && !(index->is_number() && index->get<double>() == static_cast<double>(position)))
    add(failures, "Shard {} has incorrect index: {}", position, shown(index));
  if (!is_positive(js::get(&shard, "size"))) add(failures, "Shard {} has invalid size", position);
  const Value hash = js::coalesce(js::get(&shard, "hash"), js::get(&shard, "blake3"));
  if (!js::is_string(hash) || hash->get_ref<const std::string&>().size() != 64)
    add(failures, "Shard {} has invalid hash", position);
  if (!is_nonempty_string(js::coalesce(js::get(&shard, "filename"), js::get(&shard, "fileName"))))
    add(failures, "Shard {} has invalid filename", position);
  const Value offset = js::get(&shard, "offset");
  if (!js::nullish(offset) && !(offset->is_number() && offset->get<double>() == expected_offset))
    add(failures, "Shard {} has incorrect offset: expected {}, got {}", position, js_number(expected_offset),
        shown(offset));
}

void check_shards(Value manifest, Failures& failures) {
  const Value shards = js::get(manifest, "shards");
  if (!js::is_array(shards) || shards->empty()) {
    add(failures, "Missing or empty shards array");
    return;
  }
  double total = 0;
  for (std::size_t i = 0; i < shards->size(); ++i) {
    check_shard((*shards)[i], i, total, failures);
    const Value size = js::get(&(*shards)[i], "size");
    if (is_number(size)) total += size->get<double>();
  }
  const Value declared = js::get(manifest, "totalSize");
  if (!is_number(declared) || declared->get<double>() != total)
    add(failures, "totalSize mismatch: declared {}, calculated {}", shown(declared), js_number(total));
}

struct NormFlag {
  std::string_view path;
  std::string_view code;
  std::string_view field;
  std::string_view ending;
  std::string_view pattern;
  std::string_view what;
};
constexpr std::array kNormFlags = std::to_array<NormFlag>(
    {{"inference.normalization.postFeedforwardNorm", "INFERENCE_NORMALIZATION_POSTFEEDFORWARDNORM",
      "postFeedforwardNorm", "post_feedforward_layernorm.weight", "post_feedforward_layernorm\\.weight$",
      "post-feedforward normalization"},
     {"inference.normalization.preFeedforwardNorm", "INFERENCE_NORMALIZATION_PREFEEDFORWARDNORM", "preFeedforwardNorm",
      "pre_feedforward_layernorm.weight", "pre_feedforward_layernorm\\.weight$", "pre-feedforward normalization"},
     {"inference.normalization.postAttentionNorm", "INFERENCE_NORMALIZATION_POSTATTENTIONNORM", "postAttentionNorm",
      "post_attention_layernorm.weight", "post_attention_layernorm\\.weight$", "post-attention normalization"}});

/// In the order of groups and tensors, each name once.
std::vector<std::string> all_tensor_names(Value manifest, const Json& tensors) {
  std::vector<std::string> names;
  std::unordered_set<std::string> seen;
  const auto add_name = [&](const std::string& name) {
    if (seen.insert(name).second) names.push_back(name);
  };
  if (const Value groups = js::get(manifest, "groups"); js::is_plain_object(groups))
    for (const Json& group : *groups)
      if (const Value listed = js::get(&group, "tensors"); js::is_array(listed))
        for (const Json& name : *listed)
          if (name.is_string()) add_name(name.get<std::string>());
  if (tensors.is_object())
    for (const auto& [name, entry] : tensors.items()) add_name(name);
  return names;
}

void check_norm_flags(Value manifest, const Json& tensors, Failures& failures) {
  if (is_textless(manifest)) return;
  const Value flags = js::at_path(manifest, {"inference", "normalization"});
  std::vector<std::string> names;
  for (const NormFlag& flag : kNormFlags) {
    const Value value = js::get(flags, flag.field);
    if (!value || !value->is_boolean()) continue;
    if (names.empty()) names = all_tensor_names(manifest, tensors);
    std::vector<std::string> found;
    std::copy_if(names.begin(), names.end(), std::back_inserter(found),
                 [&](const std::string& name) { return name.ends_with(flag.ending); });
    if (value->get<bool>() == !found.empty()) continue;
    const std::string remedy =
        found.empty()
            ? fmt::format("Set {} to false (no matching tensors found for pattern: /{}/)", flag.path, flag.pattern)
            : fmt::format("Set {} to true (found {} tensor(s): {}...)", flag.path, found.size(),
                          printable(found[0] + (found.size() > 1 ? ", " + found[1] : "")));
    add(failures,
        "[TENSOR_CONFIG_MISMATCH_{}] Config flag \"{}\" (={}) is inconsistent with {} tensors (found={}) -> {}",
        flag.code, flag.path, value->get<bool>(), flag.what, !found.empty(), remedy);
  }
}

}  // namespace

void check_as_original(const Json& manifest, const Json& tensors, std::vector<std::string>& failures) {
  check_header(&manifest, failures);
  check_stop_tokens(&manifest, failures);
  check_architecture(&manifest, failures);
  check_groups(&manifest, failures);
  check_tensor_roles(&manifest, tensors, failures);
  check_experts(&manifest, failures);
  check_shards(&manifest, failures);
  check_norm_flags(&manifest, tensors, failures);
}

}  // namespace candor
