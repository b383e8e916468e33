// Where values come from: for each leaf of the session and each dtype of a step, the layer that gave it.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/js_value.h"

namespace candor::plan {

/// The source of each leaf of the resolved session: "runtime.session", "manifest" or "derived". An array is a leaf; an
/// empty object has none. The runtime session is looked at as it was given, so a dtype that the manifest overrides is
/// still traced to the runtime.
class SessionSources {
 public:
  SessionSources(const Json& resolved_session, js::Value runtime_session, js::Value manifest_session);

  /// The source of a path ("compute.defaults.mathDtype"); "derived" if it is no leaf.
  [[nodiscard]] std::string_view of(std::string_view path) const;

  /// {"sessionDefaults.<path>": {source}} in the order of the leaves.
  [[nodiscard]] Json to_json() const;

 private:
  std::vector<std::pair<std::string, std::string_view>> leaves_;
  std::unordered_map<std::string, std::size_t> index_;  // into leaves_, by path
};

/// The sources of one step's dtypes; `kv_io` is empty where the step has none.
struct StepSources {
  std::string_view input;
  std::string_view math;
  std::string_view accum;
  std::string_view output;
  std::string_view kv_io;
};

/// The sources of all steps. A step of phase "both" is traced twice; the later trace stays.
class StepTrace {
 public:
  void set(const std::string& id, const StepSources& sources);

  /// {<id>: {"precision.inputDtype": {source}, …}}. An id that every JavaScript object inherits ("constructor") is left
  /// out, as the schema's reference does.
  [[nodiscard]] Json to_json() const;

 private:
  std::vector<std::pair<std::string, StepSources>> steps_;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace candor::plan
