// The kernels' self-test: before a kernel is used on an adapter for the first time, small cases whose answers are known
// are computed there and compared. Goals: a driver that miscompiles a kernel is met with the kernel's name, not with
// wrong text; what passed is remembered for the same adapter, driver, library and kernel digest, in
// $XDG_CACHE_HOME/candor (~/.cache/candor), and a damaged or missing file only means testing again. Answers are in
// src/kernels/webgpu/answers.json: inputs are made by a rule, results were computed by kernels that their tests hold
// against double precision. Not a goal: the precision of results, which the tests measure.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "backends/program.h"
#include "backends/webgpu/adapter.h"
#include "backends/webgpu/backend.h"

namespace candor::webgpu {

/// One case: a kernel on inputs and weights of certain shapes and encodings.
struct SelfTestCase {
  std::string kernel, entry, operation;
  std::set<std::string> encodings;  ///< of weights and cache
  Json raw;

  [[nodiscard]] std::string name() const;
};

/// All cases of the build, in the order of the file.
[[nodiscard]] const std::vector<SelfTestCase>& self_test_cases();

/// What the adapter computes for a case, row by row; tokens as numbers.
[[nodiscard]] std::vector<double> run_case(const SelfTestCase& test, Backend& backend);

/// Which value differs and by how much; empty if none does.
[[nodiscard]] std::string difference(const SelfTestCase& test, const std::vector<double>& got);

/// What passed on an adapter.
class SelfTestCache {
 public:
  SelfTestCache(const Adapter& adapter, const std::filesystem::path& library);

  [[nodiscard]] bool passed(const SelfTestCase& test) const { return passed_.contains(key(test)); }
  void add(const SelfTestCase& test) { passed_.insert(key(test)); }
  /// Adds to the file what passed since it was read. A file that cannot be written is no error: the next run tests
  /// again.
  void save() const;

  [[nodiscard]] static std::filesystem::path file();

 private:
  /// A digest of adapter, driver, library, kernel and case.
  [[nodiscard]] std::string key(const SelfTestCase& test) const;

  std::string device_;
  std::set<std::string> passed_;
};

/// Runs the cases of the Program's kernels and encodings that did not pass before. Throws Error(device), naming kernel,
/// adapter and driver, if one fails.
void self_test(const Program& program, const Adapter& adapter, const WebGpuOptions& options);

}  // namespace candor::webgpu
