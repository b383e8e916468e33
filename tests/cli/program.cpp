#include "cli/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
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

/// Starts the program with these as its standard input, output and error.
pid_t start(const std::vector<std::string>& arguments, int in, int out, int err) {
  std::vector<std::string> words{CANDOR_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, CANDOR_PROGRAM, &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("cannot start " CANDOR_PROGRAM);
  return pid;
}

int wait_for(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) throw std::runtime_error("cannot wait for the program");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Outcome run_program(const std::vector<std::string>& arguments, std::string_view input) {
  const File in = temporary_file();
  const File out = temporary_file();
  const File err = temporary_file();
  if (!input.empty()) std::fwrite(input.data(), 1, input.size(), in.get());
  std::rewind(in.get());
  const int status = wait_for(start(arguments, ::fileno(in.get()), ::fileno(out.get()), ::fileno(err.get())));
  return {status, read_all(out.get()), read_all(err.get())};
}

Outcome interrupt_program(const std::vector<std::string>& arguments) {
  const File in = temporary_file();
  const File err = temporary_file();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  const pid_t pid = start(arguments, ::fileno(in.get()), ends[1], ::fileno(err.get()));
  ::close(ends[1]);
  std::string out;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count = ::read(ends[0], buffer.data(), buffer.size());
    if (count <= 0) break;
    if (out.empty()) ::kill(pid, SIGINT);
    out.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  const int status = wait_for(pid);
  return {status, out, read_all(err.get())};
}

Outcome interrupt_program_at(const std::filesystem::path& sign, const std::vector<std::string>& arguments) {
  const File in = temporary_file();
  const File out = temporary_file();
  const File err = temporary_file();
  const pid_t pid = start(arguments, ::fileno(in.get()), ::fileno(out.get()), ::fileno(err.get()));
  siginfo_t ended{};
  while (!std::filesystem::exists(sign)) {
    if (::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == pid) break;
    ::usleep(1000);
  }
  ::kill(pid, SIGINT);
  const int status = wait_for(pid);
  return {status, read_all(out.get()), read_all(err.get())};
}

void expect_error(const Outcome& outcome, int status, std::string_view text) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, testing::StartsWith("candor: "));
  EXPECT_THAT(outcome.err, testing::HasSubstr(std::string(text)));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

}  // namespace candor
