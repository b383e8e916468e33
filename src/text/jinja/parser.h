// From tokens to the tree: Jinja2's grammar with loop controls and {% generation %}. Nesting is capped at
// limits::template_depth, chains of operators at limits::template_recursion / 4.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace candor::jinja {

class Parser {
 public:
  /// `source` must be well-formed UTF-8.
  Parser(std::string_view source, std::string label);

  /// Throws Error(text) with the line.
  [[nodiscard]] Template parse();

 private:
  using Ends = std::initializer_list<std::string_view>;

  // Tokens
  Token take();
  [[nodiscard]] const Token& look_ahead();
  [[nodiscard]] bool skip_name(std::string_view name);
  [[nodiscard]] bool skip_op(std::string_view op);
  Token expect_name();
  void expect_name(std::string_view name);
  void expect_op(std::string_view op);
  void expect(TokenKind kind);
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_unexpected(std::string_view expected) const;

  // Statements (parser.cpp)
  void parse_body(Body& body, Ends ends);
  void parse_block_body(Body& body, Ends ends);
  void parse_to_end(Body& body, std::string_view end);
  [[nodiscard]] StatementPtr parse_statement();
  [[nodiscard]] Statement::Node parse_set();
  [[nodiscard]] Statement::Node parse_for();
  [[nodiscard]] Statement::Node parse_if();
  [[nodiscard]] Statement::Node parse_macro();
  [[nodiscard]] Statement::Node parse_call_block();
  [[nodiscard]] Statement::Node parse_generation();
  [[nodiscard]] Statement::Node parse_filter_block();
  [[nodiscard]] Statement::Node parse_with();
  [[nodiscard]] Statement::Node parse_autoescape();
  [[nodiscard]] Statement::Node parse_block();
  [[nodiscard]] Statement::Node parse_include(const std::string& tag);
  [[nodiscard]] Statement::Node parse_import();
  [[nodiscard]] Statement::Node parse_from();
  void parse_print(Body& body);
  void parse_signature(MacroBody& macro);
  void skip_import_context();
  [[nodiscard]] std::string parse_name_target();
  [[nodiscard]] ExpressionPtr parse_target(Name::Use use, bool with_namespace);
  void make_target(Expression& target, Name::Use use);

  // Expressions (parser_expression.cpp), loosest first
  [[nodiscard]] ExpressionPtr parse_tuple(bool with_conditional);
  [[nodiscard]] ExpressionPtr parse_parenthesized();
  [[nodiscard]] ExpressionPtr parse_expression();
  [[nodiscard]] ExpressionPtr parse_or();
  [[nodiscard]] ExpressionPtr parse_and();
  [[nodiscard]] ExpressionPtr parse_not();
  [[nodiscard]] ExpressionPtr parse_compare();
  [[nodiscard]] ExpressionPtr parse_sum();
  [[nodiscard]] ExpressionPtr parse_concat();
  [[nodiscard]] ExpressionPtr parse_product();
  [[nodiscard]] ExpressionPtr parse_power();
  [[nodiscard]] ExpressionPtr parse_unary(bool with_filter);
  [[nodiscard]] ExpressionPtr parse_primary(bool with_namespace = false);
  [[nodiscard]] ExpressionPtr parse_list();
  [[nodiscard]] ExpressionPtr parse_dict();
  [[nodiscard]] ExpressionPtr parse_postfix(ExpressionPtr object);
  [[nodiscard]] ExpressionPtr parse_filters_and_tests(ExpressionPtr subject);
  [[nodiscard]] ExpressionPtr parse_subscript(ExpressionPtr object);
  [[nodiscard]] ExpressionPtr parse_brackets(ExpressionPtr object, std::uint32_t line);
  [[nodiscard]] ExpressionPtr parse_slice_part();
  [[nodiscard]] ExpressionPtr parse_call(ExpressionPtr callee);
  [[nodiscard]] CallArguments parse_arguments();
  [[nodiscard]] std::string parse_dotted_name();
  [[nodiscard]] ExpressionPtr parse_filter(ExpressionPtr subject, bool inline_first);
  [[nodiscard]] ExpressionPtr parse_test(ExpressionPtr subject);
  [[nodiscard]] bool at_tuple_end() const;

  /// Makes a node, whose depth is one more than that of its deepest part.
  [[nodiscard]] ExpressionPtr make(std::uint32_t line, Expression::Node node) const;

  /// Counts one level of nesting while it lives.
  class Nested {
   public:
    explicit Nested(Parser& parser);
    ~Nested() { --parser_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Parser& parser_;
  };

  Lexer lexer_;
  Token current_;
  std::vector<Token> pushed_;
  std::uint32_t depth_ = 0;
  std::vector<std::string> open_tags_;
};

}  // namespace candor::jinja
