// The names every template knows: range, dict, namespace, cycler, joiner, raise_exception, strftime_now.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/runtime.h"

namespace candor::jinja {

/// namespace(): attributes that a template may set.
class Namespace : public Object {
 public:
  explicit Namespace(Dict attributes) : attributes_(std::move(attributes)) {}

  [[nodiscard]] std::string_view type_name() const override { return "Namespace"; }
  [[nodiscard]] std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  [[nodiscard]] std::optional<std::string> print(Runtime& runtime) override;
  void set(Runtime& runtime, std::string_view name, Value value);

 private:
  Dict attributes_;
  bool printing_ = false;
};

/// All of them by name.
[[nodiscard]] Dict make_globals(Runtime& runtime);

}  // namespace candor::jinja
