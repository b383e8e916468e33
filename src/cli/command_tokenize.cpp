#include <CLI/CLI.hpp>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/table.h"
#include "engine/tokenizer_file.h"

namespace candor::cli {
namespace {

struct TokenizeArguments {
  std::string model;
  std::optional<std::string> text;
  bool decode = false;
  bool no_special = false;
  bool ids_only = false;
  bool json = false;
};

/// Ids separated by blanks, commas or line feeds.
std::vector<std::uint32_t> parse_ids(const std::string& text) {
  std::vector<std::uint32_t> ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  constexpr std::string_view kSeparators = " ,\t\r\n";
  for (;;) {
    while (at != end && kSeparators.find(*at) != std::string_view::npos) ++at;
    if (at == end) return ids;
    const char* stop = at;
    while (stop != end && kSeparators.find(*stop) == std::string_view::npos) ++stop;
    std::uint32_t id = 0;
    const auto [parsed, error] = std::from_chars(at, stop, id);
    if (error != std::errc() || parsed != stop)
      fail(ErrorCode::usage, "\"{}\" is no token id; --decode takes integers", printable({at, stop}));
    ids.push_back(id);
    at = stop;
  }
}

int decode(const Tokenizer& tokenizer, const TokenizeArguments& arguments, const std::string& text) {
  const std::vector<std::uint32_t> ids = parse_ids(text);
  for (const std::uint32_t id : ids)
    if (id >= tokenizer.vocabulary_size())
      fail(ErrorCode::usage, "token {} is outside the vocabulary of {}", id, tokenizer.vocabulary_size());
  const std::string decoded = tokenizer.decode(ids, arguments.no_special);
  if (arguments.json) {
    print_json({{"ids", ids}, {"text", decoded}});
  } else {
    print(decoded + "\n");
  }
  return 0;
}

int encode(const Tokenizer& tokenizer, const TokenizeArguments& arguments, const std::string& text) {
  const std::vector<std::uint32_t> ids =
      tokenizer.encode(text, {.add_special = !arguments.no_special, .parse_special = !arguments.no_special});
  if (arguments.json) {
    Json tokens = Json::array();
    for (const std::uint32_t id : ids) tokens.push_back(tokenizer.token(id));
    print_json({{"ids", ids}, {"tokens", std::move(tokens)}});
    return 0;
  }
  if (arguments.ids_only) {
    print(fmt::format("{}\n", fmt::join(ids, " ")));
    return 0;
  }
  Table table({">id", "token", "text"});
  for (const std::uint32_t id : ids)
    table.add({std::to_string(id), printable(tokenizer.token(id)),
               tokenizer.is_special(id) ? "special" : "\"" + printable(tokenizer.token_bytes(id)) + "\""});
  table.print();
  report(fmt::format("{}, {}", counted(ids.size(), "token"), counted(text.size(), "byte")));
  return 0;
}

int tokenize(const TokenizeArguments& arguments) {
  const auto tokenizer = open_tokenizer(arguments.model);
  const bool from_input = !arguments.text || *arguments.text == "-";
  const std::string text = from_input ? read_input() : *arguments.text;
  return arguments.decode ? decode(*tokenizer, arguments, text) : encode(*tokenizer, arguments, text);
}

}  // namespace

void add_tokenize(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("tokenize", "Show the tokens of a text, or the text of tokens");
  auto arguments = std::make_shared<TokenizeArguments>();
  (void)add_model(app, arguments->model, "A model, a vocabulary GGUF, a tokenizer.json or a SentencePiece .model");
  app.add_option("TEXT", arguments->text, "The text, byte for byte; without one or with -, standard input");
  CLI::Option* decode_flag = app.add_flag("--decode", arguments->decode, "TEXT is token ids; print their text");
  app.add_flag("--no-special", arguments->no_special,
               "Add no special tokens and recognise none in the text; with --decode, leave them out");
  app.add_flag("--ids", arguments->ids_only, "Only the ids, on one line")->excludes(decode_flag);
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), tokenize);
}

}  // namespace candor::cli
