// tokenize_lines FILE: a line of JSON in, a line of JSON out. A string is encoded: {"ids", "plain", "text", "all",
// "stream"}; a list of ids is decoded: {"text", "all"}. The other side of the comparison with Hugging Face's tokenizers
// (tests/text/huggingface).
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "formats/gguf.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace candor {
namespace {

std::unique_ptr<Tokenizer> load(const std::string& path) {
  if (path.ends_with(".json")) return load_tokenizer_json(read_file(path, limits::json_bytes), "", path);
  const MappedFile file(path);
  if (path.ends_with(".gguf")) return load_tokenizer_gguf(parse_gguf(file.bytes(), path).metadata, path);
  return load_sentencepiece_model(file.bytes(), path);
}

std::string stream(const Tokenizer& tokenizer, const std::vector<std::uint32_t>& ids) {
  StreamDecoder decoder(tokenizer);
  std::string text;
  for (const std::uint32_t id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

Json decoded(const Tokenizer& tokenizer, const std::vector<std::uint32_t>& ids) {
  return Json{{"text", tokenizer.decode(ids, true)}, {"all", tokenizer.decode(ids, false)}};
}

Json encoded(const Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizer.encode(text);
  Json json = decoded(tokenizer, ids);
  json["ids"] = ids;
  json["plain"] = tokenizer.encode(text, {.add_special = false});
  json["stream"] = stream(tokenizer, ids);
  return json;
}

Json answer(const Tokenizer& tokenizer, const Json& question) {
  if (question.is_string()) return encoded(tokenizer, question.get<std::string>());
  return decoded(tokenizer, question.get<std::vector<std::uint32_t>>());
}

int run(const std::string& path) {
  const auto tokenizer = load(path);
  for (std::string line; std::getline(std::cin, line);) {
    Json json;
    try {
      json = answer(*tokenizer, parse_json(line, "standard input"));
    } catch (const Error& error) {
      json = Json{{"error", error.what()}};
    }
    std::cout << json.dump() << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace candor

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: tokenize_lines FILE <LINES\n";
    return 2;
  }
  try {
    return candor::run(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
