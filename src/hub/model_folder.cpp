#include "hub/model_folder.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/error.h"

namespace candor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartial = ".partial";

std::optional<fs::path> folder_from(const char* variable) {
  const char* value = std::getenv(variable);
  if (!value || *value == '\0') return std::nullopt;
  return fs::path(value);
}

bool holds(const fs::path& folder, std::string_view name) {
  std::error_code ignored;
  return fs::is_regular_file(folder / name, ignored);
}

std::string kind_of(const fs::path& path) {
  std::error_code ignored;
  if (path.filename().string().ends_with(kPartial)) return "unfinished";
  if (fs::is_regular_file(path, ignored)) return path.extension() == ".gguf" ? "GGUF" : "";
  if (holds(path, "manifest.json")) return "artifact";
  if (holds(path, "config.json")) return "Hugging Face";
  for (const auto& entry : fs::directory_iterator(path, ignored))
    if (entry.path().extension() == ".gguf") return "GGUF";
  return "";
}

std::uint64_t bytes_of(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return fs::file_size(path, ignored);
  std::uint64_t total = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path, ignored))
    if (entry.is_regular_file(ignored)) total += entry.file_size(ignored);
  return total;
}

/// The one GGUF file of a folder that is no other model; nothing if there are several, or none.
std::optional<fs::path> only_gguf(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".gguf")) continue;
    const bool later_part = name.find("-of-") != std::string::npos && name.find("-00001-of-") == std::string::npos;
    if (!later_part) found.push_back(entry.path());
  }
  if (found.size() != 1) return std::nullopt;
  return found.front();
}

bool is_plain_name(const fs::path& name) {
  if (name.empty() || name.is_absolute()) return false;
  return std::none_of(name.begin(), name.end(), [](const fs::path& part) { return part == ".." || part == "."; });
}

}  // namespace

fs::path models_folder() {
  if (const auto folder = folder_from("CANDOR_MODELS")) return *folder;
  if (const auto data = folder_from("XDG_DATA_HOME")) return *data / "candor" / "models";
  if (const auto home = folder_from("HOME")) return *home / ".local" / "share" / "candor" / "models";
  fail(ErrorCode::usage, "there is no folder for models: set CANDOR_MODELS, XDG_DATA_HOME or HOME");
}

std::vector<ListedModel> list_models(const fs::path& folder) {
  std::vector<ListedModel> models;
  std::error_code ignored;
  const auto add = [&](const fs::path& path, const std::string& name) {
    const std::string kind = kind_of(path);
    if (!kind.empty()) models.push_back({name, path, kind, bytes_of(path)});
    return !kind.empty();
  };
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (add(entry.path(), name) || !entry.is_directory(ignored)) continue;
    for (const auto& inner : fs::directory_iterator(entry.path(), ignored))
      (void)add(inner.path(), name + "/" + inner.path().filename().string());
  }
  std::sort(models.begin(), models.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return models;
}

fs::path resolve_model(const std::string& argument) {
  std::error_code ignored;
  if (fs::exists(argument, ignored) || !is_plain_name(argument)) return argument;
  fs::path folder;
  try {
    folder = models_folder();
  } catch (const Error&) {
    return argument;  // without a folder there are no names
  }
  if (fs::is_regular_file(folder / (argument + ".gguf"), ignored)) return folder / (argument + ".gguf");
  const fs::path named = folder / argument;
  if (!fs::exists(named, ignored)) return argument;
  if (!fs::is_directory(named, ignored) || holds(named, "manifest.json") || holds(named, "config.json")) return named;
  return only_gguf(named).value_or(named);
}

}  // namespace candor
