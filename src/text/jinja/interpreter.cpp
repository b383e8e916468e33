#include "text/jinja/interpreter.h"

#include <algorithm>

#include "text/jinja/globals.h"
#include "text/jinja/iterate.h"
#include "text/jinja/loop.h"
#include "text/jinja/macro.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace candor::jinja {
namespace {

/// The value of a target after assignment: what the test of a loop hands on.
Value target_value(Runtime& runtime, const Expression& target, Activation& activation, Interpreter& interpreter) {
  const auto* tuple = std::get_if<TupleOf>(&target.node);
  if (tuple == nullptr) return interpreter.evaluate(target, activation);
  std::vector<Value> items;
  for (const auto& item : tuple->items) items.push_back(target_value(runtime, *item, activation, interpreter));
  return runtime.tuple(std::move(items));
}

/// The elements of `iterable` that pass the test of `loop`, tested when they are asked for.
Value tested(Interpreter& interpreter, const For& loop, Activation& outer, const Value& iterable) {
  Runtime& runtime = interpreter.runtime();
  struct State {
    Activation activation;
    std::optional<Cursor> cursor;
  };
  auto state = std::make_shared<State>();
  auto next = [&interpreter, &loop, &outer, iterable, state](Runtime& r) -> std::optional<Value> {
    if (!state->cursor) {
      interpreter.prepare(state->activation, loop.test_activation, &outer, outer.context);
      interpreter.enter(loop.test_scope, state->activation);
      state->cursor.emplace(r, iterable);
    }
    while (const auto item = state->cursor->next(r)) {
      interpreter.assign(*loop.test_target, state->activation, *item);
      if (truth(r, interpreter.evaluate(*loop.test, state->activation)))
        return target_value(r, *loop.test_target, state->activation, interpreter);
    }
    return std::nullopt;
  };
  return Value::object(runtime.make<Generator>("generator", std::move(next)));
}

}  // namespace

/// Runs one statement.
struct StatementRunner {
  Interpreter& interpreter;
  Activation& activation;
  Buffer& out;
  std::uint32_t line;
  Runtime& runtime = interpreter.runtime_;

  [[nodiscard]] Value evaluate(const ExpressionPtr& expression) const {
    return interpreter.evaluate(*expression, activation);
  }

  Flow operator()(const Output& node) const {
    if (node.expression) {
      interpreter.emit(evaluate(node.expression), node.escape, out);
    } else {
      out.append(node.data);
    }
    return Flow::next;
  }

  Flow operator()(const Assign& node) const {
    interpreter.check_target(*node.target, activation);
    const Value value = evaluate(node.value);
    runtime.at_line(line);
    interpreter.assign(*node.target, activation, value);
    interpreter.export_names(node.exported, activation);
    return Flow::next;
  }

  Flow operator()(const AssignBlock& node) const {
    Buffer captured(runtime);
    interpreter.enter(node.scope, activation);
    const Flow flow = interpreter.run(node.body, activation, captured);
    if (flow == Flow::next) {
      runtime.at_line(line);
      interpreter.check_target(*node.target, activation);
      Value text = captured.finish(runtime.autoescape);
      if (node.filter) text = interpreter.filter_text(*node.filter, activation, text);
      if (runtime.autoescape && !text.is_markup()) text = runtime.text(to_text(runtime, text).view(), true);
      interpreter.assign(*node.target, activation, text);
      interpreter.export_names(node.exported, activation);
    }
    interpreter.leave(node.scope, activation);
    return flow;
  }

  Flow operator()(const If& node) const {
    for (const auto& [test, body] : node.branches)
      if (truth(runtime, evaluate(test))) return interpreter.run(body, activation, out);
    return interpreter.run(node.otherwise, activation, out);
  }

  Flow operator()(const For& node) const {
    const Value iterable = evaluate(node.iterable);
    runtime.at_line(line);
    if (node.recursive) {
      out.append(interpreter.run_recursive(node, activation, iterable, 0).view());
      return Flow::next;
    }
    return interpreter.run_loop(node, activation, activation, iterable, 0, out);
  }

  Flow operator()(const Macro& node) const {
    auto* macro = runtime.make<MacroObject>(interpreter, node.macro, node.name, activation);
    Interpreter::variable(node.variable, activation) = Value::object(macro);
    if (node.exported) interpreter.context_.set(runtime.text(node.name), Value::object(macro));
    return Flow::next;
  }

  Flow operator()(const CallBlock& node) const {
    const Value caller = Value::object(runtime.make<MacroObject>(interpreter, node.macro, std::string(), activation));
    const Value text = node.call ? interpreter.call(std::get<Call>(node.call->node), activation, line, &caller)
                                 : caller.object()->call(runtime, {});
    runtime.at_line(line);
    if (!text.is_text()) runtime.fail("a call block must call what returns a string, not '{}'", type_name(text));
    out.append(text.view());
    return Flow::next;
  }

  Flow operator()(const FilterBlock& node) const {
    Buffer captured(runtime);
    interpreter.enter(node.scope, activation);
    const Flow flow = interpreter.run(node.body, activation, captured);
    if (flow == Flow::next) {
      const Value text = interpreter.filter_text(*node.filter, activation, captured.finish(runtime.autoescape));
      runtime.at_line(line);
      if (!text.is_text()) runtime.fail("a filter block must give a string, not '{}'", type_name(text));
      out.append(text.view());
    }
    interpreter.leave(node.scope, activation);
    return flow;
  }

  Flow operator()(const With& node) const {
    interpreter.enter(node.scope, activation);
    for (std::size_t i = 0; i < node.targets.size(); ++i)
      interpreter.assign(*node.targets[i], activation, evaluate(node.values[i]));
    const Flow flow = interpreter.run(node.body, activation, out);
    interpreter.leave(node.scope, activation);
    return flow;
  }

  Flow operator()(const Autoescape& node) const {
    interpreter.enter(node.scope, activation);
    const bool before = runtime.autoescape;
    runtime.autoescape = truth(runtime, evaluate(node.enabled));
    const Flow flow = interpreter.run(node.body, activation, out);
    runtime.autoescape = before;
    interpreter.leave(node.scope, activation);
    return flow;
  }

  Flow operator()(const Block& node) const {
    if (node.required) runtime.fail("the required block '{}' is not defined", printable(node.name));
    const Context& context = node.scoped ? scoped_context(node) : interpreter.context_;
    out.append(interpreter.run_block(node, context).view());
    return Flow::next;
  }

  /// The context with the variables around a scoped block. Macros in the block may use it until the rendering ends.
  [[nodiscard]] const Context& scoped_context(const Block& node) const {
    Context scoped = interpreter.context_.copy();
    for (const auto& [name, variable] : node.visible) {
      const Value& value = Interpreter::variable(variable, activation);
      if (!value.is_missing()) scoped.set(runtime.text(name), value);
    }
    scoped.charge = runtime.charge(scoped.size() * sizeof(Dict::Entry));
    return *interpreter.scoped_contexts_.emplace_back(std::make_unique<Context>(std::move(scoped)));
  }

  Flow operator()(const LoaderTag& node) const {
    runtime.fail("'{}' is not supported: a chat template cannot load other templates", node.tag);
  }
  Flow operator()(const Break&) const { return Flow::break_loop; }
  Flow operator()(const Continue&) const { return Flow::continue_loop; }
};

std::string Interpreter::render() {
  Activation local;
  Activation& activation = activation_for(tree_.activation, local);
  prepare(activation, tree_.activation, nullptr, &context_);
  Buffer out(runtime_);
  enter(tree_.scope, activation);
  if (tree_.self) variable(*tree_.self, activation) = Value::object(runtime_.make<SelfObject>(*this, context_));
  (void)run(tree_.body, activation, out);
  return out.take();
}

Activation& Interpreter::activation_for(const Activated& activated, Activation& local) {
  if (!activated.captured) return local;
  return *kept_.emplace_back(std::make_unique<Activation>());
}

void Interpreter::prepare(Activation& activation, const Activated& activated, Activation* outer,
                          const Context* context) {
  activation.outer = outer;
  activation.context = context;
  activation.charge = runtime_.charge(activated.slots * sizeof(Value) + sizeof(Activation));
  activation.slots.resize(activated.slots);
}

void Interpreter::enter(const Scope& scope, Activation& activation) {
  for (const Load& load : scope.loads) {
    Value& slot = activation.slots[load.slot];
    switch (load.from) {
      case Load::From::nothing:
        slot = Value();
        break;
      case Load::From::outer:
        slot = variable(load.outer, activation);
        break;
      case Load::From::parameter:
        break;
      case Load::From::context: {
        const Value* found = activation.context->find(load.name);
        slot = found == nullptr ? Value() : *found;
        break;
      }
    }
  }
}

void Interpreter::leave(const Scope& scope, Activation& activation) {
  for (const Load& load : scope.loads) activation.slots[load.slot] = Value();
}

Flow Interpreter::run(const Body& body, Activation& activation, Buffer& out) {
  const Runtime::Nested nested(runtime_);
  for (const auto& statement : body) {
    runtime_.step();
    runtime_.at_line(statement->line);
    const Flow flow = std::visit(StatementRunner{*this, activation, out, statement->line}, statement->node);
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

/// One run of a loop. As in Jinja2, the else part runs unless some iteration reached the end of the body.
Flow Interpreter::run_loop(const For& loop, Activation& activation, Activation& outer, const Value& iterable,
                           std::uint32_t depth, Buffer& out) {
  const Value elements = loop.test ? tested(*this, loop, outer, iterable) : iterable;
  LoopObject* object = nullptr;
  std::optional<Cursor> cursor;
  if (loop.loop) {
    LoopObject::Recurse recurse;
    if (loop.recursive)
      recurse = [this, &loop, &outer](const Value& inner, std::uint32_t level) {
        return run_recursive(loop, outer, inner, level);
      };
    object = runtime_.make<LoopObject>(runtime_, elements, std::move(recurse), depth);
  } else {
    cursor.emplace(runtime_, elements);
  }
  bool completed = false;
  while (auto item = object != nullptr ? object->advance(runtime_) : cursor->next(runtime_)) {
    enter(loop.scope, activation);
    if (object != nullptr) variable(*loop.loop, activation) = Value::object(object);
    assign(*loop.target, activation, *item);
    const Flow flow = run(loop.body, activation, out);
    if (flow == Flow::break_loop) break;
    completed = completed || flow == Flow::next;
  }
  leave(loop.scope, activation);
  if (completed || loop.otherwise.empty()) return Flow::next;
  enter(loop.else_scope, activation);
  const Flow flow = run(loop.otherwise, activation, out);
  leave(loop.else_scope, activation);
  return flow;
}

Value Interpreter::run_recursive(const For& loop, Activation& outer, const Value& iterable, std::uint32_t depth) {
  Activation local;
  Activation& activation = activation_for(loop.activation, local);
  prepare(activation, loop.activation, &outer, outer.context);
  Buffer out(runtime_);
  (void)run_loop(loop, activation, outer, iterable, depth, out);
  return out.finish(runtime_.autoescape);
}

void Interpreter::bind_parameters(const MacroBody& macro, std::string_view name, Activation& activation,
                                  Arguments arguments) {
  const auto take_named = [&](std::string_view wanted) -> Value {
    const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& argument) { return argument.first == wanted; });
    if (found == arguments.named.end()) return Value();
    Value value = std::move(found->second);
    arguments.named.erase(found);
    return value;
  };
  const std::size_t count = macro.parameters.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto& parameter = std::get<Name>(macro.parameters[i]->node);
    const bool positional = i < arguments.positional.size();
    variable(parameter.variable, activation) = positional ? arguments.positional[i] : take_named(parameter.name);
  }
  if (macro.caller) {
    Value caller = take_named("caller");
    if (caller.is_missing() || caller.is_none()) caller = runtime_.undefined("no caller defined");
    variable(*macro.caller, activation) = std::move(caller);
  }
  if (macro.kwargs) {
    Dict kwargs;
    for (auto& [key, value] : arguments.named) kwargs.set(runtime_.text(key), std::move(value));
    variable(*macro.kwargs, activation) = runtime_.dict(std::move(kwargs));
  } else if (!arguments.named.empty()) {
    runtime_.fail("macro '{}' takes no keyword argument '{}'", printable(name), printable(arguments.named[0].first));
  }
  std::vector<Value> rest;
  if (arguments.positional.size() > count)
    rest.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(count), arguments.positional.end());
  if (macro.varargs) {
    variable(*macro.varargs, activation) = runtime_.tuple(std::move(rest));
  } else if (!rest.empty()) {
    runtime_.fail("macro '{}' takes not more than {} arguments", printable(name), count);
  }
}

Value Interpreter::run_macro(const MacroBody& macro, std::string_view name, Activation& outer, Arguments arguments) {
  const Runtime::Nested nested(runtime_);
  Activation local;
  Activation& activation = activation_for(macro.activation, local);
  prepare(activation, macro.activation, &outer, outer.context);
  bind_parameters(macro, name, activation, std::move(arguments));
  enter(macro.scope, activation);
  const std::size_t first_default = macro.parameters.size() - macro.defaults.size();
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& parameter = std::get<Name>(macro.parameters[i]->node);
    Value& value = variable(parameter.variable, activation);
    if (!value.is_missing()) continue;
    Value fallback =
        i >= first_default
            ? evaluate(*macro.defaults[i - first_default], activation)
            : runtime_.undefined(fmt::format("parameter '{}' was not provided", printable(parameter.name)));
    variable(parameter.variable, activation) = std::move(fallback);
  }
  Buffer out(runtime_);
  const bool markup = runtime_.autoescape;
  (void)run(macro.body, activation, out);
  return out.finish(markup);
}

const Block* Interpreter::find_block(std::string_view name) const {
  const auto found =
      std::find_if(tree_.blocks.begin(), tree_.blocks.end(), [&](const Block* block) { return block->name == name; });
  return found == tree_.blocks.end() ? nullptr : *found;
}

Value Interpreter::run_block(const Block& block, const Context& context) {
  const Runtime::Nested nested(runtime_);
  Activation local;
  Activation& activation = activation_for(block.activation, local);
  prepare(activation, block.activation, nullptr, &context);
  enter(block.scope, activation);
  if (block.self) variable(*block.self, activation) = Value::object(runtime_.make<SelfObject>(*this, context));
  if (block.super)
    variable(*block.super, activation) =
        runtime_.undefined(fmt::format("there is no parent block called '{}'", printable(block.name)));
  Buffer out(runtime_);
  (void)run(block.body, activation, out);
  return out.finish(runtime_.autoescape);
}

void Interpreter::emit(const Value& value, Escape escape_mode, Buffer& out) {
  const bool escaped = escape_mode == Escape::on || (escape_mode == Escape::by_context && runtime_.autoescape);
  print(runtime_, out, escaped ? escape(runtime_, value) : value);
}

void Interpreter::check_target(const Expression& target, Activation& activation) {
  if (const auto* attribute = std::get_if<NamespaceTarget>(&target.node)) {
    if (dynamic_cast<Namespace*>(variable(attribute->variable, activation).object()) == nullptr)
      runtime_.fail("cannot assign attribute '{}': '{}' is not a namespace object", printable(attribute->attribute),
                    printable(attribute->name));
  } else if (const auto* tuple = std::get_if<TupleOf>(&target.node)) {
    for (const auto& item : tuple->items) check_target(*item, activation);
  }
}

void Interpreter::assign(const Expression& target, Activation& activation, const Value& value) {
  if (const auto* name = std::get_if<Name>(&target.node)) {
    variable(name->variable, activation) = value;
  } else if (const auto* attribute = std::get_if<NamespaceTarget>(&target.node)) {
    auto* owner = dynamic_cast<Namespace*>(variable(attribute->variable, activation).object());
    if (owner == nullptr) runtime_.fail("'{}' is not a namespace object", printable(attribute->name));
    owner->set(runtime_, attribute->attribute, value);
  } else {
    const auto& targets = std::get<TupleOf>(target.node).items;
    Cursor cursor(runtime_, value);
    std::vector<Value> values;
    while (auto item = cursor.next(runtime_)) {
      if (values.size() == targets.size()) runtime_.fail("too many values to unpack (expected {})", targets.size());
      values.push_back(std::move(*item));
    }
    if (values.size() < targets.size())
      runtime_.fail("not enough values to unpack (expected {}, got {})", targets.size(), values.size());
    for (std::size_t i = 0; i < targets.size(); ++i) assign(*targets[i], activation, values[i]);
  }
}

void Interpreter::export_names(const std::vector<std::pair<std::string, Variable>>& names, Activation& activation) {
  for (const auto& [name, place] : names) context_.set(runtime_.text(name), variable(place, activation));
}

Value Interpreter::filter_text(const Expression& filter, Activation& activation, const Value& text) {
  const Value* before = std::exchange(filtered_text_, &text);
  Value result = evaluate(filter, activation);
  filtered_text_ = before;
  return result;
}

}  // namespace candor::jinja
