// Layering of configuration values: the rule by which an overlay changes a base.
#pragma once

#include "base/js_value.h"

namespace candor::plan {

/// `override` over `base`. Undefined keeps the base; null replaces it; two objects are merged key by key, the base's
/// keys first; anything else, arrays included, replaces. A key "__proto__" of the override is dropped. The result is
/// undefined only where both are; then it is null here.
[[nodiscard]] Json merge_runtime_values(js::Value base, js::Value override_value);

}  // namespace candor::plan
