// The checks that the original reader makes, with its messages. Private to src/formats.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace candor {

/// Appends a message for each failed check, in the original's order. `tensors` is the tensor map in use, or null.
void check_as_original(const Json& manifest, const Json& tensors, std::vector<std::string>& failures);

}  // namespace candor
