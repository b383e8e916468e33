#include "models/pooling.h"

#include <array>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "formats/file_name.h"
#include "models/config_reader.h"

namespace candor::models {
namespace {

namespace fs = std::filesystem;

std::optional<Json> read_json_file(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  return parse_json(read_file(path, limits::json_bytes), path.string());
}

/// 1_Pooling/config.json: one of the modes is true.
std::string pooling_kind(const fs::path& path) {
  const auto config = read_json_file(path);
  if (!config) fail(ErrorCode::not_found, "{}: is missing; fetch it", path.string());
  constexpr std::array<std::pair<const char*, const char*>, 3> kModes{
      {{"pooling_mode_cls_token", "first"}, {"pooling_mode_mean_tokens", "mean"}, {"pooling_mode_lasttoken", "last"}}};
  ConfigReader reader(*config, path.string());
  std::string kind;
  for (const auto& [key, name] : kModes) {
    if (!reader.boolean(key, false)) continue;
    if (!kind.empty())
      fail(ErrorCode::unsupported, "{}: asks for {} and {} pooling; one is implemented", path.string(), kind, name);
    kind = name;
  }
  for (const char* key :
       {"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens"})
    reader.require(key, false, "implemented are pooling of the first token, the last, and the mean");
  // Which tokens of a prompt count is for whoever writes the prompt; without one there is no difference.
  reader.harmless({"word_embedding_dimension", "embedding_dimension", "include_prompt", "pooling_mode"});
  reader.finish();
  if (kind.empty()) fail(ErrorCode::format, "{}: no pooling mode is true", path.string());
  return kind;
}

/// N_Dense/config.json; the folder's tensors are read with its name before theirs.
DenseLayer read_dense(const fs::path& model, const std::string& folder) {
  const fs::path path = model / folder / "config.json";
  const auto config = read_json_file(path);
  if (!config) fail(ErrorCode::not_found, "{}: is missing; fetch it", path.string());
  ConfigReader reader(*config, path.string());
  DenseLayer dense{folder + ".linear.weight", reader.positive("in_features"), reader.positive("out_features"),
                   reader.boolean("bias", true)};
  reader.require("activation_function", "torch.nn.modules.linear.Identity",
                 "activations after a dense layer are not implemented");
  reader.finish();
  return dense;
}

}  // namespace

std::optional<Pooling> read_huggingface_pooling(const ModelSource& source) {
  const fs::path path = source.path() / "modules.json";
  const auto modules = read_json_file(path);
  if (!modules) return std::nullopt;
  if (!modules->is_array()) fail(ErrorCode::format, "{}: must be a list of modules", path.string());
  Pooling pooling;
  pooling.kind.clear();
  pooling.normalize = false;
  for (const Json& module : *modules) {
    ConfigReader reader(module, path.string());
    const std::string type = reader.string("type");
    const std::string folder = reader.string("path");
    const auto is = [&](std::string_view name) { return type.ends_with("." + std::string(name)); };
    if (is("Transformer")) continue;
    if (is("Pooling")) {
      check_plain_file_name(folder, path.string() + ": path of a module");
      pooling.kind = pooling_kind(source.path() / folder / "config.json");
    } else if (is("Dense")) {
      check_plain_file_name(folder, path.string() + ": path of a module");
      pooling.dense.push_back(read_dense(source.path(), folder));
    } else if (is("Normalize")) {
      pooling.normalize = true;
    } else {
      fail(ErrorCode::unsupported, "{}: module {} is unknown; known are Transformer, Pooling, Dense, Normalize",
           path.string(), printable(type));
    }
  }
  if (pooling.kind.empty()) fail(ErrorCode::unsupported, "{}: has no Pooling module", path.string());
  return pooling;
}

std::optional<Pooling> read_gguf_pooling(GgufReader& reader) {
  const std::uint64_t type = reader.count("pooling_type");
  constexpr std::array<const char*, 4> kKinds{"", "mean", "first", "last"};
  if (type >= kKinds.size())
    fail(ErrorCode::unsupported, "{}: pooling_type {} is unknown; known are 0 none, 1 mean, 2 first, 3 last",
         reader.label(), type);
  if (type == 0) return std::nullopt;
  Pooling pooling{kKinds[type]};
  for (const char* name : {"dense_2.weight", "dense_3.weight"}) {
    const TensorInfo* tensor = reader.source().find(name);
    if (!tensor) continue;
    if (tensor->shape.size() != 2) fail(ErrorCode::format, "{}: tensor {} is no matrix", reader.label(), name);
    pooling.dense.push_back({name, tensor->shape[1], tensor->shape[0], false});
  }
  reader.harmless({"dense_2_feat_in", "dense_2_feat_out", "dense_3_feat_in", "dense_3_feat_out"});  // the shapes say it
  return pooling;
}

Pooling parse_pooling(std::string_view text) {
  const auto comma = text.find(',');
  const std::string_view kind = text.substr(0, comma);
  const std::string_view after = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  const bool known = kind == "mean" || kind == "first" || kind == "last";
  if (!known || (comma != std::string_view::npos && after != "normalize"))
    fail(ErrorCode::usage, "pooling \"{}\" is unknown; known are mean, first and last, each also with \",normalize\"",
         printable(text));
  Pooling pooling;
  pooling.kind = kind;
  pooling.normalize = !after.empty();
  return pooling;
}

std::optional<Pooling> choose_pooling(std::optional<Pooling> stated, std::string_view asked, std::string_view label) {
  if (asked.empty()) return stated;
  if (stated)
    fail(ErrorCode::usage, "{}: the model's files say how it is pooled ({}{}); leave out --pooling {}", label,
         stated->kind, stated->normalize ? ", made to length 1" : "", printable(asked));
  return parse_pooling(asked);
}

void add_pooling(StepBuilder& steps, const Pooling& pooling, const std::string& src, std::uint64_t width) {
  steps.pool("pool", src, "embedding", pooling.kind);
  for (const DenseLayer& dense : pooling.dense) {
    if (dense.in != width)
      fail(ErrorCode::format, "{} reads {} columns where there are {}", dense.weight, dense.in, width);
    steps.linear("dense", "embedding", "embedding", dense.weight, dense.out, dense.in);
    if (dense.bias) steps.bias("dense_bias", "embedding", bias_name(dense.weight), dense.out);
    width = dense.out;
  }
  if (pooling.normalize) steps.l2_normalize("normalize", "embedding", 1e-12);
}

}  // namespace candor::models
