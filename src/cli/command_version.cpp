#include <CLI/CLI.hpp>

#include "backends/cpu/backend.h"
#include "candor/candor.h"
#include "cli/command.h"
#include "cli/output.h"
#include "kernels/cpu/kernel.h"
#include "kernels/kernel_rules.h"

namespace candor::cli {
namespace {

struct VersionArguments {
  bool json = false;
};

int show_version(const VersionArguments& arguments) {
  std::vector<std::string> isas;
  for (const cpu::Isa isa : cpu::available_isas()) isas.emplace_back(to_string(isa));
  const std::vector<std::string> paths = kernels::builtin_kernel_rules();
  if (arguments.json) {
    print_json({{"version", version()}, {"isas", isas}, {"kernelPaths", paths}});
  } else {
    print(fmt::format("candor {}\ninstruction sets here: {}\nkernel paths: {}\n", version(), fmt::join(isas, ", "),
                      fmt::join(paths, ", ")));
  }
  return 0;
}

}  // namespace

void add_version(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("version", "The version, and what it can run with here");
  auto arguments = std::make_shared<VersionArguments>();
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), show_version);
}

}  // namespace candor::cli
