#include <CLI/CLI.hpp>

#include "backends/webgpu/capability.h"
#include "backends/webgpu/self_test.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/table.h"

namespace candor::cli {
namespace {

struct DeviceArguments {
  std::string library;
  bool self_test = false;
  bool json = false;
};

/// The self-test's cases on one adapter.
struct SelfTestCounts {
  std::size_t passed = 0;
  std::size_t cases = 0;
  std::vector<std::string> failures;  ///< of a test made now

  [[nodiscard]] std::string text() const { return fmt::format("{} of {}", passed, cases); }
};

/// What passed so far; or what passes now.
SelfTestCounts self_test_of(const webgpu::Adapter& adapter, const DeviceArguments& arguments) {
  SelfTestCounts counts;
  webgpu::SelfTestCache cache(adapter, adapter.library()->path());
  std::unique_ptr<Backend> backend;
  if (arguments.self_test) backend = webgpu::make_webgpu_backend({arguments.library, adapter.name(), false});
  for (const webgpu::SelfTestCase& test : webgpu::self_test_cases()) {
    ++counts.cases;
    if (backend) {
      const std::string wrong = webgpu::difference(test, webgpu::run_case(test, *backend));
      if (wrong.empty()) {
        cache.add(test);
      } else {
        counts.failures.push_back(fmt::format("{}: {}", test.name(), wrong));
        continue;
      }
    }
    counts.passed += cache.passed(test) ? 1 : 0;
  }
  if (backend) cache.save();
  return counts;
}

std::string paths_of(const webgpu::Adapter& adapter) {
  std::vector<std::string> parts;
  for (const auto& [path, missing] : webgpu::supported_paths(adapter))
    parts.push_back(missing.empty() ? path : fmt::format("{} (lacks {})", path, fmt::join(missing, ", ")));
  return fmt::format("{}", fmt::join(parts, "; "));
}

int list_devices(const DeviceArguments& arguments) {
  const auto library = std::make_shared<const webgpu::Library>(arguments.library);
  const std::vector<webgpu::Adapter> adapters = webgpu::list_adapters(library);
  bool failed = adapters.empty();
  if (arguments.json) {
    Json rows = Json::array();
    for (const webgpu::Adapter& adapter : adapters) {
      Json row = adapter.to_json();
      Json paths = Json::array();
      for (const auto& [path, missing] : webgpu::supported_paths(adapter))
        paths.push_back({{"id", path}, {"missing", missing}});
      row["kernelPaths"] = std::move(paths);
      const SelfTestCounts counts = self_test_of(adapter, arguments);
      row["selfTest"] = {{"passed", counts.passed}, {"cases", counts.cases}, {"failures", counts.failures}};
      failed = failed || !counts.failures.empty();
      rows.push_back(std::move(row));
    }
    print_json({{"library", library->path().string()}, {"adapters", std::move(rows)}});
  } else if (adapters.empty()) {
    print(fmt::format("{} sees no adapter; install a Vulkan driver.\n", library->path().string()));
  } else {
    Table table(
        {"adapter", "kind", "api", "driver", ">binding", ">workgroup", "features", "kernel paths", "self-test"});
    std::vector<std::string> failures;
    for (const webgpu::Adapter& adapter : adapters) {
      const Json facts = adapter.describe();
      std::vector<std::string> features;
      for (const std::string& feature : adapter.features())
        if (!feature.starts_with("0x")) features.push_back(feature);
      const SelfTestCounts counts = self_test_of(adapter, arguments);
      for (const std::string& failure : counts.failures)
        failures.push_back(fmt::format("{}: {}", printable(adapter.name()), failure));
      table.add({printable(adapter.name()), facts["kind"], facts["api"], printable(facts["driver"].get<std::string>()),
                 format_bytes(adapter.limits().max_storage_binding_bytes),
                 format_bytes(adapter.limits().max_workgroup_bytes), fmt::format("{}", fmt::join(features, ", ")),
                 paths_of(adapter), counts.text()});
    }
    table.print();
    for (const std::string& failure : failures) print(fmt::format("failed: {}\n", failure));
    failed = !failures.empty();
  }
  return failed ? exit_status(ErrorCode::device) : 0;
}

}  // namespace

void add_device(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("device", "GPUs that WebGPU finds, and which kernel paths they can run");
  auto arguments = std::make_shared<DeviceArguments>();
  app.add_option("--webgpu-lib", arguments->library,
                 "The WebGPU library (default: CANDOR_WEBGPU_LIB, then where scripts/get-webgpu puts it)")
      ->type_name("FILE");
  app.add_flag("--self-test", arguments->self_test,
               "Compute every kernel's known answers now; otherwise each is tested before its first use");
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), list_devices);
}

}  // namespace candor::cli
