// A picture of a plan: steps as boxes in the order they run, slots as lines from the step that writes them to those
// that read them, colours for encodings. Layers that do the same are drawn once.
#pragma once

#include <string>
#include <string_view>

#include "plan/dataflow.h"

namespace candor::plan {

/// An SVG document of one phase ("prefill" or "decode") of a checked plan.
[[nodiscard]] std::string to_svg(const Dataflow& flow, std::string_view phase, std::string_view title);

}  // namespace candor::plan
