// The constants of the doppler.execution/v0 schema, and how its plain fields are read: dtypes, phases, sections, slots.
// Reading normalises and refuses; nothing here knows a step.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/js_value.h"

namespace candor::plan {

inline constexpr std::string_view kSchemaId = "doppler.execution/v0";

/// The sections of a phase, in the order of execution.
inline constexpr std::array<std::string_view, 4> kSections{"preLayer", "layer", "postLayer", "sampling"};
/// The keys of session.compute.defaults.
inline constexpr std::array<std::string_view, 4> kDtypeKeys{"activationDtype", "mathDtype", "accumDtype",
                                                            "outputDtype"};

/// True for "sha256:" and 64 lower-case hexadecimal digits.
[[nodiscard]] bool is_digest(js::Value value);
/// True for "1.2.3", "1.2.3-x.1", "1.2.3+y": three numbers without leading zeros, then an optional pre-release and an
/// optional build part, whose insides are not checked.
[[nodiscard]] bool is_semver(js::Value value);
/// True if a manifest's inference has an execution with a list of steps.
[[nodiscard]] bool has_execution(js::Value manifest_inference);

[[nodiscard]] const Json& default_session();
[[nodiscard]] const Json& default_policies();
[[nodiscard]] Json default_patch();
[[nodiscard]] Json default_config();

/// Throws Error(plan) with the text "[ExecutionV0] …".
template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::plan, "[ExecutionV0] " + fmt::format(format, std::forward<Args>(args)...));
}

/// Throws Error(format): a value has a type that cannot be read at all.
[[noreturn]] void refuse_type(std::string_view label, std::string_view expected, js::Value got);

/// "f16" or "f32", from any case and with blanks around it. `label` names the field in the error.
[[nodiscard]] std::string normalize_dtype(js::Value value, std::string_view label);
/// "prefill", "decode" or "both", from any case and with blanks around it.
[[nodiscard]] std::string normalize_phase(js::Value value, std::string_view label);
/// "preLayer", "layer", "postLayer" or "sampling", with blanks around it.
[[nodiscard]] std::string normalize_section(js::Value value, std::string_view label);
/// The trimmed name of a slot.
[[nodiscard]] std::string normalize_slot(js::Value value, std::string_view label);

/// True if something of `phase` belongs to `target`.
[[nodiscard]] inline bool is_phase_match(std::string_view phase, std::string_view target) {
  return phase == "both" || phase == target;
}

}  // namespace candor::plan
