// The WebGPU backend: a buffer for every slot that is alive, weights in device memory, and a phase of the Program as
// one submission. Goals: the plan's kernels and no others; a step without one is refused by name before anything is
// uploaded. Not a goal: the CPU beside it; every step of such a plan runs on the device.
#pragma once

#include <memory>
#include <string>

#include "backends/backend.h"

namespace candor::webgpu {

struct WebGpuOptions {
  std::string library;    ///< path of the WebGPU library; empty: see library.h
  std::string adapter;    ///< part of the adapter's name; empty: the only one
  bool self_test = true;  ///< whether kernels that this device did not run before are tested first (self_test.h)
};

/// Throws Error(device) without a library or an adapter, or where several would do.
[[nodiscard]] std::unique_ptr<Backend> make_webgpu_backend(const WebGpuOptions& options);

}  // namespace candor::webgpu
