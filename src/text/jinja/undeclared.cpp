#include "text/jinja/undeclared.h"

#include <algorithm>

#include "text/jinja/walk.h"

namespace candor::jinja {
namespace {

class Finder {
 public:
  explicit Finder(std::initializer_list<std::string_view> names) : wanted_(names) {}

  void visit(Body& body) {
    for (auto& statement : body) std::visit(*this, statement->node);
  }

  [[nodiscard]] std::set<std::string_view> take() { return std::move(found_); }

  void operator()(Output& node) { visit(node.expression); }
  void operator()(Assign& node) {
    visit(node.target);
    visit(node.value);
  }
  void operator()(AssignBlock& node) {
    visit(node.target);
    visit(node.filter);
    visit(node.body);
  }
  void operator()(If& node) {
    for (auto& [test, body] : node.branches) {
      visit(test);
      visit(body);
    }
    visit(node.otherwise);
  }
  void operator()(For& node) {
    visit(node.target);
    visit(node.iterable);
    visit(node.body);
    visit(node.otherwise);
    visit(node.test);
  }
  void operator()(Macro& node) { visit(node.macro); }
  void operator()(CallBlock& node) {
    visit(node.call);
    visit(node.macro);
  }
  void operator()(FilterBlock& node) {
    visit(node.body);
    visit(node.filter);
  }
  void operator()(With& node) {
    for (auto& target : node.targets) visit(target);
    for (auto& value : node.values) visit(value);
    visit(node.body);
  }
  void operator()(Autoescape& node) {
    visit(node.enabled);
    visit(node.body);
  }
  void operator()(Block&) {}
  void operator()(LoaderTag& node) { visit(node.source); }
  void operator()(Break&) {}
  void operator()(Continue&) {}

 private:
  void visit(MacroBody& macro) {
    for (auto& parameter : macro.parameters) visit(parameter);
    for (auto& value : macro.defaults) visit(value);
    visit(macro.body);
  }

  void visit(ExpressionPtr& expression) {
    if (expression) visit(*expression);
  }

  void visit(Expression& expression) {
    if (const auto* name = std::get_if<Name>(&expression.node)) {
      const auto wanted = wanted_.find(name->name);
      if (wanted == wanted_.end()) return;
      if (name->use == Name::Use::load) {
        found_.insert(*wanted);
      } else {
        wanted_.erase(wanted);
      }
      return;
    }
    for_each_part(expression, [this](Expression& part) { visit(part); });
  }

  std::set<std::string_view> wanted_;
  std::set<std::string_view> found_;
};

/// The bodies of a statement, its own block's included.
struct HasScopedBlock {
  bool operator()(const Block& node) const { return node.scoped || has_scoped_block(node.body); }
  bool operator()(const If& node) const {
    return has_scoped_block(node.otherwise) ||
           std::any_of(node.branches.begin(), node.branches.end(),
                       [](const auto& branch) { return has_scoped_block(branch.second); });
  }
  bool operator()(const For& node) const { return has_scoped_block(node.body) || has_scoped_block(node.otherwise); }
  bool operator()(const Macro& node) const { return has_scoped_block(node.macro.body); }
  bool operator()(const CallBlock& node) const { return has_scoped_block(node.macro.body); }
  bool operator()(const AssignBlock& node) const { return has_scoped_block(node.body); }
  bool operator()(const FilterBlock& node) const { return has_scoped_block(node.body); }
  bool operator()(const With& node) const { return has_scoped_block(node.body); }
  bool operator()(const Autoescape& node) const { return has_scoped_block(node.body); }
  template <typename Other>
  bool operator()(const Other&) const {
    return false;
  }
};

}  // namespace

std::set<std::string_view> find_undeclared(Body& body, std::initializer_list<std::string_view> names) {
  Finder finder(names);
  finder.visit(body);
  return finder.take();
}

bool has_scoped_block(const Body& body) {
  return std::any_of(body.begin(), body.end(),
                     [](const auto& statement) { return std::visit(HasScopedBlock{}, statement->node); });
}

}  // namespace candor::jinja
