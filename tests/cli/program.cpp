#include "cli/program.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>

extern char** environ;

namespace candor {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File temporary_file() {
  File file(std::tmpfile(), &std::fclose);
  if (!file) throw std::runtime_error("cannot make a temporary file");
  return file;
}

std::string read_all(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 65536> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file)) text.append(buffer.data(), count);
  return text;
}

}  // namespace

Outcome run_program(const std::vector<std::string>& arguments, std::string_view input) {
  const File in = temporary_file();
  const File out = temporary_file();
  const File err = temporary_file();
  std::fwrite(input.data(), 1, input.size(), in.get());
  std::rewind(in.get());

  std::vector<std::string> words{CANDOR_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ::fileno(in.get()), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ::fileno(out.get()), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ::fileno(err.get()), STDERR_FILENO);
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, CANDOR_PROGRAM, &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("cannot start " CANDOR_PROGRAM);
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) throw std::runtime_error("cannot wait for the program");
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_all(out.get()), read_all(err.get())};
}

void expect_error(const Outcome& outcome, int status, std::string_view text) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, testing::StartsWith("candor: "));
  EXPECT_THAT(outcome.err, testing::HasSubstr(std::string(text)));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

}  // namespace candor
