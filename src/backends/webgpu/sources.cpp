#include "backends/webgpu/sources.h"

#include <array>
#include <utility>

namespace candor::embedded {
extern const std::string_view wgsl_attention;
extern const std::string_view wgsl_elements;
extern const std::string_view wgsl_routing;
extern const std::string_view wgsl_rows;
extern const std::string_view wgsl_sample;
extern const std::string_view wgsl_short_conv;
extern const std::string_view wgsl_weights;
}  // namespace candor::embedded

namespace candor::webgpu {

const std::vector<WgslSource>& sources() {
  static const std::vector<WgslSource> all = [] {
    const std::array<std::pair<const char*, std::string_view>, 7> texts{
        {{"webgpu/attention.wgsl", embedded::wgsl_attention},
         {"webgpu/elements.wgsl", embedded::wgsl_elements},
         {"webgpu/routing.wgsl", embedded::wgsl_routing},
         {"webgpu/rows.wgsl", embedded::wgsl_rows},
         {"webgpu/sample.wgsl", embedded::wgsl_sample},
         {"webgpu/short_conv.wgsl", embedded::wgsl_short_conv},
         {"webgpu/weights.wgsl", embedded::wgsl_weights}}};
    std::vector<WgslSource> out;
    for (const auto& [file, text] : texts) out.push_back({file, text, parse_wgsl(text, file)});
    return out;
  }();
  return all;
}

const WgslSource* find_source(std::string_view file) {
  for (const WgslSource& source : sources())
    if (source.file == file) return &source;
  return nullptr;
}

}  // namespace candor::webgpu
