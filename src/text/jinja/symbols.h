// The variables of one scope while a template is resolved: which names the scope reads and sets, and from that what
// each variable starts with. The rules are those of Jinja2's identifier tracking.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"

namespace candor::jinja {

/// Code with variables of its own. Scopes of the same level in one function share the variable of a name.
class FunctionSymbols {
 public:
  FunctionSymbols(FunctionSymbols* outer, Activated& activated) : outer_(outer), activated_(activated) {
    if (outer_ != nullptr) outer_->activated_.captured = true;
  }

  [[nodiscard]] std::uint32_t slot(std::uint32_t level, const std::string& name);
  /// Functions to go outward from this one to `other`.
  [[nodiscard]] std::uint32_t hops_to(const FunctionSymbols& other) const;

 private:
  FunctionSymbols* outer_;
  Activated& activated_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> slots_;
};

class ScopeSymbols {
 public:
  /// A scope inside `parent`, in the same function unless `function` is another. Without parent: level 0 of `function`.
  explicit ScopeSymbols(FunctionSymbols& function) : function_(&function) {}
  ScopeSymbols(const ScopeSymbols& parent, FunctionSymbols& function)
      : parent_(&parent), function_(&function), level_(parent.level_ + 1) {}

  /// Notes everything that the scope's own statements read and set. Inner scopes are noted where they begin.
  void note(Body& body) { note(body, false); }
  /// Notes what an expression reads, or as a target sets.
  void note(Expression& expression) { note(expression, false); }
  /// A variable that is set before the scope is entered: a parameter, a loop's target.
  void declare_parameter(const std::string& name);
  /// Declares all names of a target.
  void declare_parameters(Expression& target);

  /// The variable `name` as seen from this scope; nothing if it was never noted.
  [[nodiscard]] std::optional<Variable> find(std::string_view name) const { return find(name, *function_); }
  /// What to do when the scope is entered.
  [[nodiscard]] Scope scope() const;
  /// The variables set in this scope and those around it, the innermost of each name.
  [[nodiscard]] std::vector<std::pair<std::string, Variable>> stored() const;

  [[nodiscard]] FunctionSymbols& function() const { return *function_; }

 private:
  struct Symbol {
    Load load;
    bool stored = false;
  };

  void note(Body& body, bool conditional);
  void note(Expression& expression, bool conditional);
  void note_if(ExpressionPtr& expression, bool conditional);
  void note_statement(Statement& statement, bool conditional);
  void read(const std::string& name);
  void set(const std::string& name, bool conditional);
  [[nodiscard]] std::optional<Variable> find(std::string_view name, const FunctionSymbols& from) const;
  Symbol& define(const std::string& name, Load::From from);

  const ScopeSymbols* parent_ = nullptr;
  FunctionSymbols* function_;
  std::uint32_t level_ = 0;
  std::map<std::string, Symbol, std::less<>> symbols_;
};

}  // namespace candor::jinja
