// The program's manners: help, versions, wrong arguments, errors as text and as JSON.
#include "base/json.h"
#include "cli/program.h"

namespace candor {
namespace {

using testing::HasSubstr;

TEST(Usage, HelpGoesToStandardOutputAndNamesEverySubcommand) {
  const Outcome outcome = run_program({"--help"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* name : {"run", "plan", "inspect", "logits", "tokenize", "template", "kernels", "rebind", "convert",
                           "verify", "synth", "pull", "list", "version"}) {
    EXPECT_THAT(outcome.out, HasSubstr(name));
    const Outcome help = run_program({name, "--help"});
    EXPECT_EQ(help.status, 0) << name;
    EXPECT_THAT(help.out, HasSubstr("--help")) << name;
  }
}

TEST(Usage, VersionsAgree) {
  const Outcome flag = run_program({"--version"});
  const Outcome command = run_program({"version", "--json"});
  ASSERT_EQ(flag.status, 0);
  ASSERT_EQ(command.status, 0);
  EXPECT_EQ(flag.out, parse_json(command.out, "version")["version"].get<std::string>() + "\n");
}

TEST(Usage, WrongArgumentsAreOneLineAndStatusTwo) {
  expect_error(run_program({}), 2, "candor --help");
  expect_error(run_program({"rum"}), 2, "rum");
  expect_error(run_program({"run"}), 2, "candor run --help");
  expect_error(run_program({"plan"}), 2, "candor plan --help");
  expect_error(run_program({"plan", "why", "model"}), 2, "STEP");
  expect_error(run_program({"run", "model", "--no-such-option"}), 2, "--no-such-option");
  expect_error(run_program({"run", "model", "hello", "-p", "hello"}), 2, "twice");
  expect_error(run_program({"run", "model", "hello", "-n", "-3"}), 2, "--max-tokens");
  expect_error(run_program({"run", "model", "hello", "-n", "0"}), 2, "--max-tokens");
  expect_error(run_program({"run", "model", "hello", "--temperature", "hot"}), 2, "--temperature");
  expect_error(run_program({"run", "model", "hello", "--temperature", "nan"}), 2, "--temperature");
  expect_error(run_program({"run", "model", "hello", "--seed", "x1"}), 2, "--seed");
  expect_error(run_program({"run", "model", "hello", "--seed", "9007199254740992"}), 2, "--seed");
  expect_error(run_program({"logits", "model", "--out", "x"}), 2, "--tokens");
  expect_error(run_program({"logits", "model", "--tokens", "1,x", "--out", "x"}), 2, "--tokens");
}

TEST(Usage, SamplingThatWouldDoNothingIsRefused) {
  expect_error(run_program({"run", "model", "hello", "--top-k", "5"}), 2, "--temperature");
  expect_error(run_program({"run", "model", "hello", "--top-p", "0.5"}), 2, "--temperature");
}

TEST(Usage, ErrorsAreJsonWhereAnswersAre) {
  const Outcome outcome = run_program({"inspect", "/no/such/model", "--json"});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(outcome.out, "");
  const Json error = parse_json(outcome.err, "error")["error"];
  EXPECT_EQ(error["code"], "not_found");
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("/no/such/model"));
  const Outcome wrong = run_program({"inspect", "--json"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(parse_json(wrong.err, "error")["error"]["code"], "usage");
}

}  // namespace
}  // namespace candor
