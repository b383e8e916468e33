// --probe and --probe-out: what chosen steps wrote, as a table, as JSON, or in a file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "runtime/probe.h"

namespace CLI {
class App;
}

namespace candor::cli {

struct ProbeArguments {
  std::vector<std::string> probes;
  std::string out;
};

void add_probe_options(CLI::App& app, ProbeArguments& arguments);

/// Observes an engine's session for as long as it lives. Where that ends by an error, what was read until then is
/// reported if `explain_errors`, because a probe is often there to find the error.
class ProbeSession {
 public:
  /// Throws Error(usage) for --probe-out without --probe, and what runtime::Probes throws. Whether the file can be
  /// written is the command's to check, with its other files.
  ProbeSession(Engine& engine, const ProbeArguments& arguments, bool explain_errors);
  ~ProbeSession();
  ProbeSession(const ProbeSession&) = delete;
  ProbeSession& operator=(const ProbeSession&) = delete;

  [[nodiscard]] bool any() const { return probes_.has_value(); }
  /// A table of the steps that ran, and the first with values that are not finite; nothing without probes.
  [[nodiscard]] std::vector<std::string> lines() const;
  [[nodiscard]] Json to_json() const;
  /// Writes the --probe-out file, if one was asked for: a tensor PHASE.STEP or PHASE.STEP.LAYER for each step.
  void save() const;

 private:
  Engine& engine_;
  std::string out_;
  std::optional<runtime::Probes> probes_;
  bool explain_errors_;
  int exceptions_;
};

}  // namespace candor::cli
