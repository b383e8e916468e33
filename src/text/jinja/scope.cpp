#include "text/jinja/scope.h"

#include <set>

#include "base/error.h"
#include "text/jinja/filters.h"
#include "text/jinja/symbols.h"
#include "text/jinja/tests.h"
#include "text/jinja/undeclared.h"
#include "text/jinja/walk.h"

namespace candor::jinja {
namespace {

/// What holds at a place of the template.
struct Place {
  ScopeSymbols& symbols;
  bool top_level = false;    ///< at the template's own level, ifs included: sets reach the context of blocks
  bool in_loop = false;      ///< break and continue have a loop to act on
  bool under_for = false;    ///< somewhere inside a for: `loop` must not be set
  bool conditional = false;  ///< inside an if or a conditional expression: an unknown filter fails when it is reached
  Escape escape = Escape::off;

  /// A scope inside this place.
  [[nodiscard]] Place inner(ScopeSymbols& scope) const { return {scope, false, in_loop, under_for, false, escape}; }
  /// Code inside this place that runs on its own.
  [[nodiscard]] Place own_function(ScopeSymbols& scope) const {
    return {scope, false, false, under_for, false, escape};
  }
  [[nodiscard]] Place soft() const {
    Place place = *this;
    place.conditional = true;
    return place;
  }
};

class Resolver {
 public:
  explicit Resolver(const std::string& label) : label_(label) {}

  void resolve(Template& tree) {
    find_blocks(tree.body);
    tree.blocks = blocks_;
    FunctionSymbols function(nullptr, tree.activation);
    ScopeSymbols symbols(function);
    if (find_undeclared(tree.body, {"self"}).contains("self")) {
      symbols.declare_parameter("self");
      tree.self = symbols.find("self");
    }
    symbols.note(tree.body);
    tree.scope = symbols.scope();
    bind(tree.body, Place{symbols, true, false, false, false, Escape::off});
    for (Block* block : blocks_) resolve_block(*block);
  }

 private:
  [[noreturn]] void fail(std::uint32_t line, const std::string& message) const {
    candor::fail(ErrorCode::text, "{}, line {}: {}", label_, line, message);
  }

  // ---- Blocks ----

  void find_blocks(Body& body) {
    for (auto& statement : body) {
      line_ = statement->line;
      for_each_body(statement->node, [this](Body& inner) { find_blocks(inner); });
      if (auto* block = std::get_if<Block>(&statement->node)) {
        if (!block_names_.insert(block->name).second)
          fail(statement->line, fmt::format("block '{}' defined twice", printable(block->name)));
        blocks_.push_back(block);
      }
    }
  }

  template <typename Visitor>
  static void for_each_body(Statement::Node& node, const Visitor& visit) {
    if (auto* branch = std::get_if<If>(&node)) {
      for (auto& [test, body] : branch->branches) visit(body);
      visit(branch->otherwise);
    } else if (auto* loop = std::get_if<For>(&node)) {
      visit(loop->body);
      visit(loop->otherwise);
    } else if (auto* macro = std::get_if<Macro>(&node)) {
      visit(macro->macro.body);
    } else if (auto* call = std::get_if<CallBlock>(&node)) {
      visit(call->macro.body);
    } else if (auto* set = std::get_if<AssignBlock>(&node)) {
      visit(set->body);
    } else if (auto* filter = std::get_if<FilterBlock>(&node)) {
      visit(filter->body);
    } else if (auto* with = std::get_if<With>(&node)) {
      visit(with->body);
    } else if (auto* escape = std::get_if<Autoescape>(&node)) {
      visit(escape->body);
    } else if (auto* block = std::get_if<Block>(&node)) {
      visit(block->body);
    }
  }

  /// A block sees the context alone, not the variables around it.
  void resolve_block(Block& block) {
    FunctionSymbols function(nullptr, block.activation);
    ScopeSymbols symbols(function);
    for (const auto name : find_undeclared(block.body, {"self", "super"})) {
      symbols.declare_parameter(std::string(name));
      (name == "self" ? block.self : block.super) = symbols.find(name);
    }
    symbols.note(block.body);
    block.scope = symbols.scope();
    bind(block.body, Place{symbols, false, false, false, false, Escape::off});
  }

  // ---- Expressions ----

  void bind_if(ExpressionPtr& expression, const Place& place) {
    if (expression) bind(*expression, place);
  }

  void bind(Expression& expression, const Place& place) {
    if (auto* name = std::get_if<Name>(&expression.node)) {
      if (place.under_for && name->use == Name::Use::store && name->name == "loop")
        fail(expression.line, "can't assign to the special variable 'loop' in a for loop");
      name->variable = variable(name->name, place, expression.line);
      return;
    }
    if (auto* target = std::get_if<NamespaceTarget>(&expression.node)) {
      target->variable = variable(target->name, place, expression.line);
      return;
    }
    if (auto* concat = std::get_if<Concat>(&expression.node)) concat->escape = place.escape;
    if (auto* filter = std::get_if<Filter>(&expression.node)) {
      filter->entry = find_filter(filter->name);
      if (filter->entry == nullptr && !place.conditional)
        fail(expression.line, fmt::format("no filter named '{}'", printable(filter->name)));
    }
    if (auto* test = std::get_if<Test>(&expression.node)) {
      test->entry = find_test(test->name);
      if (test->entry == nullptr && !place.conditional)
        fail(expression.line, fmt::format("no test named '{}'", printable(test->name)));
    }
    const bool soft = place.conditional || std::holds_alternative<Conditional>(expression.node);
    Place parts = place;
    parts.conditional = soft;
    for_each_part(expression, [&](Expression& part) { bind(part, parts); });
  }

  Variable variable(const std::string& name, const Place& place, std::uint32_t line) const {
    const auto found = place.symbols.find(name);
    if (!found) fail(line, fmt::format("the variable '{}' cannot be used here", printable(name)));
    return *found;
  }

  // ---- Statements ----

  void bind(Body& body, const Place& place) {
    for (auto& statement : body) {
      line_ = statement->line;
      std::visit([&](auto& node) { bind_statement(node, place); }, statement->node);
    }
  }

  void bind_statement(Output& node, const Place& place) {
    node.escape = place.escape;
    bind_if(node.expression, place);
  }

  void bind_statement(Assign& node, const Place& place) {
    bind(*node.target, place);
    bind(*node.value, place);
    if (place.top_level) export_names(*node.target, node.exported);
  }

  void bind_statement(AssignBlock& node, const Place& place) {
    ScopeSymbols symbols(place.symbols, place.symbols.function());
    symbols.note(node.body);
    if (node.filter) symbols.note(*node.filter);
    node.scope = symbols.scope();
    const Place inner = place.inner(symbols);
    bind(node.body, inner);
    bind(*node.target, place);
    bind_if(node.filter, inner);
    if (place.top_level) export_names(*node.target, node.exported);
  }

  void export_names(Expression& target, std::vector<std::pair<std::string, Variable>>& exported) {
    if (blocks_.empty()) return;  // nothing else looks at the context
    if (const auto* name = std::get_if<Name>(&target.node)) exported.emplace_back(name->name, name->variable);
    for_each_part(target, [&](Expression& part) { export_names(part, exported); });
  }

  void bind_statement(If& node, const Place& place) {
    const Place soft = place.soft();
    for (auto& [test, body] : node.branches) {
      bind(*test, soft);
      bind(body, soft);
    }
    bind(node.otherwise, soft);
  }

  void bind_statement(For& node, const Place& place) {
    bind(*node.iterable, place);
    std::optional<FunctionSymbols> own;
    if (node.recursive) own.emplace(&place.symbols.function(), node.activation);
    FunctionSymbols& function = own ? *own : place.symbols.function();

    ScopeSymbols body_symbols(place.symbols, function);
    if (node.recursive || find_undeclared(node.body, {"loop"}).contains("loop") || has_scoped_block(node.body) ||
        has_scoped_block(node.otherwise)) {
      body_symbols.declare_parameter("loop");
      node.loop = body_symbols.find("loop");
    }
    body_symbols.declare_parameters(*node.target);
    body_symbols.note(node.body);
    node.scope = body_symbols.scope();
    Place body = node.recursive ? place.own_function(body_symbols) : place.inner(body_symbols);
    body.in_loop = true;
    body.under_for = true;
    if (node.test) bind_test(node, place);
    bind(*node.target, body);
    bind(node.body, body);

    ScopeSymbols else_symbols(place.symbols, function);
    else_symbols.note(node.otherwise);
    node.else_scope = else_symbols.scope();
    Place otherwise = node.recursive ? place.own_function(else_symbols) : place.inner(else_symbols);
    otherwise.under_for = true;
    bind(node.otherwise, otherwise);
  }

  /// The test of a loop runs on its own, with its own copy of the target.
  void bind_test(For& node, const Place& place) {
    FunctionSymbols function(&place.symbols.function(), node.test_activation);
    ScopeSymbols symbols(place.symbols, function);
    node.test_target = copy_target(*node.target);
    symbols.declare_parameters(*node.test_target);
    symbols.note(*node.test);
    node.test_scope = symbols.scope();
    const Place inner = place.own_function(symbols);
    bind(*node.test_target, inner);
    bind(*node.test, inner);
  }

  static ExpressionPtr copy_target(const Expression& target) {
    auto copy = std::make_unique<Expression>();
    copy->line = target.line;
    copy->depth = target.depth;
    if (const auto* name = std::get_if<Name>(&target.node)) {
      copy->node = Name{name->name, name->use, {}};
    } else {
      TupleOf items;
      for (const auto& item : std::get<TupleOf>(target.node).items) items.items.push_back(copy_target(*item));
      copy->node = std::move(items);
    }
    return copy;
  }

  void bind_statement(Macro& node, const Place& place) {
    bind_macro(node.macro, place);
    node.variable = variable(node.name, place, line_);
    node.exported = place.top_level && !blocks_.empty();
  }

  void bind_statement(CallBlock& node, const Place& place) {
    bind_macro(node.macro, place);
    bind_if(node.call, place);
  }

  void bind_macro(MacroBody& macro, const Place& place) {
    FunctionSymbols function(&place.symbols.function(), macro.activation);
    ScopeSymbols symbols(place.symbols, function);
    std::set<std::string> parameters;
    for (const auto& parameter : macro.parameters) parameters.insert(std::get<Name>(parameter->node).name);
    const auto used = find_undeclared(macro.body, {"caller", "kwargs", "varargs"});
    const auto declare = [&](const std::string& name, std::optional<Variable>& variable) {
      if (!used.contains(name) || parameters.contains(name)) return;
      symbols.declare_parameter(name);
      variable = symbols.find(name);
    };
    check_explicit_caller(macro, used.contains("caller"));
    for (auto& parameter : macro.parameters) symbols.note(*parameter);
    declare("caller", macro.caller);
    declare("kwargs", macro.kwargs);
    declare("varargs", macro.varargs);
    for (auto& value : macro.defaults) symbols.note(*value);
    symbols.note(macro.body);
    macro.scope = symbols.scope();
    const Place inner = place.own_function(symbols);
    for (auto& parameter : macro.parameters) bind(*parameter, inner);
    for (auto& value : macro.defaults) bind(*value, inner);
    bind(macro.body, inner);
  }

  void check_explicit_caller(const MacroBody& macro, bool used) const {
    if (!used) return;
    const std::size_t without_default = macro.parameters.size() - macro.defaults.size();
    for (std::size_t i = 0; i < without_default; ++i)
      if (std::get<Name>(macro.parameters[i]->node).name == "caller")
        fail(line_, "the special argument 'caller' of a macro must be omitted or be given a default");
  }

  void bind_statement(FilterBlock& node, const Place& place) {
    ScopeSymbols symbols(place.symbols, place.symbols.function());
    symbols.note(node.body);
    symbols.note(*node.filter);
    node.scope = symbols.scope();
    const Place inner = place.inner(symbols);
    bind(node.body, inner);
    bind(*node.filter, inner);
  }

  void bind_statement(With& node, const Place& place) {
    ScopeSymbols symbols(place.symbols, place.symbols.function());
    for (auto& target : node.targets) symbols.note(*target);
    symbols.note(node.body);
    node.scope = symbols.scope();
    const Place inner = place.inner(symbols);
    for (auto& target : node.targets) bind(*target, inner);
    for (auto& value : node.values) bind(*value, place);
    bind(node.body, inner);
  }

  void bind_statement(Autoescape& node, const Place& place) {
    ScopeSymbols symbols(place.symbols, place.symbols.function());
    symbols.note(*node.enabled);
    symbols.note(node.body);
    node.scope = symbols.scope();
    Place inner = place.inner(symbols);
    bind(*node.enabled, inner);
    inner.escape = lexical_escape(*node.enabled);
    bind(node.body, inner);
  }

  static Escape lexical_escape(const Expression& enabled) {
    const auto* constant = std::get_if<Constant>(&enabled.node);
    if (constant == nullptr || !constant->value.is<bool>()) return Escape::by_context;
    return std::get<bool>(constant->value.storage()) ? Escape::on : Escape::off;
  }

  void bind_statement(Block& node, const Place& place) {
    if (node.scoped) node.visible = place.symbols.stored();
  }

  void bind_statement(LoaderTag& node, const Place& place) {
    if (node.tag == "extends" && !place.top_level) fail(line_, "cannot use extends inside another block");
    bind(*node.source, place);
  }

  void bind_statement(Break&, const Place& place) { check_loop("break", place); }
  void bind_statement(Continue&, const Place& place) { check_loop("continue", place); }

  void check_loop(std::string_view tag, const Place& place) const {
    if (!place.in_loop) fail(line_, fmt::format("'{}' outside a loop", tag));
  }

  const std::string& label_;
  std::uint32_t line_ = 1;
  std::vector<Block*> blocks_;
  std::set<std::string> block_names_;
};

}  // namespace

void resolve(Template& tree, const std::string& label) {
  Resolver(label).resolve(tree);
}

}  // namespace candor::jinja
