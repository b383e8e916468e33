// --receipt FILE, and the file.
#pragma once

#include <string>

#include "engine/receipts.h"

namespace CLI {
class App;
}

namespace candor::cli {

void add_receipt(CLI::App& app, std::string& path);

/// Completely or not at all.
void write_receipt(const std::string& path, const runtime::Receipt& receipt);

/// Throws Error(not_found), Error(io), and what runtime::parse_receipt() throws.
[[nodiscard]] runtime::Receipt read_receipt(const std::string& path);

}  // namespace candor::cli
