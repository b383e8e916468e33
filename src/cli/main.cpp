// candor: reads the command line, runs the subcommand chosen, and turns what it throws into one line and an exit
// status (docs/cli.md).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/map_fault.h"
#include "candor/candor.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"

namespace candor::cli {
namespace {

void add_subcommands(CLI::App& program, Invocation& invocation) {
  for (const auto add : {add_run,    add_replay, add_plan,     add_compare,  add_inspect, add_logits, add_embed,
                         add_rerank, add_eval,   add_tokenize, add_template, add_kernels, add_rebind, add_convert,
                         add_verify, add_synth,  add_bench,    add_device,   add_pull,    add_list,   add_version})
    add(program, invocation);
}

/// The subcommand that was named last on the command line: "plan show".
std::string chosen_name(const CLI::App& program) {
  std::string name = program.get_name();
  const CLI::App* app = &program;
  for (auto chosen = app->get_subcommands(); !chosen.empty(); chosen = app->get_subcommands()) {
    app = chosen.front();
    name += " " + app->get_name();
  }
  return name;
}

/// A word that stands where a subcommand should; empty if there is none.
std::string unknown_word(const CLI::App& program) {
  const std::vector<std::string> words = program.remaining(true);
  return words.empty() ? std::string() : words.front();
}

int report_usage(const CLI::App& program, const CLI::ParseError& error, bool json) {
  std::string message = error.what();
  const std::string word = unknown_word(program);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !word.empty() && !word.starts_with('-'))
    message = fmt::format("\"{}\" is no subcommand here", printable(word));
  std::replace(message.begin(), message.end(), '\n', ' ');
  return report_error(ErrorCode::usage, fmt::format("{} ({} --help)", message, chosen_name(program)), json);
}

int run(int argc, char** argv, bool json) {
  CLI::App program("Runs transformer models, and keeps nothing back about how", "candor");
  program.set_version_flag("--version", std::string(version()), "Print the version");
  program.set_help_flag("-h,--help", "Print this help");
  program.require_subcommand(1);
  Invocation invocation;
  add_subcommands(program, invocation);

  try {
    try {
      program.parse(argc, argv);
    } catch (const CLI::Success& answer) {  // --help, --version
      std::ostringstream out;
      (void)program.exit(answer, out, out);
      print(out.str());
      flush_output();
      return 0;
    } catch (const CLI::ParseError& error) {
      return report_usage(program, error, json);
    }
    const int status = invocation.action();
    flush_output();
    return status;
  } catch (const OutputClosed&) {
    return kOutputClosedStatus;
  } catch (const Error& error) {
    return report_error(error.code(), error.what(), json);
  } catch (const std::bad_alloc&) {
    return report_error(ErrorCode::resource, "the system has no more memory to give", json);
  } catch (const std::exception& error) {
    return report_error(ErrorCode::internal, fmt::format("internal error: {}", error.what()), json);
  }
}

}  // namespace
}  // namespace candor::cli

int main(int argc, char** argv) {
  const bool json =
      std::any_of(argv + 1, argv + argc, [](const char* word) { return word == std::string_view("--json"); });
  candor::cli::install_signal_handlers(json);
  candor::install_map_fault_handler();
  if (json) candor::report_map_faults_as_json();
  return candor::cli::run(argc, argv, json);
}
