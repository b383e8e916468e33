#include "plan/resolve.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "kernels/kernel_ref.h"
#include "plan/schema.h"

namespace candor::plan {
namespace {

constexpr std::string_view kAttention = "attention";
constexpr std::string_view kCast = "cast";

/// What a policy must say for its check to be made.
bool policy_is(const Json& policies, std::string_view policy, std::string_view value) {
  return js::strict_equal(js::get(&policies, policy), value);
}

/// A dtype with its source.
struct Dtype {
  std::string name;
  std::string_view source;
};

/// A step while it is resolved.
class StepResolver {
 public:
  StepResolver(const Json& step, const ResolveContext& context, SlotDtypes& slots)
      : step_(&step), context_(context), slots_(slots), id_(js::get(step_, "id")->get<std::string>()) {}

  [[nodiscard]] ResolvedStep resolve(StepTrace& trace) {
    profile_ = find_profile();
    const PrecisionChoices choices = choose_precision(step_, profile_, &context_.session);
    const std::string src = normalize_slot(field("src"), id_ + ".src");
    const std::string dst = normalize_slot(field("dst"), id_ + ".dst");
    const std::string& held = held_dtype(src);
    const Dtype input = resolve_input(choices.input, src, held);
    const Dtype output = resolve_output(choices.output, src, held);
    const Precision precision{input.name, normalize(choices.math, "math"), normalize(choices.accum, "accum"),
                              output.name};
    check_capability(precision.output);
    slots_[dst] = precision.output;
    const std::optional<KvChoice> kv = resolve_kv();
    trace.set(id_, trace_sources(input, choices, output, kv));
    return build(src, dst, precision, kv);
  }

 private:
  struct KvChoice {
    KvIo io;
    std::string_view source;
  };

  [[nodiscard]] js::Value field(std::string_view key) const { return js::get(step_, key); }
  [[nodiscard]] bool is_op(std::string_view op) const { return js::strict_equal(field("op"), op); }
  [[nodiscard]] std::string label(std::string_view dtype) const {
    return fmt::format("{}.precision.{}Dtype", id_, dtype);
  }
  [[nodiscard]] std::string normalize(const Choice& choice, std::string_view dtype) const {
    return normalize_dtype(choice.value, label(dtype));
  }
  [[nodiscard]] std::string kernel() const { return js::trimmed_text(field("kernel")); }
  [[nodiscard]] std::string entry() const { return kernels::entry_name(field("entry")); }

  [[nodiscard]] js::Value find_profile() const {
    const js::Value profile = context_.profiles.find(step_);
    const js::Value ref = field("kernelRef");
    if (js::truthy(ref) && profile == nullptr && policy_is(context_.policies, "unresolvedKernel", "error"))
      refuse(
          "step \"{}\" references kernel profile {}@{} ({}) but no matching sessionDefaults.compute.kernelProfiles "
          "entry was found.",
          id_, js::to_string(js::get(ref, "id")), js::to_string(js::get(ref, "version")),
          js::to_string(js::get(ref, "digest")));
    return profile;
  }

  [[nodiscard]] const std::string& held_dtype(const std::string& src) const {
    const auto slot = slots_.find(src);
    if (slot == slots_.end())
      refuse("step \"{}\" reads slot \"{}\" before it is produced. Add an explicit producer step or cast/load bridge.",
             id_, src);
    return slot->second;
  }

  [[nodiscard]] Dtype resolve_input(const Choice& choice, const std::string& src, const std::string& held) const {
    if (js::nullish(choice.value)) return {held, source::kDerived};
    Dtype input{normalize(choice, "input"), choice.source};
    if (input.name != held && !is_op(kCast) && policy_is(context_.policies, "dtypeTransition", "require_cast_step"))
      refuse("step \"{}\" requires inputDtype={} but slot \"{}\" currently holds {}. Insert explicit cast step.", id_,
             input.name, src, held);
    return input;
  }

  [[nodiscard]] Dtype resolve_output(const Choice& choice, const std::string& src, const std::string& held) const {
    Dtype output{normalize(choice, "output"), choice.source};
    if (is_op(kCast)) return resolve_cast(src, held);
    if (output.source != source::kSessionDefault) return output;
    const kernels::OutputDtypes* declared = context_.registry.output_dtypes(kernel(), entry());
    if (declared != nullptr && declared->size() == 1) return {declared->front(), source::kDerived};
    return output;
  }

  [[nodiscard]] Dtype resolve_cast(const std::string& src, const std::string& held) const {
    Dtype output{normalize_dtype(field("toDtype"), id_ + ".toDtype"), source::kManifest};
    const js::Value from = field("fromDtype");
    if (js::truthy(from)) {
      const std::string from_dtype = normalize_dtype(from, id_ + ".fromDtype");
      if (from_dtype != held)
        refuse("cast step \"{}\" fromDtype={} does not match slot \"{}\" dtype={}", id_, from_dtype, src, held);
    }
    return output;
  }

  void check_capability(const std::string& output) const {
    if (is_op(kCast) || !policy_is(context_.policies, "unsupportedPrecision", "error")) return;
    const kernels::OutputDtypes* declared = context_.registry.output_dtypes(kernel(), entry());
    if (declared == nullptr)
      refuse("step \"{}\" kernel \"{}#{}\" is not present in kernel registry; cannot validate precision capability.",
             id_, kernel(), entry());
    if (declared->empty()) return;  // the kernel declares no output dtype
    // What a kernel declares may be no dtype of the schema.
    const Json text = output;
    (void)normalize_dtype(&text, label("output"));
    if (std::find(declared->begin(), declared->end(), output) == declared->end())
      refuse("step \"{}\" outputDtype={} is unsupported by kernel \"{}#{}\" (supported: {}).", id_, output, kernel(),
             entry(), fmt::join(*declared, ", "));
  }

  [[nodiscard]] std::optional<KvChoice> resolve_kv() const {
    if (!is_op(kAttention)) return std::nullopt;
    const js::Value session_dtype = js::at_path(&context_.session, {"kvcache", "kvDtype"});
    KvChoice kv = choose_kv(session_dtype);
    if (js::nullish(session_dtype)) return kv;
    const std::string required = normalize_dtype(session_dtype, "sessionDefaults.kvcache.kvDtype");
    if (kv.io.read != required || kv.io.write != required)
      refuse("step \"{}\" kvIO read/write ({}/{}) must match sessionDefaults.kvcache.kvDtype ({}).", id_, kv.io.read,
             kv.io.write, required);
    return kv;
  }

  [[nodiscard]] KvChoice choose_kv(js::Value session_dtype) const {
    if (const js::Value io = field("kvIO"); js::truthy(io)) return {read_kv(io, "kvIO"), source::kManifest};
    if (const js::Value io = js::get(profile_, "kvIO"); js::truthy(io))
      return {read_kv(io, "profile.kvIO"), source::kKernelProfile};
    if (js::nullish(session_dtype)) session_dtype = session_default(&context_.session, "activationDtype");
    const std::string dtype = normalize_dtype(session_dtype, id_ + ".sessionDefaults.kvcache.kvDtype");
    return {{dtype, dtype}, source::kSessionDefault};
  }

  [[nodiscard]] KvIo read_kv(js::Value io, std::string_view name) const {
    std::string read = normalize_dtype(js::get(io, "readDtype"), fmt::format("{}.{}.readDtype", id_, name));
    std::string write = normalize_dtype(js::get(io, "writeDtype"), fmt::format("{}.{}.writeDtype", id_, name));
    return {std::move(read), std::move(write)};
  }

  [[nodiscard]] StepSources trace_sources(const Dtype& input, const PrecisionChoices& choices, const Dtype& output,
                                          const std::optional<KvChoice>& kv) const {
    const auto trace = [&](std::string_view key, std::string_view found, std::string_view session_path) {
      if (is_patched(key)) return source::kRuntimePatch;
      return found == source::kSessionDefault ? context_.session_sources.of(session_path) : found;
    };
    StepSources sources;
    sources.input = trace("inputDtype", input.source, "");
    sources.math = trace("mathDtype", choices.math.source, "compute.defaults.mathDtype");
    sources.accum = trace("accumDtype", choices.accum.source, "compute.defaults.accumDtype");
    sources.output = trace("outputDtype", output.source, "compute.defaults.outputDtype");
    if (kv) {
      const bool patched = context_.patch.kv_io.contains(id_) || (is_added() && js::truthy(field("kvIO")));
      sources.kv_io = patched                                 ? source::kRuntimePatch
                      : kv->source == source::kSessionDefault ? context_.session_sources.of("kvcache.kvDtype")
                                                              : kv->source;
    }
    return sources;
  }

  [[nodiscard]] bool is_added() const { return context_.patch.added.contains(id_); }

  [[nodiscard]] bool is_patched(std::string_view key) const {
    if (is_added()) return !js::nullish(js::at_path(step_, {"precision", key}));
    const auto fields = context_.patch.precision_fields.find(id_);
    return fields != context_.patch.precision_fields.end() && fields->second.contains(std::string(key));
  }

  [[nodiscard]] ResolvedStep build(const std::string& src, const std::string& dst, const Precision& precision,
                                   const std::optional<KvChoice>& kv) const {
    ResolvedStep step;
    step.id = id_;
    step.op = field("op")->get<std::string>();
    step.phase = normalize_phase(field("phase"), id_ + ".phase");
    step.section = normalize_section(field("section"), id_ + ".section");
    step.src = src;
    step.dst = dst;
    step.kernel = kernel();
    step.entry = entry();
    step.precision = precision;
    if (kv) step.kv_io = kv->io;
    step.raw = *step_;
    js::set(step.raw, "src", src);
    js::set(step.raw, "dst", dst);
    js::set(step.raw, "phase", step.phase);
    js::set(step.raw, "section", step.section);
    js::set(step.raw, "precision",
            {{"inputDtype", precision.input},
             {"mathDtype", precision.math},
             {"accumDtype", precision.accum},
             {"outputDtype", precision.output}});
    js::set(step.raw, "kvIO", kv ? Json({{"readDtype", kv->io.read}, {"writeDtype", kv->io.write}}) : Json());
    return step;
  }

  js::Value step_;
  const ResolveContext& context_;
  SlotDtypes& slots_;
  std::string id_;
  js::Value profile_ = nullptr;
};

bool is_in_phase(const Json& step, std::string_view phase) {
  const std::string label = js::to_string(js::get(&step, "id")) + ".phase";
  return is_phase_match(normalize_phase(js::get(&step, "phase"), label), phase);
}

}  // namespace

std::string session_activation_dtype(const Json& session) {
  static const Json kFallback = "f16";
  return normalize_dtype(js::coalesce(js::at_path(&session, {"compute", "defaults", "activationDtype"}), &kFallback),
                         "sessionDefaults.compute.defaults.activationDtype");
}

SlotDtypes initial_slots(const Json& session) {
  return {{"state", session_activation_dtype(session)}};
}

ResolvedPhase resolve_phase(std::string_view phase, const std::vector<Json>& steps, const ResolveContext& context,
                            StepTrace& trace) {
  ResolvedPhase resolved;
  resolved.slots = initial_slots(context.session);
  for (const Json& step : steps)
    if (is_in_phase(step, phase)) resolved.steps.push_back(StepResolver(step, context, resolved.slots).resolve(trace));
  return resolved;
}

void check_phase_boundary(const std::vector<Json>& steps, const SlotDtypes& prefill_slots,
                          const ResolveContext& context) {
  std::unordered_set<std::string> written;
  for (const Json& step : steps) {
    if (!is_in_phase(step, "decode")) continue;
    const std::string id = js::get(&step, "id")->get<std::string>();
    const std::string src = normalize_slot(js::get(&step, "src"), id + ".src");
    const auto carried = prefill_slots.find(src);
    if (!written.contains(src) && carried != prefill_slots.end() && !js::strict_equal(js::get(&step, "op"), kCast)) {
      const js::Value input = choose_precision(&step, context.profiles.find(&step), &context.session).input.value;
      const std::string dtype =
          js::nullish(input) ? carried->second : normalize_dtype(input, id + ".precision.inputDtype");
      if (dtype != carried->second)
        refuse(
            "decode step \"{}\" reads carried slot \"{}\" as {} but prefill left {}. Add explicit cast at phase "
            "boundary.",
            id, src, dtype, carried->second);
    }
    written.insert(normalize_slot(js::get(&step, "dst"), id + ".dst"));
  }
}

}  // namespace candor::plan
