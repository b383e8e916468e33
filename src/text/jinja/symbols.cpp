#include "text/jinja/symbols.h"

#include <set>

#include "text/jinja/walk.h"

namespace candor::jinja {

std::uint32_t FunctionSymbols::slot(std::uint32_t level, const std::string& name) {
  const auto [found, added] = slots_.try_emplace({level, name}, activated_.slots);
  if (added) ++activated_.slots;
  return found->second;
}

std::uint32_t FunctionSymbols::hops_to(const FunctionSymbols& other) const {
  std::uint32_t hops = 0;
  for (const FunctionSymbols* at = this; at != nullptr && at != &other; at = at->outer_) ++hops;
  return hops;
}

ScopeSymbols::Symbol& ScopeSymbols::define(const std::string& name, Load::From from) {
  Symbol& symbol = symbols_[name];
  symbol.load.from = from;
  symbol.load.slot = function_->slot(level_, name);
  symbol.load.name = name;
  return symbol;
}

void ScopeSymbols::declare_parameter(const std::string& name) {
  define(name, Load::From::parameter).stored = true;
}

void ScopeSymbols::declare_parameters(Expression& target) {
  if (const auto* name = std::get_if<Name>(&target.node)) {
    declare_parameter(name->name);
  } else {
    for_each_part(target, [this](Expression& part) { declare_parameters(part); });
  }
}

void ScopeSymbols::read(const std::string& name) {
  if (!find(name)) define(name, Load::From::context);
}

void ScopeSymbols::set(const std::string& name, bool conditional) {
  if (const auto own = symbols_.find(name); own != symbols_.end()) {
    own->second.stored = true;
    return;
  }
  const auto outer = parent_ == nullptr ? std::nullopt : parent_->find(name, *function_);
  // A set that may not happen leaves the context's value visible; one that does happen hides it from the start.
  const Load::From otherwise = conditional ? Load::From::context : Load::From::nothing;
  Symbol& symbol = define(name, outer ? Load::From::outer : otherwise);
  if (outer) symbol.load.outer = *outer;
  symbol.stored = true;
}

std::optional<Variable> ScopeSymbols::find(std::string_view name, const FunctionSymbols& from) const {
  for (const ScopeSymbols* scope = this; scope != nullptr; scope = scope->parent_) {
    const auto found = scope->symbols_.find(name);
    if (found != scope->symbols_.end()) return Variable{from.hops_to(*scope->function_), found->second.load.slot};
  }
  return std::nullopt;
}

Scope ScopeSymbols::scope() const {
  Scope result;
  for (const auto& [name, symbol] : symbols_) result.loads.push_back(symbol.load);
  return result;
}

std::vector<std::pair<std::string, Variable>> ScopeSymbols::stored() const {
  std::vector<std::pair<std::string, Variable>> result;
  std::set<std::string_view> seen;
  for (const ScopeSymbols* scope = this; scope != nullptr; scope = scope->parent_)
    for (const auto& [name, symbol] : scope->symbols_)
      if (symbol.stored && seen.insert(name).second) result.emplace_back(name, *find(name));
  return result;
}

void ScopeSymbols::note(Body& body, bool conditional) {
  for (auto& statement : body) note_statement(*statement, conditional);
}

void ScopeSymbols::note_if(ExpressionPtr& expression, bool conditional) {
  if (expression) note(*expression, conditional);
}

void ScopeSymbols::note(Expression& expression, bool conditional) {
  if (const auto* name = std::get_if<Name>(&expression.node)) {
    switch (name->use) {
      case Name::Use::load:
        read(name->name);
        break;
      case Name::Use::store:
        set(name->name, conditional);
        break;
      case Name::Use::parameter:
        declare_parameter(name->name);
        break;
    }
  } else if (const auto* target = std::get_if<NamespaceTarget>(&expression.node)) {
    read(target->name);
  } else {
    for_each_part(expression, [&](Expression& part) { note(part, conditional); });
  }
}

void ScopeSymbols::note_statement(Statement& statement, bool conditional) {
  struct Notes {
    ScopeSymbols& scope;
    bool conditional;

    void operator()(Output& node) const { scope.note_if(node.expression, conditional); }
    void operator()(Assign& node) const {
      scope.note(*node.value, conditional);
      scope.note(*node.target, conditional);
    }
    void operator()(AssignBlock& node) const { scope.note(*node.target, conditional); }
    void operator()(If& node) const {
      bool first = true;
      for (auto& [test, body] : node.branches) {
        scope.note(*test, conditional || !first);
        scope.note(body, true);
        first = false;
      }
      scope.note(node.otherwise, true);
    }
    void operator()(For& node) const { scope.note(*node.iterable, conditional); }
    void operator()(Macro& node) const { scope.set(node.name, conditional); }
    void operator()(CallBlock& node) const { scope.note_if(node.call, conditional); }
    void operator()(FilterBlock& node) const { scope.note(*node.filter, conditional); }
    void operator()(With& node) const {
      for (auto& value : node.values) scope.note(*value, conditional);
    }
    void operator()(Autoescape&) const {}
    void operator()(Block&) const {}
    void operator()(LoaderTag& node) const {
      scope.note(*node.source, conditional);
      for (const auto& name : node.stores) scope.set(name, conditional);
    }
    void operator()(Break&) const {}
    void operator()(Continue&) const {}
  };
  std::visit(Notes{*this, conditional}, statement.node);
}

}  // namespace candor::jinja
