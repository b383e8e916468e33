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
  for (const char* name :
       {"run",      "replay",   "plan",    "compare", "embed",   "rerank", "eval",  "bench", "inspect", "logits",
        "tokenize", "template", "kernels", "rebind",  "convert", "verify", "synth", "pull",  "list",    "version"}) {
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

TEST(Usage, NumbersAreRefusedWithTheOptionTheValueAndTheRange) {
  const auto refuses = [](std::vector<std::string> arguments, const char* message) {
    SCOPED_TRACE(message);
    expect_error(run_program(arguments), 2, message);
  };
  refuses({"run", "model", "hello", "-n", "abc"},
          "--max-tokens: must be a whole number from 1 to 16777216; got \"abc\"");
  refuses({"run", "model", "hello", "--temperature", "hot"},
          "--temperature: must be a number from 0 to 100; got \"hot\"");
  refuses({"run", "model", "hello", "--temperature", "nan"},
          "--temperature: must be a number from 0 to 100; got \"nan\"");
  refuses({"run", "model", "hello", "--top-k", "-1"},
          "--top-k: must be a whole number from 0 to 4294967295; got \"-1\"");
  refuses({"run", "model", "hello", "--top-p", ""}, "--top-p: must be a number from 0 to 1; got \"\"");
  refuses({"run", "model", "hello", "--repetition-window", "1.5"}, "--repetition-window: must be a whole number");
  refuses({"run", "model", "hello", "--threads", "1025"}, "--threads: must be a whole number from 1 to 1024");
  refuses({"compare", "model", "--tokens", "1", "--bound", "x"}, "--bound: must be a number from 0");
  refuses({"plan", "show", "model", "--layer", "-1"}, "--layer: must be a whole number from 0 to 4096; got \"-1\"");
  refuses({"eval", "ppl", "model", "file", "--window", "1"}, "--window: must be a whole number from 2");
  refuses({"bench", "model", "--vs-overlay", "o.json"}, "--vs-overlay is for the second model; name it with --vs");
  refuses({"bench", "model", "-r", "0"}, "--rounds: must be a whole number from 1 to 1000; got \"0\"");
  refuses({"rebind", "model", "--tolerance", "2"}, "--tolerance: must be a number from 0 to 1; got \"2\"");
  refuses({"synth", "shape", "out", "--seed", "-1"}, "--seed: must be a whole number from 0 to 9007199254740991");
}

TEST(Usage, TokenIdsAreRefusedWithTheirPlace) {
  const auto refuses = [](const char* tokens, const char* message) {
    for (const char* command : {"logits", "compare"}) {
      std::vector<std::string> arguments{command, "model", "--tokens", tokens};
      if (std::string_view(command) == "logits") arguments.insert(arguments.end(), {"--out", "x"});
      expect_error(run_program(arguments), 2, message);
    }
  };
  refuses("", "--tokens is empty");
  refuses("1,,2", "--tokens: entry 2 is empty");
  refuses(",1", "--tokens: entry 1 is empty");
  refuses("1,2,", "--tokens: entry 3 is empty");
  refuses("1,x", "--tokens: entry 2 is \"x\", which is no token id");
  refuses("-1", "--tokens: entry 1 is \"-1\"");
  refuses("1 2", "--tokens: entry 1 is \"1 2\"");
  refuses("99999999999", "--tokens: entry 1 is \"99999999999\"");
}

TEST(Usage, AnEmptyModelIsNoModel) {
  expect_error(run_program({"run", "", "hello"}), 2, "MODEL: is empty");
  expect_error(run_program({"convert", "", "out"}), 2, "SOURCE: is empty");
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
