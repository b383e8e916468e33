// From a path to a checked plan: model source, manifest, execution plan, data flow. Nothing is allocated and no weight
// is read, so this is what `candor plan` and `candor inspect` need; binding and loading come after (loaded_model.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/model_source.h"
#include "kernels/registry.h"
#include "plan/dataflow.h"
#include "plan/execution_plan.h"

namespace candor::runtime {

/// Positions of a sequence unless the user asks for others: the model's own maximum, but no more than this, because
/// memory for the KV cache is taken in full.
inline constexpr std::uint32_t kDefaultContext = 4096;

/// Which rows reach lm_head. Generation needs the last of each sequence; logits and perplexity need all, and no
/// sampling. `all` is an execution patch like any other and stands in the plan's sources.
enum class RowSelection : std::uint8_t { last, all };

struct PlanOptions {
  /// A JSON file of rules or, as the older format has it, of steps; or an id: of a built-in path, or where `registry`
  /// is given of one in its kernel-paths. Empty: the backend's default.
  std::string kernel_path;
  std::string registry;  ///< folder with registry.json, kernel-ref-digests.json, kernel-paths/; empty: the built-in one
  /// Whose kernel path a manifest is generated with, where `kernel_path` names none: cpu or webgpu-fused; empty: cpu.
  /// The plan's kernels must be of this backend, if one is given.
  std::string backend;
  Json session;          ///< overlay `session`: an object, or null
  Json execution_patch;  ///< overlay `executionPatch`: an object, or null
  RowSelection rows = RowSelection::last;
  /// Positions that a manifest made here is to hold (models::DescribeOptions); 0: session kvcache.maxSeqLen, else
  /// kDefaultContext.
  std::uint32_t context = 0;
  std::string pooling;  ///< for a manifest made here of files that do not say it (models::DescribeOptions)
  Json manifest;        ///< used in place of the model's own; null: its own
};

struct CompiledModel {
  std::shared_ptr<const kernels::KernelRegistry> registry;  ///< what the plan was compiled against; never null
  ModelSource source;
  Json manifest;
  Json overlay;  ///< what the compiler was given: {session, executionPatch}, keys only where present
  plan::ExecutionPlan plan;
  plan::Dataflow flow;
  std::string manifest_digest;  ///< sha256 over the canonical manifest
  std::string plan_digest;      ///< sha256 over the canonical plan
  std::uint32_t layers = 0;
  std::uint64_t vocabulary = 0;
  std::uint64_t max_positions = 0;
  std::vector<std::uint32_t> stop_tokens;
};

/// The registry that `options` names. Throws Error(not_found), Error(format).
[[nodiscard]] std::shared_ptr<const kernels::KernelRegistry> registry_of(const PlanOptions& options);

/// ModelSource::open(); but where an artifact's manifest was changed after it was sealed, and what was changed is the
/// pin of a kernel, the error names the step, the digest expected and the one found as well.
[[nodiscard]] ModelSource open_model(const std::filesystem::path& path, const kernels::KernelRegistry& registry);

/// The manifest of a model: an artifact's own, or one generated from its family and a kernel path.
[[nodiscard]] Json manifest_of(const ModelSource& source, const PlanOptions& options);

/// A manifest made from the model's family and a kernel path, whatever manifest it has.
[[nodiscard]] Json generate_manifest(const ModelSource& source, const PlanOptions& options);

/// The backend whose kernels the plan's steps name. Throws Error(plan) if they are of several.
[[nodiscard]] std::string backend_of(const CompiledModel& compiled);

/// Throws Error: not_found, format, unsupported, integrity (a kernelRef that differs from the kernel in this build,
/// naming step, expected and found), plan.
[[nodiscard]] CompiledModel compile_model(const std::filesystem::path& path, const PlanOptions& options);

}  // namespace candor::runtime
