#include <CLI/CLI.hpp>
#include <map>
#include <optional>

#include "base/error.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/table.h"
#include "engine/golden.h"
#include "formats/artifact_writer.h"
#include "kernels/kernel_ref.h"
#include "kernels/registry.h"
#include "plan/pins.h"

namespace candor::cli {
namespace {

struct RebindArguments {
  std::string model;
  std::string kernel_path;
  bool check = false;
  double tolerance = 1e-3;
  bool json = false;
};

/// What a step runs, or a kernel profile is for, before and after.
struct KernelChange {
  std::string place;  ///< a step's id, or "kernel profile 3"
  std::string before;
  std::string after;
};

/// A kernel as a pin names it.
struct PinnedKernel {
  std::string name;    ///< "file#entry", or a ref's id
  std::string digest;  ///< as it stands in the ref
  std::string ref;     ///< "id@version sha256:…"

  /// With as much of the ref as tells it from `other`.
  [[nodiscard]] std::string text_beside(const PinnedKernel& other) const {
    return fmt::format("{} {}", name, short_digest(digest) == short_digest(other.digest) ? ref : short_digest(digest));
  }
};

PinnedKernel pinned_kernel(std::string name, js::Value ref) {
  const auto text = [&](std::string_view key) { return printable(js::to_string(js::get(ref, key))); };
  return {printable(name), text("digest"), fmt::format("{}@{} {}", text("id"), text("version"), text("digest"))};
}

/// By place.
std::map<std::string, PinnedKernel> kernels_of(const Json& inference) {
  std::map<std::string, PinnedKernel> out;
  if (const js::Value steps = js::at_path(&inference, {"execution", "steps"}); js::is_array(steps))
    for (const Json& step : *steps)
      out[printable(js::to_string(js::get(&step, "id")))] =
          pinned_kernel(fmt::format("{}#{}", js::trimmed_text(js::get(&step, "kernel")),
                                    kernels::entry_name(js::get(&step, "entry"))),
                        js::get(&step, "kernelRef"));
  const js::Value profiles = js::at_path(&inference, {"sessionDefaults", "compute", "kernelProfiles"});
  for (std::size_t i = 0; js::is_array(profiles) && i < profiles->size(); ++i) {
    const js::Value ref = js::get(&(*profiles)[i], "kernelRef");
    out[fmt::format("kernel profile {}", i)] = pinned_kernel(js::to_string(js::get(ref, "id")), ref);
  }
  return out;
}

std::vector<KernelChange> changes_between(const Json& before, const Json& after) {
  const auto old_kernels = kernels_of(before);
  const auto new_kernels = kernels_of(after);
  std::vector<KernelChange> changes;
  for (const auto& [place, kernel] : old_kernels) {
    const auto found = new_kernels.find(place);
    if (found == new_kernels.end()) {
      changes.push_back({place, kernel.text_beside({}), ""});
    } else if (found->second.name != kernel.name || found->second.ref != kernel.ref) {
      changes.push_back({place, kernel.text_beside(found->second), found->second.text_beside(kernel)});
    }
  }
  for (const auto& [place, kernel] : new_kernels)
    if (!old_kernels.contains(place)) changes.push_back({place, "", kernel.text_beside({})});
  return changes;
}

/// The manifest with the kernels of this build, or those that a kernel path chooses.
Json rebound_manifest(const ModelSource& source, const RebindArguments& arguments) {
  Json manifest = source.manifest();
  if (arguments.kernel_path.empty()) {
    plan::pin_anew(manifest["inference"], kernels::builtin_registry());
    return manifest;
  }
  runtime::PlanOptions options;
  options.kernel_path = arguments.kernel_path;
  const Json made = runtime::generate_manifest(source, options);
  manifest["inference"]["execution"] = made["inference"]["execution"];
  manifest["inference"]["sessionDefaults"] = made["inference"]["sessionDefaults"];
  manifest["kernelPath"] = made["kernelPath"];
  return manifest;
}

/// Runs the new manifest on the tokens that the old one recorded.
std::optional<GoldenComparison> compare(const RebindArguments& arguments, Json& manifest) {
  if (!manifest.contains("golden")) return std::nullopt;
  EngineOptions options;
  options.plan.rows = runtime::RowSelection::all;
  options.plan.manifest = manifest;
  Engine engine(arguments.model, options);
  const GoldenComparison comparison = compare_golden(engine, manifest["golden"]);
  manifest["golden"] = record_golden(engine);
  return comparison;
}

std::string describe(const std::optional<GoldenComparison>& golden) {
  if (!golden) return "The manifest has no golden logits to compare with.";
  if (golden->same_bits)
    return fmt::format("Golden logits: the same bits at {}.", counted(golden->positions, "position"));
  return fmt::format("Golden logits: differ by at most {} of the largest; another token is the likeliest at {} of {}.",
                     short_number(golden->largest_difference), golden->other_tokens,
                     counted(golden->positions, "position"));
}

Json to_json(const std::vector<KernelChange>& changes) {
  Json list = Json::array();
  for (const KernelChange& change : changes)
    list.push_back({{"step", change.place}, {"before", change.before}, {"after", change.after}});
  return list;
}

void print_changes(const std::vector<KernelChange>& changes) {
  Table table({"step", "pinned", "now"});
  for (const KernelChange& change : changes) table.add({change.place, change.before, change.after});
  table.print();
}

int rebind(const RebindArguments& arguments) {
  const ModelSource source = runtime::open_model(arguments.model, kernels::builtin_registry());
  if (source.format() != SourceFormat::artifact)
    fail(ErrorCode::usage, "{}: only artifacts pin kernels; the manifest of a {} model is made anew at each run",
         arguments.model, to_string(source.format()));
  Json manifest = rebound_manifest(source, arguments);
  const auto changes = changes_between(*js::get(&source.manifest(), "inference"), manifest["inference"]);
  Json report_json{{"stale", !changes.empty()}, {"changes", to_json(changes)}};
  if (!arguments.json) {
    if (changes.empty()) print("Every step is pinned to the kernel it would be pinned to now.\n");
    if (!changes.empty()) print_changes(changes);
  }
  if (changes.empty() || arguments.check) {
    if (arguments.json) print_json(report_json);
    return changes.empty() ? 0 : exit_status(ErrorCode::integrity);
  }

  const auto golden = compare(arguments, manifest);
  const bool accepted = !golden || golden->largest_difference <= arguments.tolerance;
  if (accepted) replace_manifest(arguments.model, std::move(manifest));
  if (arguments.json) {
    report_json["golden"] = golden ? Json{{"sameBits", golden->same_bits},
                                          {"largestDifference", golden->largest_difference},
                                          {"otherTokens", golden->other_tokens},
                                          {"positions", golden->positions}}
                                   : Json();
    report_json["pinned"] = accepted;
    print_json(report_json);
  } else {
    print(describe(golden) + "\n");
    if (accepted) print("Pinned anew.\n");
  }
  if (!accepted)
    fail(ErrorCode::integrity,
         "{}: the golden logits differ by {} of the largest, more than {}; nothing was written. If that is intended, "
         "allow it with --tolerance",
         arguments.model, short_number(golden->largest_difference), short_number(arguments.tolerance));
  return 0;
}

}  // namespace

void add_rebind(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("rebind", "Pin an artifact's steps to the kernels of this build");
  auto arguments = std::make_shared<RebindArguments>();
  (void)add_model(app, arguments->model, "An artifact folder; its manifest.json is replaced");
  app.add_option("--kernel-path", arguments->kernel_path, "Choose the kernels anew by these rules")
      ->type_name("ID|FILE");
  app.add_flag("--check", arguments->check, "Change nothing; status 7 if a pin is stale");
  in_range(app.add_option("--tolerance", arguments->tolerance,
                          "How far golden logits may move, as a share of the largest, before nothing is pinned"),
           0.0, 1.0)
      ->capture_default_str();
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), rebind);
}

}  // namespace candor::cli
