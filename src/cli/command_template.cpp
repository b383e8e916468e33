#include <CLI/CLI.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "text/chat_template.h"

namespace candor::cli {
namespace {

struct RenderArguments {
  std::string source;
  std::string context;
  std::string now;
  bool json = false;
};

std::string render_template(const RenderArguments& arguments) {
  std::optional<LocalTime> now;
  if (!arguments.now.empty()) now = LocalTime::parse(arguments.now);
  const ChatTemplate chat_template(read_file(arguments.source, limits::template_bytes), arguments.source);
  return chat_template.render(read_json_file(arguments.context), now);
}

/// Whatever the reason, a template that does not render ends with status 1 and one line.
int render(const RenderArguments& arguments) {
  std::string text;
  try {
    text = render_template(arguments);
  } catch (const Error& error) {
    (void)report_error(error.code(), printable(error.what(), 4096), arguments.json);
    return 1;
  }
  if (arguments.json) {
    print_json({{"text", text}});
  } else {
    print(text);
  }
  return 0;
}

}  // namespace

void add_template(CLI::App& program, Invocation& invocation) {
  CLI::App& parent = *program.add_subcommand("template", "Chat templates");
  parent.require_subcommand(1);
  CLI::App& app = *parent.add_subcommand("render", "Print a template's text and nothing else; status 1 if it fails");
  auto arguments = std::make_shared<RenderArguments>();
  app.add_option("--template", arguments->source, "A Jinja template")->type_name("FILE")->required();
  app.add_option("--context", arguments->context, "A JSON object: messages, tools, add_generation_prompt, bos_token, …")
      ->type_name("FILE")
      ->required();
  app.add_option("--now", arguments->now, "What strftime_now reads (default: the clock)")
      ->type_name("YYYY-MM-DDThh:mm:ss");
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), render);
}

}  // namespace candor::cli
