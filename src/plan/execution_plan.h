// The execution plan: what `compile` makes of a manifest and a runtime overlay. Each phase is a list of resolved steps;
// everything a step needs stands in it, and where each value came from stands in `sources`. Goals: one value that later
// passes (data flow, lint, diff, binding) read without looking at the manifest again, and that prints as the
// `doppler.execution/v0` compiler prints it. Not a goal: shapes, encodings, buffers; those are found later. Rejected:
// typed fields for everything, because constants and weights are the kernel's business and travel as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace candor::kernels {
class KernelRegistry;
}

namespace candor::plan {

/// The four logical dtypes of a step, each "f16" or "f32".
struct Precision {
  std::string input;
  std::string math;
  std::string accum;
  std::string output;
};

/// The logical dtypes in which an attention step reads and writes the KV cache, each "f16" or "f32".
struct KvIo {
  std::string read;
  std::string write;
};

/// One step of one phase, after the patch and with its dtypes resolved.
struct ResolvedStep {
  std::string id;
  std::string op;
  std::string phase;    ///< "prefill", "decode" or "both"
  std::string section;  ///< "preLayer", "layer", "postLayer" or "sampling"
  std::string src;
  std::string dst;
  std::string kernel;  ///< the kernel's file, trimmed; empty for a cast without one
  std::string entry;   ///< the entry in it; "main" where the step names none
  Precision precision;
  std::optional<KvIo> kv_io;  ///< present exactly for op "attention"
  Json raw;                   ///< the complete step: constants, inputs, weights, layers, kernelRef, …
};

struct ExecutionPlan {
  std::vector<ResolvedStep> prefill;
  std::vector<ResolvedStep> decode;
  Json session;   ///< sessionDefaults: defaults, manifest and overlay merged
  Json policies;  ///< the manifest's policies over the defaults
  Json sources;   ///< {session: {"sessionDefaults.<path>": {source}}, steps: {<id>: {"precision.inputDtype": {source},
                  ///< …}}}
  /// The compiler's complete output with the original's keys in the original's order: sessionDefaults, policies,
  /// resolvedSteps {prefill, decode, all}, runtimeInferencePatch {…, kernelPath, …}, resolvedSources.
  Json result;

  [[nodiscard]] const Json& to_json() const { return result; }
};

/// Prefill's steps, then those of decode that are decode's alone. They live as long as `plan`.
[[nodiscard]] std::vector<const ResolvedStep*> all_steps(const ExecutionPlan& plan);

struct CompileInput {
  const Json& manifest_inference;                     ///< `inference` of the manifest
  const Json* runtime_inference = nullptr;            ///< the overlay {session, executionPatch}; null for none
  std::string model_id = "model";                     ///< names the inline kernel path; empty counts as "model"
  std::int64_t layers = 0;                            ///< transformer layers; 0 or less: no per-layer overrides
  const kernels::KernelRegistry* registry = nullptr;  ///< null: the built-in registry
};

/// Compiles the `execution` of a manifest. Nothing if the manifest has none. The first fault found is thrown as
/// Error(plan) with the text "[ExecutionV0] …"; a value of a type that cannot be read at all is an Error(format) with a
/// text of the same form. Source: the doppler.execution/v0 schema (docs/execution-v0.md).
[[nodiscard]] std::optional<ExecutionPlan> compile(const CompileInput& input);

}  // namespace candor::plan
