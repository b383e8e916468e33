#include "cli/receipt_file.h"

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "base/limits.h"

namespace candor::cli {

void add_receipt(CLI::App& app, std::string& path) {
  app.add_option("--receipt", path, "Write what was run, on what, and what came of it; candor replay runs it again")
      ->type_name("FILE");
}

void write_receipt(const std::string& path, const runtime::Receipt& receipt) {
  write_file_atomically(path, to_js_json(receipt.to_json(), 2) + "\n");
}

runtime::Receipt read_receipt(const std::string& path) {
  return runtime::parse_receipt(read_file(path, limits::json_bytes), path);
}

}  // namespace candor::cli
