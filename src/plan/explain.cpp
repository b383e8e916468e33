#include "plan/explain.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/js_value.h"
#include "kernels/registry.h"
#include "plan/profiles.h"
#include "plan/schema.h"

namespace candor::plan {
namespace {

constexpr std::string_view kPrecision = "precision";
constexpr std::string_view kKvIo = "kvIO";

/// The places that may give one step of one phase its dtypes.
class Explainer {
 public:
  Explainer(const ExplainInput& input, const std::vector<ResolvedStep>& phase, const ResolvedStep& step)
      : input_(input), phase_(phase), step_(step), profiles_(&input.plan.session) {
    find_manifest_step();
    find_profile();
  }

  [[nodiscard]] std::vector<FieldExplanation> fields() {
    std::vector<FieldExplanation> out;
    out.push_back(settle("inputDtype", step_.precision.input, input_candidates()));
    out.push_back(settle("mathDtype", step_.precision.math, precision_candidates("mathDtype")));
    out.push_back(settle("accumDtype", step_.precision.accum, precision_candidates("accumDtype")));
    out.push_back(settle("outputDtype", step_.precision.output, output_candidates()));
    if (!step_.kv_io) return out;
    out.push_back(settle("kvIO.readDtype", step_.kv_io->read, kv_candidates("readDtype")));
    out.push_back(settle("kvIO.writeDtype", step_.kv_io->write, kv_candidates("writeDtype")));
    return out;
  }

 private:
  using Candidates = std::vector<Candidate>;

  static void add(Candidates& list, js::Value value, std::string_view source, std::string place,
                  std::string lost = {}) {
    if (js::nullish(value)) return;
    list.push_back({js::to_string(value), std::string(source), std::move(place), std::move(lost)});
  }

  /// The first candidate that nothing else rules out is the one that is used.
  static FieldExplanation settle(std::string field, std::string value, Candidates candidates) {
    const Candidate* used = nullptr;
    for (Candidate& candidate : candidates) {
      if (!candidate.lost.empty()) continue;
      if (used == nullptr) {
        used = &candidate;
      } else {
        candidate.lost = used->place + " comes first";
      }
    }
    std::string source(used == nullptr ? source::kDerived : std::string_view(used->source));
    return {std::move(field), std::move(value), std::move(source), std::move(candidates)};
  }

  void find_manifest_step() {
    const js::Value steps = js::at_path(&input_.inference, {"execution", "steps"});
    if (!js::is_array(steps)) return;
    for (std::size_t i = 0; i < steps->size(); ++i)
      if (js::strict_equal(js::get(&(*steps)[i], "id"), step_.id)) manifest_step_ = {i, &(*steps)[i]};
  }

  void find_profile() {
    const js::Value profile = profiles_.find(&step_.raw);
    const js::Value list = js::at_path(&input_.plan.session, {"compute", "kernelProfiles"});
    if (profile == nullptr || !js::is_array(list)) return;
    for (std::size_t i = 0; i < list->size(); ++i)
      if (&(*list)[i] == profile) profile_ = {i, profile};
  }

  /// What patch and manifest say of a member of the step's `object` ("precision", "kvIO"). A patch replaces the whole
  /// object, and the last one stays.
  [[nodiscard]] Candidates step_candidates(std::string_view object, std::string_view key) const {
    Candidates list;
    std::string replaced;
    const js::Value patch = js::get(&input_.overlay, "executionPatch");
    const js::Value set = js::get(patch, "set");
    for (std::size_t i = js::is_array(set) ? set->size() : 0; i-- > 0;) {
      const js::Value given = js::get(&(*set)[i], object);
      if (!js::strict_equal(js::get(&(*set)[i], "id"), step_.id) || given == nullptr) continue;
      add(list, js::get(given, key), source::kRuntimePatch, fmt::format("executionPatch.set[{}].{}.{}", i, object, key),
          replaced);
      replaced = fmt::format("executionPatch.set[{}] replaces the whole {}", i, object);
    }
    const js::Value added = js::get(patch, "add");
    for (std::size_t i = 0; js::is_array(added) && i < added->size(); ++i) {
      const js::Value step = js::get(&(*added)[i], "step");
      if (!js::strict_equal(js::get(step, "id"), step_.id)) continue;
      add(list, js::at_path(step, {object, key}), source::kRuntimePatch,
          fmt::format("executionPatch.add[{}].step.{}.{}", i, object, key));
    }
    if (manifest_step_)
      add(list, js::at_path(manifest_step_->second, {object, key}), source::kManifest,
          fmt::format("execution.steps[{}].{}.{}", manifest_step_->first, object, key), replaced);
    if (profile_)
      add(list, js::at_path(profile_->second, {object, key}), source::kKernelProfile,
          fmt::format("compute.kernelProfiles[{}].{}.{}", profile_->first, object, key));
    return list;
  }

  /// A session's dtype; a manifest's stands over the overlay's.
  void add_session_default(Candidates& list, std::string_view key) const {
    const js::Value overlay = js::at_path(&input_.overlay, {"session", "compute", "defaults", key});
    const js::Value manifest = js::at_path(&input_.inference, {"sessionDefaults", "compute", "defaults", key});
    const std::string place = fmt::format("sessionDefaults.compute.defaults.{}", key);
    if (js::nullish(manifest)) {
      add(list, overlay, source::kRuntimeSession, fmt::format("overlay session.compute.defaults.{}", key));
    } else {
      add(list, manifest, source::kManifest, place);
      add(list, overlay, source::kRuntimeSession, fmt::format("overlay session.compute.defaults.{}", key),
          "a manifest's dtypes stand over the overlay's");
    }
    add(list, js::at_path(&default_session(), {"compute", "defaults", key}), source::kDerived,
        fmt::format("the schema's default {}", key));
  }

  [[nodiscard]] Candidates precision_candidates(std::string_view key) const {
    Candidates list = step_candidates(kPrecision, key);
    add_session_default(list, key);
    return list;
  }

  [[nodiscard]] Candidates input_candidates() const {
    Candidates list = step_candidates(kPrecision, "inputDtype");
    std::string dtype = js::to_string(js::at_path(&input_.plan.session, {"compute", "defaults", "activationDtype"}));
    std::string place = "the session's activationDtype, which " + step_.src + " starts with";
    for (const ResolvedStep& earlier : phase_) {
      if (&earlier == &step_) break;
      if (earlier.dst != step_.src) continue;
      dtype = earlier.precision.output;
      place = fmt::format("slot {}, as {} writes it", step_.src, earlier.id);
    }
    const Json value = dtype;
    add(list, &value, source::kDerived, std::move(place));
    return list;
  }

  [[nodiscard]] Candidates output_candidates() const {
    if (step_.op == "cast") {
      Candidates list;
      add(list, js::get(&step_.raw, "toDtype"), source::kManifest, "the cast's toDtype");
      return list;
    }
    Candidates list = step_candidates(kPrecision, "outputDtype");
    const kernels::OutputDtypes* declared = input_.registry.output_dtypes(step_.kernel, step_.entry);
    if (declared != nullptr && declared->size() == 1) {
      const Json value = declared->front();
      add(list, &value, source::kDerived, fmt::format("the only dtype that {}#{} writes", step_.kernel, step_.entry));
    }
    add_session_default(list, "outputDtype");
    return list;
  }

  [[nodiscard]] Candidates kv_candidates(std::string_view key) const {
    Candidates list = step_candidates(kKvIo, key);
    add(list, js::at_path(&input_.overlay, {"session", "kvcache", "kvDtype"}), source::kRuntimeSession,
        "overlay session.kvcache.kvDtype");
    add(list, js::at_path(&input_.inference, {"sessionDefaults", "kvcache", "kvDtype"}), source::kManifest,
        "sessionDefaults.kvcache.kvDtype");
    add(list, js::at_path(&input_.plan.session, {"compute", "defaults", "activationDtype"}), source::kDerived,
        "the session's activationDtype");
    return list;
  }

  using Indexed = std::pair<std::size_t, js::Value>;

  const ExplainInput& input_;
  const std::vector<ResolvedStep>& phase_;
  const ResolvedStep& step_;
  KernelProfiles profiles_;
  std::optional<Indexed> manifest_step_;
  std::optional<Indexed> profile_;
};

const ResolvedStep* find_in(const std::vector<ResolvedStep>& phase, std::string_view id) {
  const auto found = std::find_if(phase.begin(), phase.end(), [&](const ResolvedStep& step) { return step.id == id; });
  return found == phase.end() ? nullptr : &*found;
}

std::vector<std::string> ids_close_to(const std::vector<const ResolvedStep*>& steps, std::string_view name) {
  constexpr std::size_t kMost = 6;
  std::vector<std::string> ids;
  for (const ResolvedStep* step : steps)
    if (ids.size() < kMost && step->id.find(name) != std::string::npos) ids.push_back(step->id);
  return ids;
}

}  // namespace

Json StepExplanation::to_json() const {
  Json list = Json::object();
  for (const FieldExplanation& field : fields) {
    Json lost = Json::array();
    std::string place;
    for (const Candidate& candidate : field.candidates) {
      if (candidate.lost.empty()) {
        place = candidate.place;
      } else {
        lost.push_back({{"value", candidate.value},
                        {"source", candidate.source},
                        {"place", candidate.place},
                        {"reason", candidate.lost}});
      }
    }
    list[field.field] = {{"value", field.value}, {"source", field.source}, {"place", place}, {"lost", std::move(lost)}};
  }
  return {{"step", step->id}, {"phase", phase}, {"fields", std::move(list)}};
}

const std::vector<std::string_view>& explained_fields() {
  static const std::vector<std::string_view> fields{"inputDtype",  "mathDtype",      "accumDtype",
                                                    "outputDtype", "kvIO.readDtype", "kvIO.writeDtype"};
  return fields;
}

std::vector<StepExplanation> explain_step(const ExplainInput& input, std::string_view id) {
  std::vector<StepExplanation> out;
  const auto explain = [&](std::string_view name, const std::vector<ResolvedStep>& phase) {
    if (const ResolvedStep* step = find_in(phase, id))
      out.push_back({std::string(name), step, Explainer(input, phase, *step).fields()});
  };
  explain("prefill", input.plan.prefill);
  explain("decode", input.plan.decode);
  return out;
}

std::string find_step(const ExecutionPlan& plan, std::string_view name) {
  const std::vector<const ResolvedStep*> steps = all_steps(plan);
  using Match = bool (*)(const ResolvedStep&, std::string_view);
  constexpr Match kMatches[] = {
      [](const ResolvedStep& step, std::string_view text) { return step.id == text; },
      [](const ResolvedStep& step, std::string_view text) { return step.op == text; },
      [](const ResolvedStep& step, std::string_view text) { return step.id.ends_with(text); }};
  for (const Match matches : kMatches) {
    std::vector<std::string> found;
    for (const ResolvedStep* step : steps)
      if (!name.empty() && matches(*step, name)) found.push_back(step->id);
    if (found.size() == 1) return found.front();
    if (!found.empty())
      fail(ErrorCode::usage, "\"{}\" means {} steps: {}; give one of these ids", printable(name), found.size(),
           fmt::join(found, ", "));
  }
  const std::vector<std::string> close = ids_close_to(steps, name);
  fail(ErrorCode::not_found, "no step is called \"{}\"{}{}; the plan has {} steps, which candor plan show lists",
       printable(name), close.empty() ? "" : "; close to it: ", fmt::join(close, ", "), steps.size());
}

}  // namespace candor::plan
