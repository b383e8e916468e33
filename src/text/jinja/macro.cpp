#include "text/jinja/macro.h"

#include <algorithm>

namespace candor::jinja {

std::optional<Value> MacroObject::attribute(Runtime& runtime, std::string_view name) {
  if (name == "name") return name_.empty() ? Value::none() : runtime.text(name_);
  if (name == "arguments") {
    std::vector<Value> names;
    for (const auto& parameter : macro_.parameters) names.push_back(runtime.text(std::get<Name>(parameter->node).name));
    return runtime.tuple(std::move(names));
  }
  if (name == "catch_kwargs") return Value::boolean(macro_.kwargs.has_value());
  if (name == "catch_varargs") return Value::boolean(macro_.varargs.has_value());
  if (name == "caller") return Value::boolean(macro_.caller.has_value());
  return std::nullopt;
}

Value MacroObject::call(Runtime&, Arguments arguments) {
  return interpreter_.run_macro(macro_, name_, outer_, std::move(arguments));
}

std::optional<std::string> MacroObject::print(Runtime&) {
  return name_.empty() ? "<Macro anonymous>" : "<Macro '" + name_ + "'>";
}

std::optional<Value> SelfObject::attribute(Runtime& runtime, std::string_view name) {
  const Block* block = interpreter_.find_block(name);
  if (block == nullptr) return std::nullopt;
  return Value::object(runtime.make<BlockObject>(interpreter_, *block, context_));
}

Value BlockObject::call(Runtime& runtime, Arguments arguments) {
  if (!arguments.positional.empty() || !arguments.named.empty()) runtime.fail("a block takes no arguments");
  return interpreter_.run_block(block_, context_);
}

}  // namespace candor::jinja
