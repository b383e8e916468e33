#include "kernels/kernel_path_registry.h"

#include <fmt/ranges.h>

#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"

namespace candor::kernels {
namespace {

/// A field as trimmed text; empty if it is no string or blank.
std::string text_field(const Json& entry, std::string_view key) {
  const js::Value value = js::get(&entry, key);
  return js::is_string(value) ? std::string(js::trim(value->get_ref<const std::string&>())) : std::string();
}

KernelPathEntry parse_entry(const Json& json) {
  if (!js::is_object(&json)) fail(ErrorCode::plan, "Kernel path registry entry must be an object");
  KernelPathEntry entry;
  entry.id = text_field(json, "id");
  if (entry.id.empty()) fail(ErrorCode::plan, "Kernel path registry entry is missing required string id");
  entry.file = text_field(json, "file");
  entry.alias_of = text_field(json, "aliasOf");
  const js::Value status = js::get(&json, "status");
  entry.status = js::is_string(status) ? status->get<std::string>() : "canonical";
  return entry;
}

void check_target(const KernelPathEntry& entry) {
  if (entry.file.empty() && entry.alias_of.empty())
    fail(ErrorCode::plan, "Kernel path registry entry \"{}\" must include file or aliasOf", entry.id);
}

}  // namespace

KernelPathRegistry::KernelPathRegistry(const Json& registry, const std::function<Json(const std::string&)>& load) {
  if (!js::is_object(&registry)) fail(ErrorCode::plan, "Kernel path registry must be a JSON object");
  const js::Value entries = js::get(&registry, "entries");
  if (!js::is_array(entries) || entries->empty()) fail(ErrorCode::plan, "Kernel path registry has no entries");
  for (const Json& json : *entries) {
    KernelPathEntry entry = parse_entry(json);
    if (!entry_by_id_.emplace(entry.id, entries_.size()).second)
      fail(ErrorCode::plan, "Duplicate kernel path registry id: {}", entry.id);
    check_target(entry);
    entries_.push_back(std::move(entry));
  }
  for (const KernelPathEntry& entry : entries_)
    if (!entry.file.empty() && !files_.contains(entry.file)) files_.emplace(entry.file, load(entry.file));
  for (const KernelPathEntry& entry : entries_) resolve(entry);
}

void KernelPathRegistry::resolve(const KernelPathEntry& entry) {
  std::vector<std::string> chain;  // names on the way, all standing for the path that is found at the end
  std::unordered_set<std::string> seen;
  std::string id = entry.id;
  const Json* path = nullptr;
  while (path == nullptr) {
    if (const auto known = paths_.find(id); known != paths_.end()) {
      path = known->second;
      break;
    }
    const auto found = entry_by_id_.find(id);
    if (found == entry_by_id_.end()) fail(ErrorCode::plan, "Unknown kernel path in registry: {}", id);
    if (!seen.insert(id).second)
      fail(ErrorCode::plan, "Kernel path alias cycle detected: {} -> {}", fmt::join(chain, " -> "), id);
    chain.push_back(id);
    const KernelPathEntry& target = entries_[found->second];
    if (target.file.empty()) {
      id = target.alias_of;
      continue;
    }
    path = &files_.at(target.file);
    if (!js::truthy(path))
      fail(ErrorCode::plan, "Kernel path registry entry {} references missing file: {}", id, target.file);
  }
  for (auto name = chain.rbegin(); name != chain.rend(); ++name) {
    paths_.emplace(*name, path);
    order_.push_back(*name);
  }
}

const Json* KernelPathRegistry::find(std::string_view id) const {
  const auto found = paths_.find(std::string(id));
  return found == paths_.end() ? nullptr : found->second;
}

const Json& KernelPathRegistry::get(std::string_view id) const {
  if (const Json* path = find(id)) return *path;
  fail(ErrorCode::not_found, "Unknown kernel path: {}. Available: {}", id, fmt::join(ids(), ", "));
}

std::vector<std::string> KernelPathRegistry::ids() const {
  js::ObjectBuilder ordered;
  for (const std::string& id : order_) ordered[id] = nullptr;
  const Json object = ordered.take();
  return js::keys(&object);
}

KernelPathRegistry load_kernel_paths(const std::filesystem::path& directory) {
  const auto load = [&](const std::string& name) {
    const std::filesystem::path relative = std::filesystem::path(name).lexically_normal();
    if (relative.is_absolute() || *relative.begin() == "..")
      fail(ErrorCode::plan, "Kernel path file \"{}\" lies outside of {}", name, directory.string());
    return parse_json(read_file(directory / relative, limits::json_bytes), name);
  };
  return {load("registry.json"), load};
}

}  // namespace candor::kernels
