// Options that several subcommands share: which model, with which kernels and overlay, loaded how.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace candor::cli {

struct PlanArguments {
  std::string model;
  std::string kernel_path;
  std::string backend;  ///< empty: what the manifest's kernels are of, or cpu
  std::string registry;
  std::vector<std::string> session;  ///< "key=value"
  std::string patch;                 ///< file of an executionPatch
  std::string overlay;               ///< file of {session, executionPatch}
  std::string pooling;               ///< where no file says it
  std::string rows = "last";         ///< or "all"
};

/// Two plans: MODEL's as it is or with an overlay of its own, and OTHER's, or MODEL's again, with the PlanArguments'.
struct PairArguments {
  PlanArguments plan;
  std::string other;          ///< empty: MODEL
  std::string model_overlay;  ///< file of MODEL's {session, executionPatch}
  std::string model_backend;  ///< MODEL's; empty: as PlanArguments::backend

  [[nodiscard]] const std::string& other_model() const { return other.empty() ? plan.model : other; }
};

struct LoadArguments {
  unsigned threads = 0;
  std::string isa;
  std::string webgpu_library;
  std::string adapter;
  std::string verify = "header";
  std::uint32_t context = 0;
  std::uint32_t prefill_chunk = runtime::kDefaultPrefillRows;
};

/// A positional argument that names a model, by path or by a short name of candor list; `model` becomes its path.
CLI::Option* add_model(CLI::App& app, std::string& model, const std::string& help, const std::string& name = "MODEL");

/// The positional MODEL and what shapes its plan.
void add_plan_options(CLI::App& app, PlanArguments& arguments);
/// --pooling, for what makes a manifest.
void add_pooling(CLI::App& app, std::string& pooling);
/// MODEL, OTHER and what shapes their plans.
void add_pair_options(CLI::App& app, PairArguments& arguments);
void add_load_options(CLI::App& app, LoadArguments& arguments);

/// --webgpu-lib and --adapter.
void add_adapter(CLI::App& app, std::string& library, std::string& adapter);

/// --threads alone, for what computes but runs no plan.
void add_threads(CLI::App& app, unsigned& threads);
/// Single ones of the load options.
void add_isa(CLI::App& app, std::string& isa);
void add_verify(CLI::App& app, std::string& verify);
void add_prefill_chunk(CLI::App& app, std::uint32_t& rows);
/// --rows, of subcommands that look at a plan; those that run one know which rows they need.
void add_rows(CLI::App& app, std::string& rows);
/// --context alone; `otherwise` says what it is without the option.
void add_context(CLI::App& app, std::uint32_t& context, const std::string& otherwise);
/// --quant, a name that parse_quant_mix() knows.
void add_quant(CLI::App& app, std::string& quant);

/// The overlay file comes first, then the --session settings over it in their order; a patch file's entries follow the
/// overlay's.
[[nodiscard]] runtime::PlanOptions plan_options(const PlanArguments& arguments);
/// Those of MODEL's own plan.
[[nodiscard]] runtime::PlanOptions model_options(const PairArguments& arguments);
/// `show_progress`: a bar on standard error while weights are loaded, if that is a terminal.
[[nodiscard]] runtime::LoadOptions load_options(const LoadArguments& arguments, bool show_progress = true);

/// Both together with --verify.
[[nodiscard]] EngineOptions engine_options(const PlanArguments& plan, const LoadArguments& load, bool show_progress);

/// A JSON file a person wrote. `what` names it in errors.
[[nodiscard]] Json read_json_file(const std::string& path);

}  // namespace candor::cli
