#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/error.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/table.h"
#include "kernels/builtin.h"
#include "kernels/registry.h"

namespace candor::cli {
namespace {

struct KernelsArguments {
  std::string source;
  std::string operation;
  bool json = false;
};

std::string digest_of(const kernels::KernelVariant& variant) {
  return kernels::builtin_registry().digest(variant.file, variant.entry).value_or("");
}

std::string text_field(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : std::string();
}

/// "src f32, f16; weight q8_0; dst f32"
std::string encodings_of(const kernels::KernelVariant& variant) {
  if (!variant.raw.contains("encodings") || !variant.raw["encodings"].is_object()) return {};
  std::vector<std::string> parts;
  for (const auto& [operand, encodings] : variant.raw["encodings"].items()) {
    std::vector<std::string> names;
    for (const Json& name : encodings.is_array() ? encodings : Json::array({encodings}))
      names.push_back(name.is_string() ? name.get<std::string>() : to_js_json(name));
    parts.push_back(fmt::format("{} {}", operand, fmt::join(names, "|")));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string dtypes_of(const kernels::KernelVariant& variant) {
  std::vector<std::string> parts;
  for (const char* key : {"inputDtype", "mathDtype", "accumDtype", "outputDtype"}) {
    const std::string dtype = text_field(variant.raw, key);
    parts.push_back(dtype.empty() ? "any" : dtype);
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

int list(const KernelsArguments& arguments) {
  Table table({"operation", "variant", "kernel", "in math acc out", "encodings", "digest"});
  Json rows = Json::array();
  for (const kernels::KernelOperation& operation : kernels::builtin_registry().operations()) {
    if (!arguments.operation.empty() && operation.name != arguments.operation) continue;
    for (const kernels::KernelVariant& variant : operation.variants) {
      table.add({operation.name, variant.name, variant.file + "#" + variant.entry, dtypes_of(variant),
                 encodings_of(variant), short_digest(digest_of(variant))});
      Json row{{"operation", operation.name}, {"variant", variant.name}, {"digest", "sha256:" + digest_of(variant)}};
      row.update(variant.raw);
      rows.push_back(std::move(row));
    }
  }
  if (table.empty()) {
    std::vector<std::string> names;
    for (const auto& operation : kernels::builtin_registry().operations()) names.push_back(operation.name);
    fail(ErrorCode::not_found, "no operation is called \"{}\"; known are {}", printable(arguments.operation),
         fmt::join(names, ", "));
  }
  if (arguments.json) {
    print_json({{"kernels", std::move(rows)}});
  } else {
    table.print();
  }
  return 0;
}

/// Exit status as for any digest that is not what was pinned, so that CI can ask.
int verify(const KernelsArguments& arguments) {
  if (!std::filesystem::is_directory(std::filesystem::path(arguments.source) / "kernels"))
    fail(ErrorCode::not_found, "{}: has no folder kernels; give the src folder of a checkout", arguments.source);
  const auto differences = kernels::verify(arguments.source);
  if (arguments.json) {
    Json rows = Json::array();
    for (const auto& difference : differences)
      rows.push_back({{"kernel", difference.file + "#" + difference.entry},
                      {"compiled", difference.compiled},
                      {"source", difference.source}});
    print_json({{"differences", std::move(rows)}});
  } else if (differences.empty()) {
    print("All kernels are what their sources say.\n");
  } else {
    Table table({"kernel", "in this build", "in the sources"});
    for (const auto& difference : differences)
      table.add({difference.file + "#" + difference.entry,
                 difference.compiled.empty() ? "none" : short_digest(difference.compiled),
                 difference.source.empty() ? "no such file" : short_digest(difference.source)});
    table.print();
  }
  return differences.empty() ? 0 : exit_status(ErrorCode::integrity);
}

}  // namespace

void add_kernels(CLI::App& program, Invocation& invocation) {
  CLI::App& parent = *program.add_subcommand("kernels", "The kernels of this build");
  parent.require_subcommand(1);
  auto arguments = std::make_shared<KernelsArguments>();
  CLI::App& list_app = *parent.add_subcommand("list", "Operations, kernels, dtypes, encodings, digests");
  list_app.add_option("OPERATION", arguments->operation, "Only the kernels of this operation");
  add_json(list_app, arguments->json);
  on_chosen(list_app, invocation, arguments, list);
  CLI::App& verify_app = *parent.add_subcommand("verify", "Compare the digests with sources; status 7 if any differs");
  verify_app.add_option("SRCDIR", arguments->source, "The src folder of a checkout")->required();
  add_json(verify_app, arguments->json);
  on_chosen(verify_app, invocation, arguments, verify);
}

}  // namespace candor::cli
