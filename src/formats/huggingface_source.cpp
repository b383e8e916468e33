// A Hugging Face folder: config.json, model.safetensors or shards with an index, and the tokenizer's files. As in the
// reference loader, model.safetensors comes before an index, chat_template.jinja before tokenizer_config.json's
// template, and every tensor of every shard is taken, listed or not.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/limits.h"
#include "formats/file_name.h"
#include "formats/model_source_builder.h"
#include "formats/safetensors.h"

namespace candor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

Json parse_object(const std::string& text, const fs::path& path) {
  Json value = parse_json(text, path.string());
  if (!value.is_object())
    fail(ErrorCode::format, "{}: must be a JSON object, found {}", path.string(), value.type_name());
  return value;
}

Json read_object_if_present(const fs::path& folder, std::string_view name) {
  const auto text = read_optional_file(folder, name);
  return text ? parse_object(*text, folder / name) : Json();
}

void read_tokenizer_files(ModelSourceBuilder& builder, const fs::path& folder) {
  builder.tokenizer_json() = read_optional_file(folder, "tokenizer.json");
  builder.tokenizer_config() = read_optional_file(folder, "tokenizer_config.json");
  builder.sentencepiece_model() = read_optional_file(folder, "tokenizer.model");
  builder.chat_template() = read_optional_file(folder, "chat_template.jinja");
  if (builder.chat_template() || !builder.tokenizer_config()) return;
  builder.chat_template() = chat_template_of(*builder.tokenizer_config(), folder / "tokenizer_config.json");
}

/// Maps a shard and adds its tensors, `prefix` before their names; returns the names it holds.
std::vector<std::string> add_shard(ModelSourceBuilder& builder, const fs::path& path, std::string_view prefix = {}) {
  const std::uint32_t file = builder.add_file(MappedFile(path));
  SafetensorsContent content = parse_safetensors(builder.file(file).bytes(), path.string());
  for (TensorInfo& tensor : content.tensors) tensor.name.insert(0, prefix);
  std::vector<std::string> names;
  names.reserve(content.tensors.size());
  for (const TensorInfo& tensor : content.tensors) names.push_back(tensor.name);
  builder.add_tensors(std::move(content.tensors), file);
  return names;
}

/// The index's weight_map turned round: file name → names of the tensors that it must hold.
std::map<std::string, std::vector<std::string>> read_index(const fs::path& path) {
  const nlohmann::json index = parse_json_sorted(read_file(path, limits::json_bytes), path.string());
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object())
    fail(ErrorCode::format, "{}: weight_map is missing or no object", path.string());
  std::map<std::string, std::vector<std::string>> shards;
  for (const auto& [tensor, file] : map->items()) {
    const std::string what = fmt::format("{}: file of tensor \"{}\"", path.string(), printable(tensor));
    if (!file.is_string()) fail(ErrorCode::format, "{}: must be a string, found {}", what, file.type_name());
    check_plain_file_name(file.get_ref<const std::string&>(), what);
    shards[file.get<std::string>()].push_back(tensor);
  }
  if (shards.empty()) fail(ErrorCode::format, "{}: weight_map is empty", path.string());
  return shards;
}

void add_indexed_shards(ModelSourceBuilder& builder, const fs::path& folder) {
  for (const auto& [file, expected] : read_index(folder / kIndex)) {
    std::error_code ignored;
    if (!fs::exists(folder / file, ignored))
      fail(ErrorCode::not_found, "{}: the shard {} that {} lists is missing; fetch it", folder.string(),
           printable(file), kIndex);
    std::vector<std::string> names = add_shard(builder, folder / file);
    std::sort(names.begin(), names.end());
    for (const std::string& name : expected)
      if (!std::binary_search(names.begin(), names.end(), name))
        fail(ErrorCode::format, "{}: has no tensor \"{}\", which {} says it holds", (folder / file).string(),
             printable(name), kIndex);
  }
}

[[noreturn]] void refuse_without_weights(const fs::path& folder) {
  std::string pickle;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth") || name.ends_with(".ckpt"))
      if (pickle.empty() || name < pickle) pickle = name;
  }
  if (!pickle.empty())
    fail(ErrorCode::unsupported,
         "{}: the weights are PyTorch pickles ({}), which can run code when read; fetch or save the model as "
         "safetensors",
         folder.string(), printable(pickle));
  fail(ErrorCode::not_found, "{}: has config.json but neither {} nor {}; fetch the weights", folder.string(), kSingle,
       kIndex);
}

void add_weights(ModelSourceBuilder& builder, const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / kSingle, ignored)) {
    add_shard(builder, folder / kSingle);
  } else if (fs::exists(folder / kIndex, ignored)) {
    add_indexed_shards(builder, folder);
  } else {
    refuse_without_weights(folder);
  }
}

/// Dense layers that sentence-transformers puts after the model, each in a folder that modules.json names: their
/// tensors get the folder's name before theirs.
void add_dense_modules(ModelSourceBuilder& builder, const fs::path& folder) {
  const auto text = read_optional_file(folder, "modules.json");
  if (!text) return;
  const fs::path path = folder / "modules.json";
  const Json modules = parse_json(*text, path.string());
  if (!modules.is_array()) fail(ErrorCode::format, "{}: must be a list of modules", path.string());
  for (const Json& module : modules) {
    if (!module.is_object() || !module.contains("type") || !module["type"].is_string() || !module.contains("path") ||
        !module["path"].is_string())
      fail(ErrorCode::format, "{}: a module must be an object with type and path", path.string());
    if (!module["type"].get_ref<const std::string&>().ends_with(".Dense")) continue;
    const auto& name = module["path"].get_ref<const std::string&>();
    check_plain_file_name(name, path.string() + ": path of a module");
    add_shard(builder, folder / name / kSingle, name + ".");
  }
}

}  // namespace

std::optional<std::string> chat_template_of(const std::string& tokenizer_config, const fs::path& path) {
  const Json config = parse_object(tokenizer_config, path);
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array())
    fail(ErrorCode::format, "{}: chat_template must be a string or a list, found {}", path.string(),
         found->type_name());
  for (const Json& entry : *found) {
    const auto name = entry.is_object() ? entry.find("name") : entry.end();
    if (!entry.is_object() || name == entry.end() || *name != "default") continue;
    const auto text = entry.find("template");
    if (text != entry.end() && text->is_string()) return text->get<std::string>();
  }
  fail(ErrorCode::format, "{}: chat_template is a list without an entry named \"default\"", path.string());
}

ModelSource read_huggingface_folder(const fs::path& folder) {
  ModelSourceBuilder builder(SourceFormat::huggingface, folder);
  builder.config() = parse_object(read_file(folder / "config.json", limits::json_bytes), folder / "config.json");
  builder.generation_config() = read_object_if_present(folder, "generation_config.json");
  read_tokenizer_files(builder, folder);
  add_weights(builder, folder);
  add_dense_modules(builder, folder);
  return builder.finish();
}

}  // namespace candor
