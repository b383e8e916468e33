#include "plan/schema.h"

#include <algorithm>
#include <array>

namespace candor::plan {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Takes a number without leading zeros off the front.
bool take_number(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto digits = static_cast<std::size_t>(end - text.begin());
  if (digits == 0 || (digits > 1 && text[0] == '0')) return false;
  text.remove_prefix(digits);
  return true;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// Takes one or more of [0-9A-Za-z.-] off the front.
bool take_identifiers(std::string_view& text) {
  const auto is_part = [](char c) { return is_digit(c) || is_letter(c) || c == '.' || c == '-'; };
  const auto end = std::find_if_not(text.begin(), text.end(), is_part);
  const auto length = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(length);
  return length > 0;
}

bool is_semver_text(std::string_view text) {
  if (!take_number(text) || !take(text, '.') || !take_number(text) || !take(text, '.') || !take_number(text))
    return false;
  if (take(text, '-') && !take_identifiers(text)) return false;
  if (take(text, '+') && !take_identifiers(text)) return false;
  return text.empty();
}

}  // namespace

bool is_digest(js::Value value) {
  if (!js::is_string(value)) return false;
  std::string_view text = value->get_ref<const std::string&>();
  constexpr std::string_view kPrefix = "sha256:";
  if (!text.starts_with(kPrefix)) return false;
  text.remove_prefix(kPrefix.size());
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_semver(js::Value value) {
  return js::is_string(value) && is_semver_text(value->get_ref<const std::string&>());
}

bool has_execution(js::Value manifest_inference) {
  return js::is_array(js::at_path(manifest_inference, {"execution", "steps"}));
}

const Json& default_session() {
  static const Json session = Json::parse(R"({
    "compute": {
      "defaults": {"activationDtype": "f16", "mathDtype": "f16", "accumDtype": "f32", "outputDtype": "f16"},
      "kernelProfiles": []
    },
    "kvcache": null,
    "decodeLoop": null
  })");
  return session;
}

const Json& default_policies() {
  static const Json policies = Json::parse(R"({
    "precisionPrecedence": "step_then_kernel_profile_then_session_default",
    "unsupportedPrecision": "error",
    "dtypeTransition": "require_cast_step",
    "unresolvedKernel": "error"
  })");
  return policies;
}

Json default_patch() {
  return Json::parse(R"({"set": [], "remove": [], "add": []})");
}

Json default_config() {
  Json config = Json::object();
  config["model"] = nullptr;
  config["sessionDefaults"] = default_session();
  config["execution"]["steps"] = Json::array();
  config["execution"]["policies"] = default_policies();
  return config;
}

void refuse_type(std::string_view label, std::string_view expected, js::Value got) {
  fail(ErrorCode::format, "[ExecutionV0] {} must be {}; got {}", label, expected, js::to_string(got));
}

std::string normalize_dtype(js::Value value, std::string_view label) {
  std::string dtype = js::to_lower(js::trimmed_text(value));
  if (dtype != "f16" && dtype != "f32")
    refuse("{} must be \"f16\" or \"f32\"; got \"{}\"", label, js::to_string(value));
  return dtype;
}

std::string normalize_phase(js::Value value, std::string_view label) {
  std::string phase = js::to_lower(js::trimmed_text(value));
  if (phase != "prefill" && phase != "decode" && phase != "both")
    refuse("{} must be prefill|decode|both; got \"{}\"", label, js::to_string(value));
  return phase;
}

std::string normalize_section(js::Value value, std::string_view label) {
  std::string section = js::trimmed_text(value);
  if (std::find(kSections.begin(), kSections.end(), section) == kSections.end())
    refuse("{} must be preLayer|layer|postLayer|sampling; got \"{}\"", label, js::to_string(value));
  return section;
}

std::string normalize_slot(js::Value value, std::string_view label) {
  std::string slot = js::is_string(value) ? js::trimmed_text(value) : std::string();
  if (slot.empty()) refuse("{} must be a non-empty string", label);
  return slot;
}

}  // namespace candor::plan
