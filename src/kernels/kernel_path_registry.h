// The kernel-path registry: kernel paths by id, some of them names of others. Paths are JSON as their files have it; an
// alias gives the very path it stands for. Not a goal: reading files; a function given by the caller does.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/js_value.h"

namespace candor::kernels {

/// One entry of the registry file, trimmed: it names a file or another entry.
struct KernelPathEntry {
  std::string id;
  std::string file;      ///< empty if there is none
  std::string alias_of;  ///< empty if there is none; `file` wins
  std::string status;    ///< "canonical" where none is given
};

class KernelPathRegistry {
 public:
  /// No paths.
  KernelPathRegistry() = default;
  /// `registry` is {entries: [{id, file? | aliasOf?, status?}]}; `load` gives the JSON of a file. Throws Error(plan),
  /// and what `load` throws.
  KernelPathRegistry(const Json& registry, const std::function<Json(const std::string&)>& load);
  // Paths are pointed to: they stay where they are when the registry moves, a copy would point into the other one.
  KernelPathRegistry(KernelPathRegistry&&) = default;
  KernelPathRegistry& operator=(KernelPathRegistry&&) = default;

  /// The path of that id; null if there is none.
  [[nodiscard]] const Json* find(std::string_view id) const;
  /// The path of that id. Throws Error(not_found), listing the ids there are.
  [[nodiscard]] const Json& get(std::string_view id) const;
  /// All ids in the order in which they were resolved: the registry's, but a name's target comes before the name.
  [[nodiscard]] std::vector<std::string> ids() const;
  [[nodiscard]] const std::vector<KernelPathEntry>& entries() const { return entries_; }

 private:
  void resolve(const KernelPathEntry& entry);

  std::vector<KernelPathEntry> entries_;
  std::unordered_map<std::string, Json> files_;               // by file name
  std::unordered_map<std::string, std::size_t> entry_by_id_;  // into entries_
  std::unordered_map<std::string, const Json*> paths_;        // by id, into files_
  std::vector<std::string> order_;                            // ids as they were resolved
};

/// Reads `registry.json` in `directory` and the files it names there. A name that leaves the directory is refused.
[[nodiscard]] KernelPathRegistry load_kernel_paths(const std::filesystem::path& directory);

}  // namespace candor::kernels
