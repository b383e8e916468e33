#include <CLI/CLI.hpp>

#include "backends/webgpu/capability.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/table.h"

namespace candor::cli {
namespace {

struct DeviceArguments {
  std::string library;
  bool json = false;
};

std::string paths_of(const webgpu::Adapter& adapter) {
  std::vector<std::string> parts;
  for (const auto& [path, missing] : webgpu::supported_paths(adapter))
    parts.push_back(missing.empty() ? path : fmt::format("{} (lacks {})", path, fmt::join(missing, ", ")));
  return fmt::format("{}", fmt::join(parts, "; "));
}

int list_devices(const DeviceArguments& arguments) {
  const auto library = std::make_shared<const webgpu::Library>(arguments.library);
  const std::vector<webgpu::Adapter> adapters = webgpu::list_adapters(library);
  if (arguments.json) {
    Json rows = Json::array();
    for (const webgpu::Adapter& adapter : adapters) {
      Json row = adapter.to_json();
      Json paths = Json::array();
      for (const auto& [path, missing] : webgpu::supported_paths(adapter))
        paths.push_back({{"id", path}, {"missing", missing}});
      row["kernelPaths"] = std::move(paths);
      rows.push_back(std::move(row));
    }
    print_json({{"library", library->path().string()}, {"adapters", std::move(rows)}});
  } else if (adapters.empty()) {
    print(fmt::format("{} sees no adapter; install a Vulkan driver.\n", library->path().string()));
  } else {
    Table table({"adapter", "kind", "api", "driver", ">binding", ">workgroup", "features", "kernel paths"});
    for (const webgpu::Adapter& adapter : adapters) {
      const Json facts = adapter.describe();
      std::vector<std::string> features;
      for (const std::string& feature : adapter.features())
        if (!feature.starts_with("0x")) features.push_back(feature);
      table.add({printable(adapter.name()), facts["kind"], facts["api"], printable(facts["driver"].get<std::string>()),
                 format_bytes(adapter.limits().max_storage_binding_bytes),
                 format_bytes(adapter.limits().max_workgroup_bytes), fmt::format("{}", fmt::join(features, ", ")),
                 paths_of(adapter)});
    }
    table.print();
  }
  return adapters.empty() ? exit_status(ErrorCode::device) : 0;
}

}  // namespace

void add_device(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("device", "GPUs that WebGPU finds, and which kernel paths they can run");
  auto arguments = std::make_shared<DeviceArguments>();
  app.add_option("--webgpu-lib", arguments->library,
                 "The WebGPU library (default: CANDOR_WEBGPU_LIB, then where scripts/get-webgpu puts it)")
      ->type_name("FILE");
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), list_devices);
}

}  // namespace candor::cli
