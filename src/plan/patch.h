// The execution patch of a runtime overlay: {set, remove, add} on a manifest's steps. Everything is checked before
// anything is changed.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/js_value.h"

namespace candor::plan {

/// The steps after the patch. `steps` have passed validate_steps(); the result has not. A nullish patch changes
/// nothing.
[[nodiscard]] std::vector<Json> apply_patch(std::vector<Json> steps, js::Value patch);

/// What a patch gave, by the id of the step, for the trace of sources.
struct PatchIndex {
  std::unordered_set<std::string> added;
  std::unordered_map<std::string, std::unordered_set<std::string>> precision_fields;  ///< fields of the last set
  std::unordered_set<std::string> kv_io;                                              ///< steps whose kvIO was set
};

/// `patch` has passed apply_patch().
[[nodiscard]] PatchIndex index_patch(js::Value patch);

}  // namespace candor::plan
