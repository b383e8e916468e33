// Visiting the parts of an expression, in the order in which Jinja2 visits them.
#pragma once

#include "text/jinja/ast.h"

namespace candor::jinja {

template <typename Visitor>
void for_each_argument(CallArguments& arguments, const Visitor& visit) {
  for (auto& value : arguments.positional) visit(*value);
  for (auto& [name, value] : arguments.named) visit(*value);
  if (arguments.more_positional) visit(*arguments.more_positional);
  if (arguments.more_named) visit(*arguments.more_named);
}

/// Calls visit(Expression&) for each part of `expression`.
template <typename Visitor>
void for_each_part(Expression& expression, const Visitor& visit) {
  const auto visit_if = [&](ExpressionPtr& part) {
    if (part) visit(*part);
  };
  struct Parts {
    const Visitor& visit;
    const decltype(visit_if)& optional;

    void operator()(Constant&) const {}
    void operator()(Name&) const {}
    void operator()(NamespaceTarget&) const {}
    void operator()(TupleOf& node) const {
      for (auto& item : node.items) visit(*item);
    }
    void operator()(ListOf& node) const {
      for (auto& item : node.items) visit(*item);
    }
    void operator()(DictOf& node) const {
      for (auto& [key, value] : node.items) {
        visit(*key);
        visit(*value);
      }
    }
    void operator()(Unary& node) const { visit(*node.operand); }
    void operator()(Binary& node) const {
      visit(*node.left);
      visit(*node.right);
    }
    void operator()(Logical& node) const {
      visit(*node.left);
      visit(*node.right);
    }
    void operator()(Compare& node) const {
      visit(*node.first);
      for (auto& [op, operand] : node.rest) visit(*operand);
    }
    void operator()(Concat& node) const {
      for (auto& item : node.items) visit(*item);
    }
    void operator()(Conditional& node) const {
      visit(*node.test);
      visit(*node.then);
      optional(node.otherwise);
    }
    void operator()(Attribute& node) const { visit(*node.object); }
    void operator()(Item& node) const {
      visit(*node.object);
      visit(*node.key);
    }
    void operator()(Slice& node) const {
      visit(*node.object);
      optional(node.start);
      optional(node.stop);
      optional(node.step);
    }
    void operator()(Call& node) const {
      visit(*node.callee);
      for_each_argument(node.arguments, visit);
    }
    void operator()(Filter& node) const {
      optional(node.subject);
      for_each_argument(node.arguments, visit);
    }
    void operator()(Test& node) const {
      optional(node.subject);
      for_each_argument(node.arguments, visit);
    }
  };
  std::visit(Parts{visit, visit_if}, expression.node);
}

}  // namespace candor::jinja
