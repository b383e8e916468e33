// value.name and value[key] with the rules of Jinja2's sandbox: names starting with an underscore and methods that
// change a list or dict are undefined values whose use is an error.
#pragma once

#include <string_view>

#include "text/jinja/runtime.h"

namespace candor::jinja {

/// A method of a built-in type.
struct Method {
  std::string_view name;
  Value (*run)(Runtime& runtime, const Value& self, const Arguments& arguments);
};

/// value.name: an attribute or method, else the item of that name.
[[nodiscard]] Value get_attribute(Runtime& runtime, const Value& value, std::string_view name);
/// value[key]: the item, else for a string the attribute or method of that name.
[[nodiscard]] Value get_item(Runtime& runtime, const Value& value, const Value& key);
/// The attribute without falling back to an item, as the filter `attr` wants it.
[[nodiscard]] Value get_attribute_only(Runtime& runtime, const Value& value, std::string_view name);

/// The method that value.name is, or null if it is none, so that a call needs no bound method.
[[nodiscard]] const Method* find_method(const Value& value, std::string_view name);

[[nodiscard]] bool is_callable(const Value& value);
/// callee(arguments).
[[nodiscard]] Value call(Runtime& runtime, const Value& callee, Arguments arguments);

/// A function as a value.
class Function : public Object {
 public:
  using Run = Value (*)(Runtime& runtime, const Value& self, const Arguments& arguments);

  /// `self` is what a method is bound to; for others it is ignored.
  Function(Value self, Run run) : self_(std::move(self)), run_(run) {}

  [[nodiscard]] std::string_view type_name() const override { return "function"; }
  [[nodiscard]] bool callable() const override { return true; }
  [[nodiscard]] Value call(Runtime& runtime, Arguments arguments) override { return run_(runtime, self_, arguments); }

 private:
  Value self_;
  Run run_;
};

}  // namespace candor::jinja
