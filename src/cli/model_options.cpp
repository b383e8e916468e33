#include "cli/model_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/progress.h"
#include "cli/command.h"
#include "hub/model_folder.h"
#include "plan/overlay.h"

namespace candor::cli {
namespace {

Json read_object(const std::string& path) {
  Json value = read_json_file(path);
  if (!value.is_object()) fail(ErrorCode::usage, "{}: must hold a JSON object", path);
  return value;
}

void read_overlay(const std::string& path, runtime::PlanOptions& options) {
  const Json overlay = read_object(path);
  for (const auto& [key, value] : overlay.items()) {
    if (key != "session" && key != "executionPatch")
      fail(ErrorCode::usage, "{}: \"{}\" is unknown; an overlay has session and executionPatch", path, printable(key));
    (key == "session" ? options.session : options.execution_patch) = value;
  }
}

}  // namespace

Json read_json_file(const std::string& path) {
  return parse_json(read_file(path, limits::json_bytes), path);
}

CLI::Option* add_model(CLI::App& app, std::string& model, const std::string& help, const std::string& name) {
  return app.add_option(name, model, help)->required()->transform([](const std::string& argument) {
    if (argument.empty()) throw CLI::ValidationError("is empty; give a path, or a name that candor list shows");
    return resolve_model(argument).string();
  });
}

void add_plan_options(CLI::App& app, PlanArguments& arguments) {
  (void)add_model(app, arguments.model,
                  "A GGUF file, a Hugging Face folder, an artifact folder, or a name that candor list shows");
  app.add_option("--kernel-path", arguments.kernel_path,
                 "What chooses the kernels: a built-in id, an id of --registry, or a JSON file of rules or of steps; "
                 "not for artifacts, which pin theirs")
      ->type_name("ID|FILE")
      ->group("Plan");
  app.add_option("--backend", arguments.backend, "Whose kernels: cpu or webgpu (default: the manifest's own, else cpu)")
      ->check(CLI::IsMember(std::vector<std::string>{"cpu", "webgpu"}))
      ->type_name("NAME")
      ->group("Plan");
  app.add_option(
         "--registry", arguments.registry,
         "A folder with registry.json, kernel-ref-digests.json and kernel-paths in place of the built-in registry")
      ->type_name("DIR")
      ->group("Plan");
  add_repeated(app, "--session", arguments.session,
               "A session setting, such as kvcache.kvDtype=f16; the value is JSON, or else a text; repeatable")
      ->type_name("KEY=VALUE")
      ->group("Plan");
  app.add_option("--patch", arguments.patch, "An executionPatch {set, remove, add} for the plan's steps")
      ->type_name("FILE")
      ->group("Plan");
  app.add_option("--overlay", arguments.overlay, "{session, executionPatch}; --session and --patch come over it")
      ->type_name("FILE")
      ->group("Plan");
  add_pooling(app, arguments.pooling);
}

void add_pooling(CLI::App& app, std::string& pooling) {
  app.add_option(
         "--pooling", pooling,
         "How the rows of a text become one vector, where no file of the model says it: mean, first or last, and "
         "\",normalize\" after it for length 1")
      ->type_name("HOW")
      ->group("Plan");
}

void add_pair_options(CLI::App& app, PairArguments& arguments) {
  add_plan_options(app, arguments.plan);
  add_model(app, arguments.other,
            "What to compare with (default: MODEL); the options below shape its plan, not MODEL's", "OTHER")
      ->required(false);
  app.remove_option(app.get_option("--backend"));
  app.add_option_function<std::string>(
         "--backend",
         [&arguments](const std::string& names) {
           const auto comma = std::min(names.find(','), names.size());
           arguments.model_backend = names.substr(0, comma);
           arguments.plan.backend = comma == names.size() ? names : names.substr(comma + 1);
           for (const std::string& name : {arguments.model_backend, arguments.plan.backend})
             if (name != "cpu" && name != "webgpu")
               throw CLI::ValidationError("--backend", "is cpu, webgpu, or two of them with a comma between");
         },
         "Whose kernels, of both or of MODEL and OTHER: webgpu, or cpu,webgpu (default: the manifest's own, else cpu)")
      ->type_name("NAME[,NAME]")
      ->group("Plan");
  app.add_option("--model-overlay", arguments.model_overlay, "{session, executionPatch} of MODEL's own plan")
      ->type_name("FILE")
      ->group("Plan");
}

void add_threads(CLI::App& app, unsigned& threads) {
  in_range(app.add_option("--threads", threads, "Worker threads (default: one for each processor)"), 1u, 1024u)
      ->type_name("N")
      ->group("Execution");
}

void add_context(CLI::App& app, std::uint32_t& context, const std::string& otherwise) {
  in_range(app.add_option("--context", context, fmt::format("Positions of a sequence (default: {})", otherwise)), 1u,
           static_cast<std::uint32_t>(limits::context))
      ->type_name("N")
      ->group("Execution");
}

void add_adapter(CLI::App& app, std::string& library, std::string& adapter) {
  app.add_option("--adapter", adapter, "Part of a GPU's name, where candor device lists several")
      ->type_name("NAME")
      ->group("Execution");
  app.add_option("--webgpu-lib", library,
                 "The WebGPU library (default: CANDOR_WEBGPU_LIB, then where scripts/get-webgpu puts it)")
      ->type_name("FILE")
      ->group("Execution");
}

void add_isa(CLI::App& app, std::string& isa) {
  app.add_option("--isa", isa, "Instruction set: portable, avx2, avx512, neon (default: the best here)")
      ->type_name("NAME")
      ->group("Execution");
}

void add_verify(CLI::App& app, std::string& verify) {
  app.add_option("--verify", verify,
                 "Hash an artifact's weights first: full, sampled (a sixteenth, at random) or header (none)")
      ->check(CLI::IsMember(std::vector<std::string>{"header", "sampled", "full"}))
      ->type_name("HOW")
      ->capture_default_str()
      ->group("Execution");
}

void add_prefill_chunk(CLI::App& app, std::uint32_t& rows) {
  in_range(app.add_option("--prefill-chunk", rows, "Prompt tokens computed at once; changes no result"), 1u, 65536u)
      ->type_name("ROWS")
      ->capture_default_str()
      ->group("Execution");
}

void add_rows(CLI::App& app, std::string& rows) {
  app.add_option("--rows", rows,
                 "Which rows reach the logits: last, as run computes; all, as logits, eval and compare do")
      ->check(CLI::IsMember(std::vector<std::string>{"last", "all"}))
      ->type_name("ROWS")
      ->capture_default_str()
      ->group("Plan");
}

void add_quant(CLI::App& app, std::string& quant) {
  const std::vector<std::string> mixes{"keep", "f32", "f16", "bf16", "q8_0", "q6_k", "q5_k_m", "q4_k_m"};
  app.add_option("--quant", quant, fmt::format("How matrices are encoded: {}", fmt::join(mixes, ", ")))
      ->check(CLI::IsMember(mixes))
      ->type_name("MIX")
      ->capture_default_str();
}

void add_load_options(CLI::App& app, LoadArguments& arguments) {
  add_context(app, arguments.context, "the plan's or the model's, at most 4096");
  add_threads(app, arguments.threads);
  add_isa(app, arguments.isa);
  add_adapter(app, arguments.webgpu_library, arguments.adapter);
  add_verify(app, arguments.verify);
  add_prefill_chunk(app, arguments.prefill_chunk);
}

runtime::PlanOptions model_options(const PairArguments& arguments) {
  runtime::PlanOptions options;
  if (!arguments.model_overlay.empty()) read_overlay(arguments.model_overlay, options);
  options.backend = arguments.model_backend;
  return options;
}

runtime::PlanOptions plan_options(const PlanArguments& arguments) {
  runtime::PlanOptions options;
  options.kernel_path = arguments.kernel_path;
  options.pooling = arguments.pooling;
  options.backend = arguments.backend;
  options.registry = arguments.registry;
  options.rows = arguments.rows == "all" ? runtime::RowSelection::all : runtime::RowSelection::last;
  if (!arguments.overlay.empty()) read_overlay(arguments.overlay, options);
  for (const std::string& setting : arguments.session) plan::apply_setting(options.session, setting);
  if (!arguments.patch.empty())
    options.execution_patch = plan::join_patches(options.execution_patch, read_object(arguments.patch));
  return options;
}

runtime::LoadOptions load_options(const LoadArguments& arguments, bool show_progress) {
  runtime::LoadOptions options;
  options.threads = arguments.threads;
  options.isa = arguments.isa;
  options.webgpu_library = arguments.webgpu_library;
  options.adapter = arguments.adapter;
  options.context = arguments.context;
  options.prefill_rows = arguments.prefill_chunk;
  if (!show_progress) return options;
  // The bar is made when the total is known and taken down when everything is loaded.
  options.progress = [bar = std::make_shared<std::optional<Progress>>()](std::uint64_t done, std::uint64_t total) {
    if (!*bar) bar->emplace("loading", total, true);
    (*bar)->update(done);
    if (done >= total) bar->reset();
  };
  return options;
}

EngineOptions engine_options(const PlanArguments& plan, const LoadArguments& load, bool show_progress) {
  return {plan_options(plan), load_options(load, show_progress), *parse_verify_mode(load.verify)};
}

}  // namespace candor::cli
