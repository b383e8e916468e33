// The session of a plan: the schema's defaults, the manifest's over them, the runtime overlay's over those.
#pragma once

#include "base/js_value.h"

namespace candor::plan {

/// The runtime session without what a manifest decides: the dtypes the manifest states win over the overlay's, and an
/// empty list of kernel profiles does not erase the manifest's. (A step's precision is patched through executionPatch.)
/// Other values, of whatever type, are returned as they are.
[[nodiscard]] Json normalize_runtime_session(js::Value runtime_session, js::Value manifest_session);

/// Defaults, manifest and the normalised runtime session, merged.
[[nodiscard]] Json resolve_session(js::Value manifest_session, js::Value runtime_session);

}  // namespace candor::plan
