#include <algorithm>

#include "text/jinja/attribute.h"
#include "text/jinja/filters.h"
#include "text/jinja/globals.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/iterate.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/tests.h"

namespace candor::jinja {

/// Evaluates one node; its parts go through Interpreter::evaluate.
struct ExpressionEvaluator {
  Interpreter& interpreter;
  Activation& activation;
  std::uint32_t line;
  Runtime& runtime = interpreter.runtime_;

  [[nodiscard]] Value part(const ExpressionPtr& expression) const {
    return interpreter.evaluate(*expression, activation);
  }
  [[nodiscard]] Value part_or_none(const ExpressionPtr& expression) const {
    return expression ? part(expression) : Value::none();
  }
  /// Names this node's line in errors again, after its parts were evaluated.
  void here() const { runtime.at_line(line); }

  [[nodiscard]] std::vector<Value> parts(const std::vector<ExpressionPtr>& expressions) const {
    std::vector<Value> values;
    values.reserve(expressions.size());
    for (const auto& expression : expressions) values.push_back(part(expression));
    return values;
  }

  Value operator()(const Constant& node) const { return node.value; }

  Value operator()(const Name& node) const {
    const Value& value = Interpreter::variable(node.variable, activation);
    if (value.is_missing()) return runtime.undefined(fmt::format("'{}' is undefined", printable(node.name)));
    return value;
  }

  Value operator()(const NamespaceTarget&) const { runtime.fail("a target is not an expression"); }
  Value operator()(const TupleOf& node) const { return runtime.tuple(parts(node.items)); }
  Value operator()(const ListOf& node) const { return runtime.list(parts(node.items)); }

  Value operator()(const DictOf& node) const {
    Dict dict;
    for (const auto& [key, value] : node.items) {
      Value k = part(key);
      require_hashable(runtime, k);
      dict.set(std::move(k), part(value));
    }
    here();
    return runtime.dict(std::move(dict));
  }

  Value operator()(const Unary& node) const {
    const Value operand = part(node.operand);
    here();
    return unary(runtime, node.op, operand);
  }

  Value operator()(const Binary& node) const {
    const Value left = part(node.left);
    const Value right = part(node.right);
    here();
    return binary(runtime, node.op, left, right);
  }

  Value operator()(const Logical& node) const {
    Value left = part(node.left);
    if (truth(runtime, left) != node.is_and) return left;
    return part(node.right);
  }

  Value operator()(const Compare& node) const {
    Value left = part(node.first);
    for (const auto& [op, operand] : node.rest) {
      Value right = part(operand);
      here();
      if (!compare(runtime, op, left, right)) return Value::boolean(false);
      left = std::move(right);
    }
    return Value::boolean(true);
  }

  Value operator()(const Concat& node) const {
    const std::vector<Value> items = parts(node.items);
    here();
    const bool markup = node.escape == Escape::on &&
                        std::any_of(items.begin(), items.end(), [](const Value& item) { return item.is_markup(); });
    Buffer out(runtime);
    for (const Value& item : items) print(runtime, out, markup ? escape(runtime, item) : item);
    return out.finish(markup);
  }

  Value operator()(const Conditional& node) const {
    if (truth(runtime, part(node.test))) return part(node.then);
    if (node.otherwise) return part(node.otherwise);
    return runtime.undefined(
        fmt::format("the inline if-expression on line {} evaluated to false and has no else", line));
  }

  Value operator()(const Attribute& node) const {
    const Value object = part(node.object);
    here();
    return get_attribute(runtime, object, node.name);
  }

  Value operator()(const Item& node) const {
    const Value object = part(node.object);
    const Value key = part(node.key);
    here();
    return get_item(runtime, object, key);
  }

  Value operator()(const Slice& node) const {
    const Value object = part(node.object);
    const Value start = part_or_none(node.start);
    const Value stop = part_or_none(node.stop);
    const Value step = part_or_none(node.step);
    here();
    return slice(runtime, object, start, stop, step);
  }

  Value operator()(const Call& node) const { return interpreter.call(node, activation, line, nullptr); }

  Value operator()(const Filter& node) const {
    const Value subject = node.subject ? part(node.subject) : *interpreter.filtered_text_;
    const Arguments arguments = interpreter.arguments_of(node.arguments, activation);
    here();
    if (node.entry == nullptr) runtime.fail("no filter named '{}'", printable(node.name));
    return node.entry->run(runtime, subject, arguments);
  }

  Value operator()(const Test& node) const {
    const Value subject = part(node.subject);
    const Arguments arguments = interpreter.arguments_of(node.arguments, activation);
    here();
    if (node.entry == nullptr) runtime.fail("no test named '{}'", printable(node.name));
    return Value::boolean(node.entry->run(runtime, subject, arguments));
  }
};

Value Interpreter::evaluate(const Expression& expression, Activation& activation) {
  const Runtime::Nested nested(runtime_);
  runtime_.step();
  runtime_.at_line(expression.line);
  return std::visit(ExpressionEvaluator{*this, activation, expression.line}, expression.node);
}

Value& Interpreter::variable(const Variable& variable, Activation& activation) {
  Activation* at = &activation;
  for (std::uint32_t i = 0; i < variable.hops; ++i) at = at->outer;
  return at->slots[variable.slot];
}

Arguments Interpreter::arguments_of(const CallArguments& arguments, Activation& activation) {
  Arguments result;
  result.positional.reserve(arguments.positional.size());
  for (const auto& value : arguments.positional) result.positional.push_back(evaluate(*value, activation));
  for (const auto& [name, value] : arguments.named) result.named.emplace_back(name, evaluate(*value, activation));
  if (arguments.more_positional) {
    for (Value& value : to_vector(runtime_, evaluate(*arguments.more_positional, activation)))
      result.positional.push_back(std::move(value));
  }
  if (arguments.more_named) {
    const Value more = evaluate(*arguments.more_named, activation);
    require_defined(runtime_, more);
    if (!more.is_dict()) runtime_.fail("the argument after ** must be a mapping, not '{}'", type_name(more));
    for (const auto& [key, value] : more.dict().entries()) {
      if (!key.is_text()) runtime_.fail("keywords must be strings");
      for (const auto& [name, other] : arguments.named)
        if (name == key.view()) runtime_.fail("got several values for the keyword argument '{}'", printable(name));
      result.named.emplace_back(std::string(key.view()), value);
    }
  }
  return result;
}

/// A call; `caller` is what a call block passes.
Value Interpreter::call(const Call& node, Activation& activation, std::uint32_t line, const Value* caller) {
  const auto arguments = [&] {
    Arguments result = arguments_of(node.arguments, activation);
    if (caller != nullptr) {
      for (const auto& [name, value] : result.named)
        if (name == "caller") runtime_.fail("keyword argument repeated: caller");
      result.named.emplace_back("caller", *caller);
    }
    runtime_.at_line(line);
    return result;
  };
  if (const auto* attribute = std::get_if<Attribute>(&node.callee->node)) {
    const Value self = evaluate(*attribute->object, activation);
    if (const Method* method = find_method(self, attribute->name)) return method->run(runtime_, self, arguments());
    runtime_.at_line(line);
    const Value callee = get_attribute(runtime_, self, attribute->name);
    return jinja::call(runtime_, callee, arguments());
  }
  const Value callee = evaluate(*node.callee, activation);
  return jinja::call(runtime_, callee, arguments());
}

}  // namespace candor::jinja
