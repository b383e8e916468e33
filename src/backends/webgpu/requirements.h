// What a Program needs of a device, step by step: features that its kernels require, workgroup sizes and memory,
// bindings and their sizes. Goals: a device is asked for exactly this, and what an adapter lacks is known, with the
// steps' names, before anything is uploaded. Not a goal: other kernels in place of those; a plan's kernels stand in its
// manifest.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "backends/program.h"
#include "backends/webgpu/adapter.h"
#include "backends/webgpu/wgsl_interface.h"

namespace candor::webgpu {

struct Requirements {
  std::set<std::string> features;
  std::uint64_t binding_bytes = 0;    ///< of the largest storage binding
  std::uint64_t buffer_bytes = 0;     ///< of the largest buffer
  std::uint64_t workgroup_bytes = 0;  ///< of workgroup memory
  std::uint32_t workgroup_size = 0;
  std::uint32_t storage_buffers = 0;  ///< of one pass

  void add(const Requirements& other);
  /// Whether a device made for this can do the other too.
  [[nodiscard]] bool cover(const Requirements& other) const;
};

[[nodiscard]] Requirements requirements_of(const WgslEntry& entry);
[[nodiscard]] Requirements requirements_of(const Instruction& instruction, const Program& program, Phase phase);
[[nodiscard]] Requirements requirements_of(const Program& program);

/// What the adapter lacks of it, each a phrase: "feature subgroups", "24.6 KiB of workgroup memory (it has 16.0 KiB)".
[[nodiscard]] std::vector<std::string> missing(const Requirements& wanted, const Adapter& adapter);

struct UnsupportedStep {
  std::string step, kernel;
  std::vector<std::string> missing;
};

/// The steps that the adapter cannot run, in the Program's order, each once.
[[nodiscard]] std::vector<UnsupportedStep> unsupported_steps(const Program& program, const Adapter& adapter);

/// Throws Error(device) with the first steps that the adapter cannot run.
void check_adapter(const Program& program, const Adapter& adapter);

}  // namespace candor::webgpu
