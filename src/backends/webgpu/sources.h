// The WGSL sources compiled into the program, by the file's name in the registry: "webgpu/rows.wgsl".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/webgpu/wgsl_interface.h"

namespace candor::webgpu {

struct WgslSource {
  std::string file;
  std::string_view text;
  WgslInterface interface;
};

/// All of them, in the order of their names.
[[nodiscard]] const std::vector<WgslSource>& sources();

/// Null if there is none.
[[nodiscard]] const WgslSource* find_source(std::string_view file);

}  // namespace candor::webgpu
