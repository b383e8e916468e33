#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/progress.h"

namespace candor::cli {
namespace {

[[noreturn]] void throw_write_error() {
  if (errno == EPIPE) throw OutputClosed{};
  fail(ErrorCode::io, "cannot write to standard output: {}", std::strerror(errno));
}

bool output_is_styled() {
  static const bool styled = is_styled_terminal(STDOUT_FILENO);
  return styled;
}

bool output_is_terminal() {
  static const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  return terminal;
}

std::string styled(std::string_view text, const char* style) {
  const std::string shown = without_controls(text);
  return output_is_styled() ? fmt::format("\x1b[{}m{}\x1b[0m", style, shown) : shown;
}

}  // namespace

std::string without_controls(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (is_c1) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    } else if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += text[i];
    }
  }
  return out;
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw_write_error();
}

void print_model_text(std::string_view text) {
  print(output_is_terminal() ? without_controls(text) : std::string(text));
  flush_output();
}

void print_json(const Json& value) {
  print(to_js_json(value, 2) + "\n");
}

void flush_output() {
  if (std::fflush(stdout) != 0) throw_write_error();
}

void report(std::string_view line) {
  static const bool is_styled = is_styled_terminal(STDERR_FILENO);
  const std::string shown = without_controls(line);
  const std::string text = is_styled ? fmt::format("\x1b[2m{}\x1b[0m\n", shown) : shown + "\n";
  std::fputs(text.c_str(), stderr);
}

int report_error(ErrorCode code, std::string_view message, bool json) {
  const std::string line =
      json ? to_js_json(Json{{"error", {{"code", candor::to_string(code)}, {"message", message}}}}) + "\n"
           : fmt::format("candor: {}\n", without_controls(message));
  std::fputs(line.c_str(), stderr);
  return exit_status(code);
}

std::string bold(std::string_view text) {
  return styled(text, "1");
}

std::string dim(std::string_view text) {
  return styled(text, "2");
}

std::string short_digest(std::string_view digest) {
  constexpr std::string_view kPrefix = "sha256:";
  constexpr std::size_t kDigits = 12;
  if (digest.starts_with(kPrefix)) digest.remove_prefix(kPrefix.size());
  return std::string(digest.substr(0, kDigits));
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

namespace {

void check_output_file(const OutputFile& file, const std::string& model) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(file.path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status))
    fail(ErrorCode::io, "{} {}: is not a regular file, and would be replaced by one; give another name", file.option,
         file.path);
  const fs::path parent = fs::path(file.path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (fs::equivalent(file.path, model, ignored) || fs::equivalent(folder, model, ignored))
    fail(ErrorCode::usage, "{} {}: would be written into the model {}; give a name outside it", file.option, file.path,
         model);
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    fail(ErrorCode::io, "{} {}: nothing can be written in {}: {}", file.option, file.path, folder,
         std::strerror(errno));
}

/// One name for each file, whether it exists yet or not.
std::filesystem::path canonical(const std::string& path) {
  return std::filesystem::weakly_canonical(std::filesystem::absolute(path));
}

}  // namespace

void check_output_files(const std::vector<OutputFile>& files, const std::string& model) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i].path.empty()) continue;
    check_output_file(files[i], model);
    for (std::size_t j = 0; j < i; ++j)
      if (!files[j].path.empty() && canonical(files[j].path) == canonical(files[i].path))
        fail(ErrorCode::usage, "{} and {} both name {}; give two names", files[j].option, files[i].option,
             files[i].path);
  }
}

std::string short_number(double value) {
  if (value == 0 || std::abs(value) >= 100) return fmt::format("{:.0f}", value);
  return fmt::format("{:.3g}", value);
}

}  // namespace candor::cli
