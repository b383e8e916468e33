// What a program that has only the installed package can do: ask the version, catch an error, and, given a model, get
// an answer.
#include <candor/candor.h>

#include <cstdio>
#include <string>

namespace {

int complain(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (candor::version() != EXPECTED_VERSION) {
    return complain("the library says version " + std::string(candor::version()) + ", the package " EXPECTED_VERSION);
  }
  try {
    const candor::Model model = candor::Model::open("no-such-model");
    return complain("a model that does not exist was opened");
  } catch (const candor::Error& error) {
    if (error.code() != candor::ErrorCode::not_found) return complain(error.what());
  }
  if (argc == 2) {
    candor::Model model = candor::Model::open(argv[1]);
    candor::Request request;
    request.max_tokens = 4;
    const candor::Answer answer = model.chat({{"user", "Define lighthouse."}}, request);
    if (answer.tokens.empty() || answer.text.empty()) return complain("the model gave no answer");
  }
  return 0;
}
