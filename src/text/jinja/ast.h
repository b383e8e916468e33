// The tree of a template. The parser makes it, the resolver (scope.h) fills in where each variable lives, and from then
// on it is constant. Each node knows its line; nesting is capped, so that walking the tree needs bounded stack.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/value.h"

namespace candor::jinja {

struct Expression;
struct Statement;
struct FilterEntry;
struct TestEntry;
using ExpressionPtr = std::unique_ptr<Expression>;
using StatementPtr = std::unique_ptr<Statement>;
using Body = std::vector<StatementPtr>;

// ---- Where variables live -------------------------------------------------------------------------------------------

/// A variable of an activation: `hops` activations outward, then `slot`.
struct Variable {
  std::uint32_t hops = 0;
  std::uint32_t slot = 0;
};

/// What a variable is set to when its scope is entered.
struct Load {
  enum class From : std::uint8_t { nothing, context, outer, parameter };
  From from = From::nothing;
  std::uint32_t slot = 0;
  std::string name;  ///< From::context: the name to look up
  Variable outer;    ///< From::outer: the variable of the enclosing scope it starts from
};

/// One scope: a template, or the inside of a for, macro, with, set block, filter block, call block or autoescape.
struct Scope {
  // In the order in which the variables were met.
  std::vector<Load> loads;
};

/// What runs with variables of its own: a template, a macro, a block, a recursive loop, the test of a loop.
struct Activated {
  std::uint32_t slots = 0;
  bool captured = false;  ///< code inside, with an activation of its own, may outlive this one and use its variables
};

/// How output treats HTML here.
enum class Escape : std::uint8_t { off, on, by_context };

// ---- Expressions ----------------------------------------------------------------------------------------------------

struct Constant {
  Value value;
};

struct Name {
  enum class Use : std::uint8_t { load, store, parameter };
  std::string name;
  Use use = Use::load;
  Variable variable;
};

/// namespace.attribute as a target.
struct NamespaceTarget {
  std::string name;
  std::string attribute;
  Variable variable;
};

struct TupleOf {
  std::vector<ExpressionPtr> items;
};

struct ListOf {
  std::vector<ExpressionPtr> items;
};

struct DictOf {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> items;
};

enum class UnaryOp : std::uint8_t { negative, positive, logical_not };
enum class BinaryOp : std::uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class CompareOp : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

struct Unary {
  UnaryOp op;
  ExpressionPtr operand;
};

struct Binary {
  BinaryOp op;
  ExpressionPtr left;
  ExpressionPtr right;
};

struct Logical {
  bool is_and;
  ExpressionPtr left;
  ExpressionPtr right;
};

struct Compare {
  ExpressionPtr first;
  std::vector<std::pair<CompareOp, ExpressionPtr>> rest;
};

struct Concat {
  std::vector<ExpressionPtr> items;
  Escape escape = Escape::off;
};

struct Conditional {
  ExpressionPtr test;
  ExpressionPtr then;
  ExpressionPtr otherwise;  ///< may be absent
};

struct Attribute {
  ExpressionPtr object;
  std::string name;
};

struct Item {
  ExpressionPtr object;
  ExpressionPtr key;
};

/// object[start:stop:step]; each part may be absent.
struct Slice {
  ExpressionPtr object;
  ExpressionPtr start;
  ExpressionPtr stop;
  ExpressionPtr step;
};

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr more_positional;  ///< *expression; may be absent
  ExpressionPtr more_named;       ///< **expression; may be absent
};

struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};

struct Filter {
  ExpressionPtr subject;  ///< absent: the text of the block around it
  std::string name;
  CallArguments arguments;
  const FilterEntry* entry = nullptr;  ///< absent for an unknown filter, which fails when reached
};

struct Test {
  ExpressionPtr subject;
  std::string name;
  CallArguments arguments;
  const TestEntry* entry = nullptr;
};

struct Expression {
  using Node = std::variant<Constant, Name, NamespaceTarget, TupleOf, ListOf, DictOf, Unary, Binary, Logical, Compare,
                            Concat, Conditional, Attribute, Item, Slice, Call, Filter, Test>;
  std::uint32_t line = 1;
  std::uint32_t depth = 1;
  Node node;
};

// ---- Statements -----------------------------------------------------------------------------------------------------

/// Text of the template, or an expression to print.
struct Output {
  std::string data;
  ExpressionPtr expression;  ///< absent: `data` is printed
  Escape escape = Escape::off;
};

struct Assign {
  ExpressionPtr target;
  ExpressionPtr value;
  std::vector<std::pair<std::string, Variable>> exported;  ///< names that the context of blocks sees
};

struct AssignBlock {
  ExpressionPtr target;
  ExpressionPtr filter;  ///< a Filter without innermost subject; may be absent
  Body body;
  Scope scope;
  std::vector<std::pair<std::string, Variable>> exported;
};

struct If {
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};

struct For {
  ExpressionPtr target;
  ExpressionPtr iterable;
  ExpressionPtr test;  ///< may be absent
  Body body;
  Body otherwise;
  bool recursive = false;

  std::optional<Variable> loop;  ///< where the loop object goes, if the body uses it
  Scope scope;
  Scope else_scope;
  Scope test_scope;
  ExpressionPtr test_target;  ///< the target as the test's own activation sees it
  Activated test_activation;
  Activated activation;  ///< of a recursive loop
};

/// A macro, or the inside of a call block (a macro without a name, passed as `caller`).
struct MacroBody {
  std::vector<ExpressionPtr> parameters;  ///< Names
  std::vector<ExpressionPtr> defaults;    ///< of the last parameters
  Body body;

  Scope scope;
  Activated activation;
  std::optional<Variable> caller;
  std::optional<Variable> varargs;
  std::optional<Variable> kwargs;
};

struct Macro {
  std::string name;
  MacroBody macro;
  Variable variable;
  bool exported = false;
};

struct CallBlock {
  MacroBody macro;
  ExpressionPtr call;  ///< a Call; absent for {% generation %}, which prints the body
};

struct FilterBlock {
  ExpressionPtr filter;
  Body body;
  Scope scope;
};

struct With {
  std::vector<ExpressionPtr> targets;
  std::vector<ExpressionPtr> values;
  Body body;
  Scope scope;
};

struct Autoescape {
  ExpressionPtr enabled;
  Body body;
  Scope scope;
};

/// {% block %}: the body runs where it stands, with the variables of the context only.
struct Block {
  std::string name;
  bool scoped = false;
  bool required = false;
  Body body;

  Scope scope;
  Activated activation;
  std::optional<Variable> self;
  std::optional<Variable> super;
  std::vector<std::pair<std::string, Variable>> visible;  ///< scoped: what the block sees besides the context
};

/// include, import, from, extends: there is no loader, so reaching one is an error.
struct LoaderTag {
  std::string tag;
  ExpressionPtr source;
  std::vector<std::string> stores;  ///< names it would set
};

struct Break {};
struct Continue {};

struct Statement {
  using Node = std::variant<Output, Assign, AssignBlock, If, For, Macro, CallBlock, FilterBlock, With, Autoescape,
                            Block, LoaderTag, Break, Continue>;
  std::uint32_t line = 1;
  Node node;
};

/// A whole template.
struct Template {
  Body body;
  Scope scope;
  Activated activation;
  std::optional<Variable> self;
  std::vector<Block*> blocks;  ///< in order; owned by the tree
};

}  // namespace candor::jinja
