// candor-bench-tokenizer TOKENIZER TEXT: for each line on standard input, encodes the whole text file once and prints
// {"seconds", "tokens", "digest"}: processor time, the number of ids, and SHA-256 of the ids as 32-bit little-endian
// numbers. bench/compare-tokenizers asks it and its peers in turn.
#include "text/tokenizer.h"

#include <fmt/format.h>
#include <time.h>

#include <iostream>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "formats/gguf.h"

namespace candor {
namespace {

std::unique_ptr<Tokenizer> load(const std::string& path) {
  if (path.ends_with(".json")) return load_tokenizer_json(read_file(path, limits::json_bytes), "", path);
  const MappedFile file(path);
  return load_tokenizer_gguf(parse_gguf(file.bytes(), path).metadata, path);
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void answer(const std::string& tokenizer_file, const std::string& text_file) {
  const auto tokenizer = load(tokenizer_file);
  const std::string text = read_file(text_file, limits::prompt_bytes);
  for (std::string line; std::getline(std::cin, line);) {
    const double start = processor_seconds();
    const auto ids = tokenizer->encode(text, {.add_special = false});
    const double seconds = processor_seconds() - start;
    const std::string digest = sha256_hex(std::as_bytes(std::span(ids)));
    std::cout << to_js_json(Json{{"seconds", seconds}, {"tokens", ids.size()}, {"digest", digest}}) << std::endl;
  }
}

}  // namespace
}  // namespace candor

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: candor-bench-tokenizer TOKENIZER.json|VOCABULARY.gguf TEXT\n";
    return 2;
  }
  try {
    candor::answer(argv[1], argv[2]);
  } catch (const candor::Error& error) {
    std::cerr << "candor-bench-tokenizer: " << error.what() << '\n';
    return 1;
  }
}
