#include "text/jinja/parser.h"

#include <algorithm>

#include "base/error.h"
#include "base/limits.h"

namespace candor::jinja {

Parser::Nested::Nested(Parser& parser) : parser_(parser) {
  if (parser_.depth_ >= limits::template_depth)
    parser_.fail(fmt::format("nested deeper than {} levels", limits::template_depth));
  ++parser_.depth_;
}

Parser::Parser(std::string_view source, std::string label) : lexer_(source, std::move(label)) {
  current_ = lexer_.next();
}

Template Parser::parse() {
  Template result;
  parse_body(result.body, {});
  return result;
}

// ---- Tokens ---------------------------------------------------------------------------------------------------------

Token Parser::take() {
  Token token = std::move(current_);
  if (pushed_.empty()) {
    current_ = lexer_.next();
  } else {
    current_ = std::move(pushed_.back());
    pushed_.pop_back();
  }
  return token;
}

const Token& Parser::look_ahead() {
  if (pushed_.empty()) pushed_.push_back(lexer_.next());
  return pushed_.back();
}

bool Parser::skip_name(std::string_view name) {
  if (!current_.is_name(name)) return false;
  take();
  return true;
}

bool Parser::skip_op(std::string_view op) {
  if (!current_.is_op(op)) return false;
  take();
  return true;
}

Token Parser::expect_name() {
  if (!current_.is(TokenKind::name)) fail_unexpected("a name");
  return take();
}

void Parser::expect_name(std::string_view name) {
  if (!skip_name(name)) fail_unexpected(fmt::format("'{}'", name));
}

void Parser::expect_op(std::string_view op) {
  if (!skip_op(op)) fail_unexpected(fmt::format("'{}'", op));
}

void Parser::expect(TokenKind kind) {
  if (!current_.is(kind)) {
    Token expected;
    expected.kind = kind;
    fail_unexpected(expected.describe());
  }
  take();
}

void Parser::fail(const std::string& message) const {
  lexer_.fail(current_.line, message);
}

void Parser::fail_unexpected(std::string_view expected) const {
  std::string message = fmt::format("expected {}, got {}", expected, current_.describe());
  if (!open_tags_.empty()) message += fmt::format("; the innermost open block is '{}'", open_tags_.back());
  fail(message);
}

// ---- Statements -----------------------------------------------------------------------------------------------------

/// Statements until one of `ends` stands after "{%" (it is not taken), or without `ends` until the template ends.
void Parser::parse_body(Body& body, Ends ends) {
  const Nested nested(*this);
  for (;;) {
    const std::uint32_t line = current_.line;
    if (current_.is(TokenKind::data)) {
      auto statement = std::make_unique<Statement>();
      statement->line = line;
      statement->node = Output{std::move(current_.text), nullptr, Escape::off};
      body.push_back(std::move(statement));
      take();
    } else if (current_.is(TokenKind::variable_begin)) {
      take();
      auto statement = std::make_unique<Statement>();
      statement->line = line;
      statement->node = Output{{}, parse_tuple(true), Escape::off};
      body.push_back(std::move(statement));
      expect(TokenKind::variable_end);
    } else if (current_.is(TokenKind::block_begin)) {
      take();
      if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return current_.is_name(end); })) return;
      if (current_.is_name("print")) {
        parse_print(body);
      } else {
        body.push_back(parse_statement());
      }
      expect(TokenKind::block_end);
    } else {
      if (ends.size() != 0) fail_unexpected(fmt::format("'{}'", *(ends.end() - 1)));
      return;
    }
  }
}

/// The rest of a tag's "%}" and the body after it, up to one of `ends`.
void Parser::parse_block_body(Body& body, Ends ends) {
  (void)skip_op(":");
  expect(TokenKind::block_end);
  parse_body(body, ends);
}

void Parser::parse_to_end(Body& body, std::string_view end) {
  parse_block_body(body, {end});
  take();
}

StatementPtr Parser::parse_statement() {
  if (!current_.is(TokenKind::name)) fail("tag name expected");
  auto statement = std::make_unique<Statement>();
  statement->line = current_.line;
  const std::string tag = current_.text;
  open_tags_.push_back(tag);
  const auto parse = [&]() -> Statement::Node {
    take();
    if (tag == "set") return parse_set();
    if (tag == "for") return parse_for();
    if (tag == "if") return parse_if();
    if (tag == "macro") return parse_macro();
    if (tag == "call") return parse_call_block();
    if (tag == "generation") return parse_generation();
    if (tag == "filter") return parse_filter_block();
    if (tag == "with") return parse_with();
    if (tag == "autoescape") return parse_autoescape();
    if (tag == "block") return parse_block();
    if (tag == "include" || tag == "extends") return parse_include(tag);
    if (tag == "import") return parse_import();
    if (tag == "from") return parse_from();
    if (tag == "break") return Break{};
    if (tag == "continue") return Continue{};
    open_tags_.pop_back();
    std::string message = fmt::format("unknown tag '{}'", printable(tag));
    if (!open_tags_.empty()) message += fmt::format("; the innermost open block is '{}'", open_tags_.back());
    lexer_.fail(statement->line, message);
  };
  statement->node = parse();
  open_tags_.pop_back();
  return statement;
}

void Parser::parse_print(Body& body) {
  take();
  bool first = true;
  while (!current_.is(TokenKind::block_end)) {
    if (!first) expect_op(",");
    first = false;
    auto statement = std::make_unique<Statement>();
    statement->line = current_.line;
    statement->node = Output{{}, parse_expression(), Escape::off};
    body.push_back(std::move(statement));
  }
}

Statement::Node Parser::parse_set() {
  ExpressionPtr target = parse_target(Name::Use::store, true);
  if (skip_op("=")) return Assign{std::move(target), parse_tuple(true), {}};
  AssignBlock block;
  block.target = std::move(target);
  block.filter = parse_filter(nullptr, false);
  parse_to_end(block.body, "endset");
  return block;
}

Statement::Node Parser::parse_for() {
  For loop;
  loop.target = parse_target(Name::Use::store, false);
  expect_name("in");
  loop.iterable = parse_tuple(false);
  if (skip_name("if")) loop.test = parse_expression();
  loop.recursive = skip_name("recursive");
  parse_block_body(loop.body, {"endfor", "else"});
  if (take().is_name("else")) parse_to_end(loop.otherwise, "endfor");
  return loop;
}

Statement::Node Parser::parse_if() {
  If result;
  for (;;) {
    result.branches.emplace_back();
    result.branches.back().first = parse_tuple(false);
    parse_block_body(result.branches.back().second, {"elif", "else", "endif"});
    if (skip_name("elif")) continue;
    if (take().is_name("else")) parse_to_end(result.otherwise, "endif");
    return result;
  }
}

void Parser::parse_signature(MacroBody& macro) {
  expect_op("(");
  while (!current_.is_op(")")) {
    if (!macro.parameters.empty()) expect_op(",");
    const std::uint32_t line = current_.line;
    std::string name = parse_name_target();
    for (const auto& other : macro.parameters)
      if (std::get<Name>(other->node).name == name) fail(fmt::format("duplicate argument '{}'", printable(name)));
    if (skip_op("=")) {
      macro.defaults.push_back(parse_expression());
    } else if (!macro.defaults.empty()) {
      fail("non-default argument follows default argument");
    }
    macro.parameters.push_back(make(line, Name{std::move(name), Name::Use::parameter, {}}));
  }
  expect_op(")");
}

Statement::Node Parser::parse_macro() {
  Macro macro;
  macro.name = parse_name_target();
  parse_signature(macro.macro);
  parse_to_end(macro.macro.body, "endmacro");
  return macro;
}

Statement::Node Parser::parse_call_block() {
  CallBlock block;
  const std::uint32_t line = current_.line;
  if (current_.is_op("(")) parse_signature(block.macro);
  block.call = parse_expression();
  if (!std::holds_alternative<Call>(block.call->node)) lexer_.fail(line, "expected call");
  parse_to_end(block.macro.body, "endcall");
  return block;
}

Statement::Node Parser::parse_generation() {
  CallBlock block;
  parse_to_end(block.macro.body, "endgeneration");
  return block;
}

Statement::Node Parser::parse_filter_block() {
  FilterBlock block;
  block.filter = parse_filter(nullptr, true);
  parse_to_end(block.body, "endfilter");
  return block;
}

Statement::Node Parser::parse_with() {
  With with;
  while (!current_.is(TokenKind::block_end)) {
    if (!with.targets.empty()) expect_op(",");
    with.targets.push_back(parse_target(Name::Use::parameter, false));
    expect_op("=");
    with.values.push_back(parse_expression());
  }
  parse_to_end(with.body, "endwith");
  return with;
}

Statement::Node Parser::parse_autoescape() {
  Autoescape block;
  block.enabled = parse_expression();
  parse_to_end(block.body, "endautoescape");
  return block;
}

Statement::Node Parser::parse_block() {
  Block block;
  block.name = expect_name().text;
  block.scoped = skip_name("scoped");
  block.required = skip_name("required");
  if (current_.is_op("-")) fail("a block's name must not contain hyphens; use an underscore");
  parse_to_end(block.body, "endblock");
  if (block.required) {
    for (const auto& statement : block.body) {
      const auto* output = std::get_if<Output>(&statement->node);
      if (output == nullptr || output->expression || output->data.find_first_not_of(" \t\n\r\f\v") != std::string::npos)
        fail("a required block may only contain comments or white space");
    }
  }
  (void)skip_name(block.name);
  return block;
}

Statement::Node Parser::parse_include(const std::string& tag) {
  LoaderTag include{tag, parse_expression(), {}};
  if (tag == "extends") return include;
  if (current_.is_name("ignore") && look_ahead().is_name("missing")) {
    take();
    take();
  }
  skip_import_context();
  return include;
}

void Parser::skip_import_context() {
  if ((current_.is_name("with") || current_.is_name("without")) && look_ahead().is_name("context")) {
    take();
    take();
  }
}

Statement::Node Parser::parse_import() {
  LoaderTag import{"import", parse_expression(), {}};
  expect_name("as");
  import.stores.push_back(parse_name_target());
  skip_import_context();
  return import;
}

Statement::Node Parser::parse_from() {
  LoaderTag import{"from", parse_expression(), {}};
  expect_name("import");
  for (;;) {
    if (!import.stores.empty()) expect_op(",");
    if (!current_.is(TokenKind::name)) fail_unexpected("a name");
    if ((current_.is_name("with") || current_.is_name("without")) && look_ahead().is_name("context")) break;
    std::string name = parse_name_target();
    if (name.starts_with('_')) fail("names starting with an underscore cannot be imported");
    import.stores.push_back(skip_name("as") ? parse_name_target() : std::move(name));
    if (!current_.is_op(",")) break;
  }
  skip_import_context();
  return import;
}

// ---- Targets of assignments -----------------------------------------------------------------------------------------

namespace {

bool is_constant_name(std::string_view name) {
  return name == "true" || name == "false" || name == "none" || name == "True" || name == "False" || name == "None";
}

}  // namespace

std::string Parser::parse_name_target() {
  const Token token = expect_name();
  if (is_constant_name(token.text)) lexer_.fail(token.line, fmt::format("can't assign to '{}'", token.text));
  return token.text;
}

/// One target, or several with commas between.
ExpressionPtr Parser::parse_target(Name::Use use, bool with_namespace) {
  const std::uint32_t line = current_.line;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  for (;;) {
    if (!items.empty()) expect_op(",");
    if (at_tuple_end()) break;
    items.push_back(parse_primary(with_namespace));
    if (!current_.is_op(",")) break;
    is_tuple = true;
  }
  if (items.empty()) fail_unexpected("an expression");
  ExpressionPtr target = is_tuple ? make(line, TupleOf{std::move(items)}) : std::move(items[0]);
  make_target(*target, use);
  return target;
}

void Parser::make_target(Expression& target, Name::Use use) {
  if (auto* name = std::get_if<Name>(&target.node)) {
    name->use = use;
  } else if (auto* tuple = std::get_if<TupleOf>(&target.node)) {
    for (const auto& item : tuple->items) make_target(*item, use);
  } else if (!std::holds_alternative<NamespaceTarget>(target.node)) {
    lexer_.fail(target.line, "can't assign to this expression; a target is a name, a tuple of names or namespace.name");
  }
}

}  // namespace candor::jinja
