// candor-conformance [--registry DIR]: reads calls from standard input, a JSON line each, and answers each with a line
// on standard output (conformance_session.h says how). Exit status 0 when the input ends; errors are answers.
#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "base/error.h"
#include "cli/conformance_session.h"

namespace {

void serve(candor::cli::ConformanceSession& session) {
  std::string line;
  while (std::getline(std::cin, line)) std::cout << session.answer(line) << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Answers calls of the doppler.execution/v0 reference, a JSON line for a JSON line");
  std::string directory;
  app.add_option("--registry", directory, "kernel registry folder (default: the built-in registry)");
  CLI11_PARSE(app, argc, argv);
  try {
    if (directory.empty()) {
      candor::cli::ConformanceSession session;
      serve(session);
    } else {
      candor::cli::ConformanceSession session{std::filesystem::path(directory)};
      serve(session);
    }
  } catch (const candor::Error& error) {
    std::cerr << "candor-conformance: " << error.what() << '\n';
    return candor::exit_status(error.code());
  }
  return 0;
}
