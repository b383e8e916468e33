#include "kernels/active_kernel_path.h"

#include <utility>

namespace candor::kernels {

void ActiveKernelPath::set(js::Value path, std::string source, js::Value policy) {
  path_ = path == nullptr ? std::nullopt : std::optional(*path);
  source_ = js::truthy(path) ? std::move(source) : "none";
  policy_ = resolve_active_path_policy(policy);
}

}  // namespace candor::kernels
