#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/js_value.h"
#include "cli/output.h"
#include "cli/plan_commands.h"
#include "cli/receipt_file.h"
#include "cli/table.h"
#include "plan/diff.h"
#include "runtime/model_diff.h"

namespace candor::cli {
namespace {

enum class Kind { model, manifest, overlay, receipt, answer };

/// What one of the two arguments names.
struct Document {
  Kind kind = Kind::model;
  std::string path;
  Json json;  ///< null for a model
};

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::model:
      return "a model";
    case Kind::manifest:
      return "a manifest";
    case Kind::overlay:
      return "an overlay";
    case Kind::receipt:
      return "a receipt";
    case Kind::answer:
      return "an answer";
  }
  return "a model";
}

bool is_overlay(const Json& json) {
  if (json.empty()) return false;
  for (const auto& [key, value] : json.items())
    if (key != "session" && key != "executionPatch") return false;
  return true;
}

/// A file named *.json is told by what it holds; everything else is a model.
Document open_document(const std::string& path) {
  if (!path.ends_with(".json") || std::filesystem::is_directory(path)) return {Kind::model, path, {}};
  Json json = read_json_file(path);
  if (js::is_plain_object(js::get(&json, "inference"))) return {Kind::manifest, path, std::move(json)};
  if (js::is_plain_object(&json) && is_overlay(json)) return {Kind::overlay, path, std::move(json)};
  if (runtime::is_receipt(json)) return {Kind::receipt, path, std::move(json)};
  if (js::is_string(js::get(&json, "planDigest"))) return {Kind::answer, path, std::move(json)};
  fail(
      ErrorCode::usage,
      "{}: it is neither a manifest (inference), nor an overlay (session, executionPatch), nor a receipt (schema), nor "
      "an answer of candor run --json (planDigest)",
      path);
}

struct Difference {
  std::string before, after;  ///< digests or file names
  std::vector<plan::Change> changes;
};

/// A compiled model and its Program on this machine; no weight is read.
struct Bound {
  runtime::CompiledModel model;
  Program program;

  Bound(const std::string& path, const runtime::PlanOptions& options) : model(runtime::compile_model(path, options)) {
    runtime::LoadOptions load;
    load.threads = 1;  // scratch is sized by threads, which are not what is compared
    program = runtime::bind_model(model, *runtime::make_backend(runtime::backend_of(model), load), load);
  }
};

Difference diff_bound(const Bound& before, const Bound& after) {
  return {before.model.plan_digest, after.model.plan_digest,
          runtime::diff_models({before.model, before.program}, {after.model, after.program})};
}

runtime::PlanOptions overlaid(const Json& overlay) {
  runtime::PlanOptions options;
  if (overlay.contains("session")) options.session = overlay["session"];
  if (overlay.contains("executionPatch")) options.execution_patch = overlay["executionPatch"];
  return options;
}

/// A receipt without its seal, which differs where anything does.
Json receipt_json(const Document& document) {
  Json json = read_receipt(document.path).to_json();
  json.erase("receiptDigest");
  return json;
}

/// The model as it is now, under the plan options that the receipt states, beside what the receipt says of it.
Difference diff_with_receipt(const Document& model, const Document& receipt_file, bool receipt_first) {
  const runtime::Receipt receipt = read_receipt(receipt_file.path);
  const runtime::CompiledModel compiled = runtime::compile_model(model.path, receipt.plan);
  const auto tokenizer = load_tokenizer(compiled.source);
  ThreadPool pool;
  const runtime::ModelFacts facts = model_facts(compiled, tokenizer.get(), pool);
  return receipt_first ? Difference{receipt_file.path, model.path, runtime::diff_facts(receipt.model, facts)}
                       : Difference{model.path, receipt_file.path, runtime::diff_facts(facts, receipt.model)};
}

Json without_times(Json answer) {
  answer.erase("stats");
  return answer;
}

Difference diff_files(const Document& a, const Document& b, const std::string& on) {
  Difference out{a.path, b.path, {}};
  if (a.kind == Kind::manifest) out.changes = plan::diff_manifests(a.json, b.json);
  if (a.kind == Kind::receipt) out.changes = plan::diff_json("receipt", receipt_json(a), receipt_json(b));
  if (a.kind == Kind::answer) out.changes = plan::diff_json("answer", without_times(a.json), without_times(b.json));
  if (a.kind != Kind::overlay) return out;
  out.changes = plan::diff_json("overlay", a.json, b.json);
  if (on.empty()) return out;
  Difference touched = diff_bound(Bound(on, overlaid(a.json)), Bound(on, overlaid(b.json)));
  for (plan::Change& change : touched.changes) out.changes.push_back(std::move(change));
  return out;
}

bool shapes_a_plan(const PairArguments& pair) {
  const PlanArguments& plan = pair.plan;
  return plan.rows != "last" || !plan.kernel_path.empty() || !plan.registry.empty() || !plan.session.empty() ||
         !plan.patch.empty() || !plan.overlay.empty() || !pair.model_overlay.empty();
}

Difference diff_arguments(const PlanDiffArguments& arguments) {
  const PairArguments& pair = arguments.pair;
  const Document a = open_document(pair.plan.model);
  const Document b = pair.other.empty() ? Document{a.kind, a.path, a.json} : open_document(pair.other);
  const bool overlays = a.kind == Kind::overlay && b.kind == Kind::overlay;
  if (!arguments.on.empty() && !overlays)
    fail(ErrorCode::usage, "--on {}: it is for two overlays; {} is {}", arguments.on, b.path, to_string(b.kind));
  if (a.kind == Kind::model && b.kind == Kind::model)
    return diff_bound(Bound(a.path, model_options(pair)), Bound(b.path, plan_options(pair.plan)));
  if (shapes_a_plan(pair))
    fail(
        ErrorCode::usage,
        "{} is {}; --session, --patch, --overlay, --model-overlay, --rows, --kernel-path and --registry are for models",
        a.kind == Kind::model ? b.path : a.path, to_string(a.kind == Kind::model ? b.kind : a.kind));
  if (a.kind == Kind::model && b.kind == Kind::overlay)
    return diff_bound(Bound(a.path, {}), Bound(a.path, overlaid(b.json)));
  if (a.kind == Kind::model && b.kind == Kind::receipt) return diff_with_receipt(a, b, false);
  if (a.kind == Kind::receipt && b.kind == Kind::model) return diff_with_receipt(b, a, true);
  if (a.kind != b.kind)
    fail(ErrorCode::usage, "{} is {} and {} is {}; compare two of a kind, or a model with an overlay or a receipt",
         a.path, to_string(a.kind), b.path, to_string(b.kind));
  return diff_files(a, b, arguments.on);
}

/// A JSON text short enough for a table.
std::string shorten(const std::string& json) {
  constexpr std::size_t kWidth = 48;
  return printable(json, kWidth);
}

}  // namespace

int plan_diff(const PlanDiffArguments& arguments) {
  const Difference difference = diff_arguments(arguments);
  if (arguments.json) {
    Json list = Json::array();
    for (const plan::Change& change : difference.changes) list.push_back(change.to_json());
    print_json({{"before", difference.before}, {"after", difference.after}, {"changes", std::move(list)}});
    return 0;
  }
  print(fmt::format("before {}\nafter  {}\n\n", difference.before, difference.after));
  if (difference.changes.empty()) {
    print("Nothing differs.\n");
    return 0;
  }
  Table table({"where", "what", "field", "before", "after", "read by"});
  for (const plan::Change& change : difference.changes)
    table.add({change.where, change.subject, change.field, shorten(change.before), shorten(change.after),
               fmt::format("{}", fmt::join(change.touches, ", "))});
  table.print();
  return 0;
}

}  // namespace candor::cli
