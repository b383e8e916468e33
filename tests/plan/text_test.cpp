// Runs the *.test files of this folder; README.md says how they are written.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/js_value.h"
#include "plan/diff.h"
#include "plan/execution_plan.h"
#include "plan/lint.h"
#include "plan/overlay.h"
#include "plan/pins.h"
#include "plan/text_case.h"

namespace candor::plan {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(CANDOR_SOURCE_DIR) / "tests" / "plan";

/// Runs of blanks as one, so that columns may be aligned.
std::string squeeze(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  return out;
}

std::string squeeze(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += squeeze(line) + "\n";
  return out;
}

void print_phase(const char* phase, const std::vector<ResolvedStep>& steps, std::string& out) {
  for (const ResolvedStep& step : steps) {
    const Precision& p = step.precision;
    out += fmt::format("{} {}: {} {} -> {} {}, math {}, accum {}", phase, step.id, step.src, p.input, step.dst,
                       p.output, p.math, p.accum);
    if (step.kv_io) out += fmt::format(", kv {}/{}", step.kv_io->read, step.kv_io->write);
    out += "\n";
  }
}

std::string print_steps(const ExecutionPlan& plan) {
  std::string out;
  print_phase("prefill", plan.prefill, out);
  print_phase("decode", plan.decode, out);
  return out;
}

std::string print_order(const ExecutionPlan& plan) {
  std::vector<std::string> ids;
  for (const ResolvedStep& step : plan.prefill) ids.push_back(step.id);
  return fmt::format("{}\n", fmt::join(ids, " "));
}

std::string print_list(const std::string& name, const Json& steps) {
  std::vector<std::string> ops;
  for (const Json& step : steps) ops.push_back(step["op"]);
  return fmt::format("{}: {}\n", name, fmt::join(ops, " "));
}

std::string print_kernel_path(const ExecutionPlan& plan) {
  const js::Value path = js::at_path(&plan.result, {"runtimeInferencePatch", "kernelPath"});
  if (path == nullptr) return "none\n";
  std::string out;
  for (const char* phase : {"decode", "prefill"}) out += print_list(phase, (*path)[phase]["steps"]);
  if (path->contains("layerOverrides"))
    for (const Json& layer : (*path)["layerOverrides"])
      out += print_list(fmt::format("layer {}", to_js_json(layer["layers"][0])), layer["steps"]);
  for (const char* section : {"preLayer", "postLayer", "sampling"})
    if (path->contains(section)) out += print_list(section, (*path)[section]);
  return out;
}

/// `text` cut at the first `separator`.
std::pair<std::string, std::string> split(const std::string& text, const std::string& separator) {
  const auto at = text.find(separator);
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + separator.size())};
}

std::string find_field(const ExecutionPlan& plan, const std::string& name) {
  const auto [id, field] = split(name, ".");
  for (const auto* phase : {&plan.prefill, &plan.decode})
    for (const ResolvedStep& step : *phase)
      if (step.id == id) {
        const js::Value value = js::get(&step.raw, field);
        return value == nullptr ? "absent" : to_js_json(*value);
      }
  return "no such step";
}

std::string find_source(const ExecutionPlan& plan, const std::string& name) {
  const auto [owner, path] = split(name, ".");
  const js::Value source = owner == "session"
                               ? js::at_path(&plan.sources, {"session", "sessionDefaults." + path, "source"})
                               : js::at_path(&plan.sources, {"steps", owner, path, "source"});
  return js::to_string(source);
}

void check_lines(const TextSection& section, const ExecutionPlan& plan,
                 std::string (*find)(const ExecutionPlan&, const std::string&)) {
  EXPECT_FALSE(section.lines.empty());
  for (const std::string& line : section.lines) {
    const auto [name, expected] = split(line, " = ");
    const bool is_json = !expected.empty() &&
                         std::string("{[\"0123456789-tfn").find(expected[0]) != std::string::npos &&
                         Json::accept(expected);
    EXPECT_EQ(find(plan, name), is_json ? to_js_json(parse_json(expected, line)) : expected) << name;
  }
}

Json without_profiles(Json session) {
  if (js::is_plain_object(js::get(&session, "compute"))) session["compute"].erase("kernelProfiles");
  return session;
}

Json without_kernel_path(Json patch) {
  patch.erase("kernelPath");
  patch.erase("kernelPathSource");
  return patch;
}

/// What the plan has to show for a section whose whole text is compared.
std::optional<std::string> print_for(const std::string& section, const ExecutionPlan& plan) {
  if (section == "expect steps") return print_steps(plan);
  if (section == "expect order") return print_order(plan);
  if (section == "expect kernel path") return print_kernel_path(plan);
  return std::nullopt;
}

std::optional<Json> value_for(const std::string& section, const ExecutionPlan& plan) {
  if (section == "expect session") return without_profiles(plan.session);
  if (section == "expect policies") return plan.policies;
  if (section == "expect patch") return without_kernel_path(plan.result["runtimeInferencePatch"]);
  return std::nullopt;
}

void check_section(const TextSection& section, const ExecutionPlan& plan) {
  if (const auto text = print_for(section.name, plan)) {
    EXPECT_EQ(squeeze(*text), squeeze(section.lines));
  } else if (const auto value = value_for(section.name, plan)) {
    EXPECT_EQ(to_js_json(*value), to_js_json(section.json()));
  } else if (section.name == "expect fields") {
    check_lines(section, plan, find_field);
  } else if (section.name == "expect sources") {
    check_lines(section, plan, find_source);
  }
}

std::string print_findings(const CompileInput& input) {
  static const Json kNone;
  const Json& overlay = input.runtime_inference == nullptr ? kNone : *input.runtime_inference;
  std::string out;
  for (const Finding& finding : lint({input.manifest_inference, overlay, input.layers, *input.registry}))
    out += fmt::format("{} {}: {}; {}\n", finding.code, finding.subject, finding.message, finding.remedy);
  return out.empty() ? "none\n" : out;
}

/// What the overlay changes in the plan of the manifest alone. Where the two have different digests, something must.
std::string print_changes(CompileInput input) {
  const Json overlay = input.runtime_inference == nullptr
                           ? Json()
                           : effective_overlay(input.manifest_inference, *input.runtime_inference);
  input.runtime_inference = nullptr;
  const ExecutionPlan before = *compile(input);
  input.runtime_inference = &overlay;
  const ExecutionPlan after = *compile(input);
  const std::vector<Change> changes = diff(before, after);
  EXPECT_EQ(changes.empty(), canonical_digest(before.to_json()) == canonical_digest(after.to_json()));
  std::string out;
  for (const Change& change : changes) {
    const auto side = [](const std::string& text) { return text.empty() ? std::string("nothing") : text; };
    out += fmt::format("{} {} {}: {} -> {}\n", change.where, change.subject, change.field, side(change.before),
                       side(change.after));
  }
  return out.empty() ? "none\n" : out;
}

/// What is left of the overlay, or why it is refused before anything is compiled.
std::string print_overlay(const CompileInput& input) {
  try {
    return to_js_json(effective_overlay(input.manifest_inference, *input.runtime_inference)) + "\n";
  } catch (const Error& error) {
    return error.what() + std::string("\n");
  }
}

/// The pins that do not hold, and why a manifest with such is refused.
std::string print_pins(const CompileInput& input) {
  std::string out;
  for (const PinDifference& difference : pin_differences(input.manifest_inference, *input.registry))
    out += difference.text() + "\n";
  return out.empty() ? "none\n" : out;
}

/// Every name but those is a mistake in the file.
void check_names(const TextCase& text_case) {
  static const std::set<std::string> kNames = {
      "steps",          "profiles",       "session",         "policies",           "manifest",     "overlay",
      "layers",         "model",          "expect error",    "expect steps",       "expect order", "expect fields",
      "expect sources", "expect session", "expect policies", "expect kernel path", "expect patch", "expect no plan",
      "expect lint",    "expect diff",    "expect overlay",  "expect pins"};
  bool expects = false;
  for (const TextSection& section : text_case.sections) {
    EXPECT_TRUE(kNames.contains(section.name)) << "unknown section: " << section.name;
    expects = expects || section.name.starts_with("expect ");
  }
  EXPECT_TRUE(expects) << "the case expects nothing";
}

void check_case(const TextCase& text_case, const kernels::KernelRegistry& registry) {
  check_names(text_case);
  const TextInput made = make_input(text_case, registry);
  CompileInput input{made.inference, made.overlay.is_null() ? nullptr : &made.overlay};
  input.registry = &registry;
  if (const TextSection* model = text_case.find("model")) input.model_id = model->value;
  if (const TextSection* layers = text_case.find("layers")) input.layers = std::stoll(layers->value);
  if (const TextSection* findings = text_case.find("expect lint")) {
    EXPECT_EQ(squeeze(print_findings(input)), squeeze(findings->lines));
  }
  if (const TextSection* left = text_case.find("expect overlay")) {
    ASSERT_NE(input.runtime_inference, nullptr) << "the case has no overlay";
    EXPECT_EQ(squeeze(print_overlay(input)), squeeze(left->lines));
  }
  if (const TextSection* pins = text_case.find("expect pins")) {
    EXPECT_EQ(squeeze(print_pins(input)), squeeze(pins->lines));
    return;  // a plan with other pins is refused
  }
  const TextSection* error = text_case.find("expect error");
  try {
    const std::optional<ExecutionPlan> plan = compile(input);
    if (error != nullptr) {
      ADD_FAILURE() << "no error; the steps are\n" << (plan ? print_steps(*plan) : "none");
      return;
    }
    EXPECT_EQ(plan == std::nullopt, text_case.find("expect no plan") != nullptr);
    if (!plan) return;
    for (const TextSection& section : text_case.sections) check_section(section, *plan);
    if (const TextSection* changes = text_case.find("expect diff")) {
      EXPECT_EQ(squeeze(print_changes(input)), squeeze(changes->lines));
    }
  } catch (const Error& refused) {
    if (error == nullptr && text_case.find("expect lint") != nullptr) return;  // lint has more to say than the refusal
    EXPECT_EQ(refused.what() + std::string("\n"), error == nullptr ? "no error\n" : error->text());
  }
}

std::vector<std::string> test_files() {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(kFolder))
    if (entry.path().extension() == ".test") files.push_back(entry.path().stem().string());
  std::sort(files.begin(), files.end());
  return files;
}

class PlanText : public testing::TestWithParam<std::string> {};

TEST_P(PlanText, EveryCaseHolds) {
  const fs::path file = kFolder / (GetParam() + ".test");
  const kernels::KernelRegistry registry = text_registry(kFolder / "kernels.json");
  const std::vector<TextCase> cases = read_text_cases(file);
  EXPECT_FALSE(cases.empty());
  std::set<std::string> titles;
  for (const TextCase& text_case : cases) {
    SCOPED_TRACE(fmt::format("{}:{}: {}", file.string(), text_case.line, text_case.title));
    EXPECT_TRUE(titles.insert(text_case.title).second) << "the title is used twice";
    check_case(text_case, registry);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, PlanText, testing::ValuesIn(test_files()), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace candor::plan
