#include "plan/text_case.h"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>

#include "base/file.h"
#include "base/js_value.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "kernels/kernel_ref.h"

namespace candor::plan {
namespace {

TextSection parse_section(std::string_view header) {
  TextSection section;
  const auto colon = header.find(':');
  section.name = js::trim(header.substr(0, colon));
  if (colon != std::string_view::npos) section.value = js::trim(header.substr(colon + 1));
  return section;
}

/// Sets a member that is not there.
void fill(Json& object, const char* key, Json value) {
  if (!object.contains(key)) object[key] = std::move(value);
}

Json ref_of(const Json& step, const kernels::KernelRegistry& registry) {
  const std::string kernel = js::trimmed_text(js::get(&step, "kernel"));
  const std::string entry = kernels::entry_name(js::get(&step, "entry"));
  if (registry.digest(kernel, entry)) return kernels::build_kernel_ref(registry, kernel, entry).to_json();
  return {{"id", "unknown"}, {"version", "1.0.0"}, {"digest", "sha256:" + std::string(64, '0')}};
}

Json fill_step(Json step, const kernels::KernelRegistry& registry) {
  if (!step.is_object()) return step;
  fill(step, "op", "norm");
  fill(step, "phase", "both");
  fill(step, "section", "layer");
  fill(step, "src", "state");
  fill(step, "dst", "state");
  fill(step, "layers", "all");
  if (step["op"] != "cast") {
    fill(step, "kernel", "free.wgsl");
    fill(step, "kernelRef", "$ref");
  }
  if (step.value("kernelRef", Json()) == "$ref") step["kernelRef"] = ref_of(step, registry);
  Json kept = Json::object();
  for (const auto& [key, value] : step.get_ref<const Json::object_t&>())
    if (value != "$absent") kept[key] = value;
  return kept;
}

Json fill_overlay(Json overlay, const kernels::KernelRegistry& registry) {
  const js::Value added = js::at_path(&overlay, {"executionPatch", "add"});
  if (!js::is_array(added)) return overlay;
  for (Json& entry : overlay["executionPatch"]["add"])
    if (entry.is_object() && entry.contains("step")) entry["step"] = fill_step(entry["step"], registry);
  return overlay;
}

/// The case's profiles, then a bare one for each other kernel of its steps.
Json make_profiles(const TextCase& text_case, const Json& steps, const Json& overlay,
                   const kernels::KernelRegistry& registry) {
  Json profiles = Json::array();
  const TextSection* section = text_case.find("profiles");
  if (section != nullptr && section->value == "none") return profiles;
  std::vector<Json> refs;
  const auto add = [&](Json profile) {
    const Json ref = profile["kernelRef"];
    if (!ref.is_object() || std::find(refs.begin(), refs.end(), ref) != refs.end()) return;
    refs.push_back(ref);
    profiles.push_back(std::move(profile));
  };
  if (section != nullptr) {
    for (const std::string& line : section->lines) {
      Json profile = parse_json(line, text_case.title);
      profile["kernelRef"] = ref_of(profile, registry);
      profile.erase("kernel");
      profile.erase("entry");
      add(std::move(profile));
    }
  }
  const auto add_step = [&](const Json& step) {
    if (js::is_plain_object(js::get(&step, "kernelRef"))) add({{"kernelRef", step["kernelRef"]}});
  };
  for (const Json& step : steps) add_step(step);
  if (const js::Value added = js::at_path(&overlay, {"executionPatch", "add"}); js::is_array(added))
    for (const Json& entry : *added)
      if (const js::Value step = js::get(&entry, "step")) add_step(*step);
  return profiles;
}

}  // namespace

std::string TextSection::text() const {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

Json TextSection::json() const {
  return parse_json(text(), name);
}

const TextSection* TextCase::find(const std::string& name) const {
  for (const TextSection& section : sections)
    if (section.name == name) return &section;
  return nullptr;
}

std::vector<TextCase> read_text_cases(const std::filesystem::path& file) {
  std::vector<TextCase> cases;
  std::ifstream in(file);
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    const std::string_view text = js::trim(line);
    if (text.starts_with("=== ")) {
      cases.push_back({std::string(text.substr(4)), number, {}});
    } else if (cases.empty() || text.empty()) {
      continue;
    } else if (text.starts_with("# ")) {
      cases.back().sections.push_back(parse_section(text.substr(2)));
    } else if (cases.back().sections.empty()) {
      throw std::runtime_error(fmt::format("{}:{}: a line outside of a section", file.string(), number));
    } else {
      cases.back().sections.back().lines.emplace_back(text);
    }
  }
  return cases;
}

kernels::KernelRegistry text_registry(const std::filesystem::path& file) {
  const Json json = parse_json(read_file(file, limits::json_bytes), file.string());
  std::vector<std::string> keys = json["onlyDigests"];
  for (const Json& variant : json["operations"]["test"]["variants"])
    keys.push_back(variant["file"].get<std::string>() + "#" + variant.value("entryPoint", "main"));
  Json digests = Json::object();
  for (const std::string& key : keys) digests[key] = sha256_hex(key);
  return {json, digests};
}

TextInput make_input(const TextCase& text_case, const kernels::KernelRegistry& registry) {
  TextInput input;
  Json steps = Json::array();
  if (const TextSection* section = text_case.find("steps"))
    for (const std::string& line : section->lines)
      steps.push_back(fill_step(parse_json(line, text_case.title), registry));
  if (const TextSection* section = text_case.find("overlay")) input.overlay = fill_overlay(section->json(), registry);

  Json session = Json::object();
  if (const TextSection* section = text_case.find("session")) session = section->json();
  const bool has_compute = session.is_object() && (!session.contains("compute") || session["compute"].is_object());
  if (has_compute && !(session.contains("compute") && session["compute"].contains("kernelProfiles")))
    session["compute"]["kernelProfiles"] = make_profiles(text_case, steps, input.overlay, registry);

  input.inference = {
      {"schema", "doppler.execution/v0"}, {"sessionDefaults", session}, {"execution", {{"steps", steps}}}};
  if (const TextSection* section = text_case.find("policies"))
    input.inference["execution"]["policies"] = section->json();
  if (const TextSection* section = text_case.find("manifest")) {
    const Json members = section->json();
    for (const auto& [key, value] : members.get_ref<const Json::object_t&>()) input.inference[key] = value;
  }
  return input;
}

}  // namespace candor::plan
