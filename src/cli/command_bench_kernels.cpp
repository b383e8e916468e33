#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/kernel_bench.h"
#include "cli/model_options.h"
#include "cli/output.h"

namespace candor::cli {
namespace {

struct BenchKernelsArguments {
  KernelBenchOptions options;
  bool json = false;
};

int bench_kernels(const BenchKernelsArguments& arguments) {
  KernelBenchOptions options = arguments.options;
  options.progress = !arguments.json;
  const Json measured = measure_kernels(options);
  if (arguments.json) {
    print_json(measured);
  } else {
    print_kernel_rates(measured);
  }
  return 0;
}

}  // namespace

void add_bench_kernels(CLI::App& bench, Invocation& invocation) {
  CLI::App& app =
      *bench.add_subcommand("kernels", "Measure each CPU kernel at real shapes beside the machine's limits");
  auto arguments = std::make_shared<BenchKernelsArguments>();
  app.add_option("--filter", arguments->options.filter, "Only kernels whose name holds this text")->type_name("TEXT");
  in_range(app.add_option("-r,--rounds", arguments->options.rounds, "Measurements, of which the middle is shown"), 1u,
           1000u)
      ->type_name("N")
      ->capture_default_str();
  add_threads(app, arguments->options.threads);
  add_isa(app, arguments->options.isa);
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), bench_kernels);
}

}  // namespace candor::cli
