// Macros, and what call blocks pass as `caller`, as values.
#pragma once

#include <string>

#include "text/jinja/interpreter.h"

namespace candor::jinja {

class MacroObject : public Object {
 public:
  /// `name` is empty for a call block's body. `outer` must outlive the object.
  MacroObject(Interpreter& interpreter, const MacroBody& macro, std::string name, Activation& outer)
      : interpreter_(interpreter), macro_(macro), name_(std::move(name)), outer_(outer) {}

  [[nodiscard]] std::string_view type_name() const override { return "Macro"; }
  [[nodiscard]] bool callable() const override { return true; }
  [[nodiscard]] std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  [[nodiscard]] Value call(Runtime& runtime, Arguments arguments) override;
  [[nodiscard]] std::optional<std::string> print(Runtime& runtime) override;

 private:
  Interpreter& interpreter_;
  const MacroBody& macro_;
  std::string name_;
  Activation& outer_;
};

/// `self` in a template: its blocks as functions.
class SelfObject : public Object {
 public:
  SelfObject(Interpreter& interpreter, const Context& context) : interpreter_(interpreter), context_(context) {}

  [[nodiscard]] std::string_view type_name() const override { return "TemplateReference"; }
  [[nodiscard]] std::optional<std::string> print(Runtime&) override { return "<TemplateReference None>"; }
  [[nodiscard]] std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;

 private:
  Interpreter& interpreter_;
  const Context& context_;
};

/// self.name: renders a block when called.
class BlockObject : public Object {
 public:
  BlockObject(Interpreter& interpreter, const Block& block, const Context& context)
      : interpreter_(interpreter), block_(block), context_(context) {}

  [[nodiscard]] std::string_view type_name() const override { return "BlockReference"; }
  [[nodiscard]] bool callable() const override { return true; }
  [[nodiscard]] Value call(Runtime& runtime, Arguments arguments) override;

 private:
  Interpreter& interpreter_;
  const Block& block_;
  const Context& context_;
};

}  // namespace candor::jinja
