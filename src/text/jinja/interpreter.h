// Rendering: walks the tree with a Runtime. A template's variables live in activations (scope.h); output goes to a
// Buffer, which blocks, macros and filters replace while they run.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

namespace candor::jinja {

/// The variables that are found by name: globals, those of the caller, and for blocks what the template has set.
using Context = Dict;

/// The variables of one run of a template, macro, block or recursive loop.
struct Activation {
  Activation* outer = nullptr;
  const Context* context = nullptr;
  std::vector<Value> slots;
  Charge charge;
};

enum class Flow : std::uint8_t { next, continue_loop, break_loop };

class Interpreter {
 public:
  Interpreter(Runtime& runtime, const Template& tree, Context context)
      : runtime_(runtime), tree_(tree), context_(std::move(context)) {}

  /// The rendered template. To be called once.
  [[nodiscard]] std::string render();

  [[nodiscard]] Runtime& runtime() { return runtime_; }
  [[nodiscard]] Value evaluate(const Expression& expression, Activation& activation);
  void assign(const Expression& target, Activation& activation, const Value& value);
  void enter(const Scope& scope, Activation& activation);
  void leave(const Scope& scope, Activation& activation);
  void prepare(Activation& activation, const Activated& activated, Activation* outer, const Context* context);

  // For the objects that run parts of the template.
  [[nodiscard]] Value run_macro(const MacroBody& macro, std::string_view name, Activation& outer, Arguments arguments);
  [[nodiscard]] Value run_recursive(const For& loop, Activation& outer, const Value& iterable, std::uint32_t depth);
  [[nodiscard]] Value run_block(const Block& block, const Context& context);
  [[nodiscard]] const Block* find_block(std::string_view name) const;

 private:
  friend struct ExpressionEvaluator;
  friend struct StatementRunner;

  /// An activation for one run: `local`, or one that lives until the rendering ends if code inside may outlive the run.
  [[nodiscard]] Activation& activation_for(const Activated& activated, Activation& local);
  [[nodiscard]] Flow run(const Body& body, Activation& activation, Buffer& out);
  [[nodiscard]] Flow run_loop(const For& loop, Activation& activation, Activation& outer, const Value& iterable,
                              std::uint32_t depth, Buffer& out);
  void bind_parameters(const MacroBody& macro, std::string_view name, Activation& activation, Arguments arguments);
  void emit(const Value& value, Escape escape, Buffer& out);
  void check_target(const Expression& target, Activation& activation);
  void export_names(const std::vector<std::pair<std::string, Variable>>& names, Activation& activation);
  [[nodiscard]] static Value& variable(const Variable& variable, Activation& activation);
  [[nodiscard]] Value filter_text(const Expression& filter, Activation& activation, const Value& text);
  [[nodiscard]] Value call(const Call& call, Activation& activation, std::uint32_t line, const Value* caller);
  [[nodiscard]] Arguments arguments_of(const CallArguments& arguments, Activation& activation);

  Runtime& runtime_;
  const Template& tree_;
  Context context_;
  const Value* filtered_text_ = nullptr;  // the text that a filter without subject applies to
  std::vector<std::unique_ptr<Activation>> kept_;
  std::vector<std::unique_ptr<Context>> scoped_contexts_;
};

}  // namespace candor::jinja
