#include <algorithm>

#include "base/error.h"
#include "base/limits.h"
#include "text/jinja/parser.h"

namespace candor::jinja {
namespace {

/// The depth of an expression that may be absent.
std::uint32_t depth_of(const ExpressionPtr& part) {
  return part ? part->depth : 0;
}

std::uint32_t depth_of(const std::vector<ExpressionPtr>& parts) {
  std::uint32_t depth = 0;
  for (const auto& part : parts) depth = std::max(depth, part->depth);
  return depth;
}

std::uint32_t depth_of(const CallArguments& arguments) {
  std::uint32_t depth = depth_of(arguments.positional);
  for (const auto& [name, value] : arguments.named) depth = std::max(depth, value->depth);
  return std::max({depth, depth_of(arguments.more_positional), depth_of(arguments.more_named)});
}

/// The deepest part of each kind of node.
struct PartDepth {
  std::uint32_t operator()(const Constant&) const { return 0; }
  std::uint32_t operator()(const Name&) const { return 0; }
  std::uint32_t operator()(const NamespaceTarget&) const { return 0; }
  std::uint32_t operator()(const TupleOf& node) const { return depth_of(node.items); }
  std::uint32_t operator()(const ListOf& node) const { return depth_of(node.items); }
  std::uint32_t operator()(const DictOf& node) const {
    std::uint32_t depth = 0;
    for (const auto& [key, value] : node.items) depth = std::max({depth, key->depth, value->depth});
    return depth;
  }
  std::uint32_t operator()(const Unary& node) const { return depth_of(node.operand); }
  std::uint32_t operator()(const Binary& node) const { return std::max(depth_of(node.left), depth_of(node.right)); }
  std::uint32_t operator()(const Logical& node) const { return std::max(depth_of(node.left), depth_of(node.right)); }
  std::uint32_t operator()(const Compare& node) const {
    std::uint32_t depth = depth_of(node.first);
    for (const auto& [op, operand] : node.rest) depth = std::max(depth, operand->depth);
    return depth;
  }
  std::uint32_t operator()(const Concat& node) const { return depth_of(node.items); }
  std::uint32_t operator()(const Conditional& node) const {
    return std::max({depth_of(node.test), depth_of(node.then), depth_of(node.otherwise)});
  }
  std::uint32_t operator()(const Attribute& node) const { return depth_of(node.object); }
  std::uint32_t operator()(const Item& node) const { return std::max(depth_of(node.object), depth_of(node.key)); }
  std::uint32_t operator()(const Slice& node) const {
    return std::max({depth_of(node.object), depth_of(node.start), depth_of(node.stop), depth_of(node.step)});
  }
  std::uint32_t operator()(const Call& node) const { return std::max(depth_of(node.callee), depth_of(node.arguments)); }
  std::uint32_t operator()(const Filter& node) const {
    return std::max(depth_of(node.subject), depth_of(node.arguments));
  }
  std::uint32_t operator()(const Test& node) const {
    return std::max(depth_of(node.subject), depth_of(node.arguments));
  }
};

}  // namespace

ExpressionPtr Parser::make(std::uint32_t line, Expression::Node node) const {
  auto expression = std::make_unique<Expression>();
  expression->line = line;
  expression->depth = 1 + std::visit(PartDepth{}, node);
  if (expression->depth > limits::template_recursion / 4)
    lexer_.fail(line, fmt::format("an expression has more than {} levels", limits::template_recursion / 4));
  expression->node = std::move(node);
  return expression;
}

bool Parser::at_tuple_end() const {
  return current_.is(TokenKind::variable_end) || current_.is(TokenKind::block_end) || current_.is_op(")");
}

/// One expression, or a tuple of several without parentheses.
ExpressionPtr Parser::parse_tuple(bool with_conditional) {
  const std::uint32_t line = current_.line;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  for (;;) {
    if (!items.empty()) expect_op(",");
    if (at_tuple_end()) break;
    items.push_back(with_conditional ? parse_expression() : parse_or());
    if (!current_.is_op(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return make(line, TupleOf{std::move(items)});
  if (items.empty()) fail_unexpected("an expression");
  return std::move(items[0]);
}

ExpressionPtr Parser::parse_parenthesized() {
  const std::uint32_t line = take().line;
  ExpressionPtr result = current_.is_op(")") ? make(line, TupleOf{}) : parse_tuple(true);
  expect_op(")");
  return result;
}

ExpressionPtr Parser::parse_expression() {
  const Nested nested(*this);
  const std::uint32_t line = current_.line;
  ExpressionPtr result = parse_or();
  while (skip_name("if")) {
    ExpressionPtr test = parse_or();
    ExpressionPtr otherwise = skip_name("else") ? parse_expression() : nullptr;
    result = make(line, Conditional{std::move(test), std::move(result), std::move(otherwise)});
  }
  return result;
}

ExpressionPtr Parser::parse_or() {
  const std::uint32_t line = current_.line;
  ExpressionPtr left = parse_and();
  while (skip_name("or")) left = make(line, Logical{false, std::move(left), parse_and()});
  return left;
}

ExpressionPtr Parser::parse_and() {
  const std::uint32_t line = current_.line;
  ExpressionPtr left = parse_not();
  while (skip_name("and")) left = make(line, Logical{true, std::move(left), parse_not()});
  return left;
}

ExpressionPtr Parser::parse_not() {
  if (!current_.is_name("not")) return parse_compare();
  const Nested nested(*this);
  const std::uint32_t line = take().line;
  return make(line, Unary{UnaryOp::logical_not, parse_not()});
}

ExpressionPtr Parser::parse_compare() {
  static constexpr std::pair<std::string_view, CompareOp> kOps[] = {
      {"==", CompareOp::equal},      {"!=", CompareOp::not_equal}, {"<", CompareOp::less},
      {"<=", CompareOp::less_equal}, {">", CompareOp::greater},    {">=", CompareOp::greater_equal}};
  const std::uint32_t line = current_.line;
  ExpressionPtr first = parse_sum();
  std::vector<std::pair<CompareOp, ExpressionPtr>> rest;
  for (;;) {
    const auto* const op =
        std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& entry) { return current_.is_op(entry.first); });
    if (op != std::end(kOps)) {
      take();
      rest.emplace_back(op->second, parse_sum());
    } else if (skip_name("in")) {
      rest.emplace_back(CompareOp::in, parse_sum());
    } else if (current_.is_name("not") && look_ahead().is_name("in")) {
      take();
      take();
      rest.emplace_back(CompareOp::not_in, parse_sum());
    } else {
      break;
    }
  }
  if (rest.empty()) return first;
  return make(line, Compare{std::move(first), std::move(rest)});
}

ExpressionPtr Parser::parse_sum() {
  const std::uint32_t line = current_.line;
  ExpressionPtr left = parse_concat();
  while (current_.is_op("+") || current_.is_op("-")) {
    const BinaryOp op = take().text == "+" ? BinaryOp::add : BinaryOp::subtract;
    left = make(line, Binary{op, std::move(left), parse_concat()});
  }
  return left;
}

ExpressionPtr Parser::parse_concat() {
  const std::uint32_t line = current_.line;
  std::vector<ExpressionPtr> items;
  items.push_back(parse_product());
  while (skip_op("~")) items.push_back(parse_product());
  if (items.size() == 1) return std::move(items[0]);
  return make(line, Concat{std::move(items), Escape::off});
}

ExpressionPtr Parser::parse_product() {
  static constexpr std::pair<std::string_view, BinaryOp> kOps[] = {
      {"*", BinaryOp::multiply}, {"/", BinaryOp::divide}, {"//", BinaryOp::floor_divide}, {"%", BinaryOp::modulo}};
  const std::uint32_t line = current_.line;
  ExpressionPtr left = parse_power();
  for (;;) {
    const auto* const op =
        std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& entry) { return current_.is_op(entry.first); });
    if (op == std::end(kOps)) return left;
    take();
    left = make(line, Binary{op->second, std::move(left), parse_power()});
  }
}

/// Unlike in Python, powers group from the left.
ExpressionPtr Parser::parse_power() {
  const std::uint32_t line = current_.line;
  ExpressionPtr left = parse_unary(true);
  while (skip_op("**")) left = make(line, Binary{BinaryOp::power, std::move(left), parse_unary(true)});
  return left;
}

ExpressionPtr Parser::parse_unary(bool with_filter) {
  const std::uint32_t line = current_.line;
  ExpressionPtr result;
  if (current_.is_op("-") || current_.is_op("+")) {
    const Nested nested(*this);
    const UnaryOp op = take().text == "-" ? UnaryOp::negative : UnaryOp::positive;
    result = make(line, Unary{op, parse_unary(false)});
  } else {
    result = parse_primary();
  }
  result = parse_postfix(std::move(result));
  return with_filter ? parse_filters_and_tests(std::move(result)) : std::move(result);
}

ExpressionPtr Parser::parse_primary(bool with_namespace) {
  const std::uint32_t line = current_.line;
  switch (current_.kind) {
    case TokenKind::name: {
      const std::string name = take().text;
      if (name == "true" || name == "True") return make(line, Constant{Value::boolean(true)});
      if (name == "false" || name == "False") return make(line, Constant{Value::boolean(false)});
      if (name == "none" || name == "None") return make(line, Constant{Value::none()});
      if (with_namespace && skip_op(".")) return make(line, NamespaceTarget{name, expect_name().text, {}});
      return make(line, Name{name, Name::Use::load, {}});
    }
    case TokenKind::text: {
      std::string text = take().text;
      while (current_.is(TokenKind::text)) text += take().text;
      return make(line, Constant{Value::constant_text(std::move(text))});
    }
    case TokenKind::integer:
      return make(line, Constant{Value::integer(take().integer)});
    case TokenKind::floating:
      return make(line, Constant{Value::floating(take().floating)});
    default:
      break;
  }
  if (current_.is_op("(")) return parse_parenthesized();
  if (current_.is_op("[")) return parse_list();
  if (current_.is_op("{")) return parse_dict();
  fail_unexpected("an expression");
}

ExpressionPtr Parser::parse_list() {
  const std::uint32_t line = take().line;
  ListOf list;
  while (!current_.is_op("]")) {
    if (!list.items.empty()) expect_op(",");
    if (current_.is_op("]")) break;
    list.items.push_back(parse_expression());
  }
  expect_op("]");
  return make(line, std::move(list));
}

ExpressionPtr Parser::parse_dict() {
  const std::uint32_t line = take().line;
  DictOf dict;
  while (!current_.is_op("}")) {
    if (!dict.items.empty()) expect_op(",");
    if (current_.is_op("}")) break;
    ExpressionPtr key = parse_expression();
    expect_op(":");
    dict.items.emplace_back(std::move(key), parse_expression());
  }
  expect_op("}");
  return make(line, std::move(dict));
}

ExpressionPtr Parser::parse_postfix(ExpressionPtr object) {
  for (;;) {
    if (current_.is_op(".") || current_.is_op("[")) {
      object = parse_subscript(std::move(object));
    } else if (current_.is_op("(")) {
      object = parse_call(std::move(object));
    } else {
      return object;
    }
  }
}

ExpressionPtr Parser::parse_filters_and_tests(ExpressionPtr subject) {
  for (;;) {
    if (current_.is_op("|")) {
      subject = parse_filter(std::move(subject), false);
    } else if (current_.is_name("is")) {
      subject = parse_test(std::move(subject));
    } else if (current_.is_op("(")) {
      subject = parse_call(std::move(subject));
    } else {
      return subject;
    }
  }
}

ExpressionPtr Parser::parse_subscript(ExpressionPtr object) {
  const Token open = take();
  if (open.text == "[") return parse_brackets(std::move(object), open.line);
  if (current_.is(TokenKind::name)) return make(open.line, Attribute{std::move(object), take().text});
  if (!current_.is(TokenKind::integer)) fail_unexpected("a name or a number");
  ExpressionPtr key = make(current_.line, Constant{Value::integer(current_.integer)});
  take();
  return make(open.line, Item{std::move(object), std::move(key)});
}

/// What stands in square brackets: a key, several keys (a tuple), or a slice.
ExpressionPtr Parser::parse_brackets(ExpressionPtr object, std::uint32_t line) {
  std::vector<ExpressionPtr> keys;
  bool is_tuple = current_.is_op("]");
  while (!current_.is_op("]")) {
    if (!keys.empty()) {
      expect_op(",");
      is_tuple = true;
    }
    ExpressionPtr start = current_.is_op(":") ? nullptr : parse_expression();
    if (!skip_op(":")) {
      keys.push_back(std::move(start));
      continue;
    }
    ExpressionPtr stop = parse_slice_part();
    ExpressionPtr step = skip_op(":") ? parse_slice_part() : nullptr;
    if (is_tuple || !current_.is_op("]")) fail("a slice cannot be part of a tuple");
    take();
    return make(line, Slice{std::move(object), std::move(start), std::move(stop), std::move(step)});
  }
  expect_op("]");
  ExpressionPtr key = is_tuple ? make(line, TupleOf{std::move(keys)}) : std::move(keys[0]);
  return make(line, Item{std::move(object), std::move(key)});
}

ExpressionPtr Parser::parse_slice_part() {
  if (current_.is_op(":") || current_.is_op("]") || current_.is_op(",")) return nullptr;
  return parse_expression();
}

ExpressionPtr Parser::parse_call(ExpressionPtr callee) {
  const std::uint32_t line = current_.line;
  return make(line, Call{std::move(callee), parse_arguments()});
}

CallArguments Parser::parse_arguments() {
  CallArguments arguments;
  const auto ensure = [&](bool valid) {
    if (!valid) fail("invalid syntax for function call expression");
  };
  expect_op("(");
  bool require_comma = false;
  while (!current_.is_op(")")) {
    if (require_comma) {
      expect_op(",");
      if (current_.is_op(")")) break;
    }
    require_comma = true;
    if (skip_op("*")) {
      ensure(!arguments.more_positional && !arguments.more_named);
      arguments.more_positional = parse_expression();
    } else if (skip_op("**")) {
      ensure(!arguments.more_named);
      arguments.more_named = parse_expression();
    } else if (current_.is(TokenKind::name) && look_ahead().is_op("=")) {
      ensure(!arguments.more_named);
      std::string name = take().text;
      take();
      for (const auto& [other, value] : arguments.named)
        if (other == name) fail(fmt::format("keyword argument repeated: {}", printable(name)));
      arguments.named.emplace_back(std::move(name), parse_expression());
    } else {
      ensure(!arguments.more_positional && !arguments.more_named && arguments.named.empty());
      arguments.positional.push_back(parse_expression());
    }
  }
  expect_op(")");
  return arguments;
}

std::string Parser::parse_dotted_name() {
  std::string name = expect_name().text;
  while (skip_op(".")) {
    name += '.';
    name += expect_name().text;
  }
  return name;
}

/// Filters one after another; `inline_first` if the first has no "|" in front.
ExpressionPtr Parser::parse_filter(ExpressionPtr subject, bool inline_first) {
  while (inline_first || current_.is_op("|")) {
    if (!inline_first) take();
    inline_first = false;
    const std::uint32_t line = current_.line;
    std::string name = parse_dotted_name();
    CallArguments arguments;
    if (current_.is_op("(")) arguments = parse_arguments();
    subject = make(line, Filter{std::move(subject), std::move(name), std::move(arguments), nullptr});
  }
  return subject;
}

ExpressionPtr Parser::parse_test(ExpressionPtr subject) {
  const std::uint32_t line = take().line;
  const bool negated = skip_name("not");
  std::string name = parse_dotted_name();
  CallArguments arguments;
  const bool operand = current_.is(TokenKind::name) || current_.is(TokenKind::text) ||
                       current_.is(TokenKind::integer) || current_.is(TokenKind::floating) || current_.is_op("[") ||
                       current_.is_op("{");
  if (current_.is_op("(")) {
    arguments = parse_arguments();
  } else if (operand && !current_.is_name("else") && !current_.is_name("or") && !current_.is_name("and")) {
    if (current_.is_name("is")) fail("tests cannot be chained with 'is'");
    arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  ExpressionPtr test = make(line, Test{std::move(subject), std::move(name), std::move(arguments), nullptr});
  return negated ? make(line, Unary{UnaryOp::logical_not, std::move(test)}) : std::move(test);
}

}  // namespace candor::jinja
