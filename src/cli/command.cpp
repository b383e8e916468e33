#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdlib>

#include "base/error.h"

namespace candor::cli {
namespace {

template <typename Number>
std::optional<Number> parse_number(const std::string& text) {
  if constexpr (std::floating_point<Number>) {
    if (text.empty() || text.front() == ' ') return std::nullopt;
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (*end != '\0' || !std::isfinite(number)) return std::nullopt;
    return static_cast<Number>(number);
  } else {
    Number number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end) return std::nullopt;
    return number;
  }
}

/// An option that names something cannot name nothing: a script's empty variable is not "not given".
void check_not_empty(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    const bool names =
        type.starts_with("FILE") || type.starts_with("DIR") || type.starts_with("NAME") || type.starts_with("ID|");
    if (option->get_positional() || !names) continue;
    for (const std::string& value : option->results())
      if (value.empty())
        fail(ErrorCode::usage, "{} \"\": names nothing; give it a value or leave it out", option->get_name());
  }
}

}  // namespace

void on_chosen(CLI::App& app, Invocation& invocation, std::function<int()> action) {
  app.callback([&app, &invocation, action = std::move(action)] {
    if (!app.get_subcommands().empty()) return;
    check_not_empty(app);
    invocation.action = action;
  });
}

CLI::Option* add_json(CLI::App& app, bool& json) {
  return app.add_flag("--json", json, "Print one JSON document");
}

CLI::Option* add_repeated(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                          const std::string& help) {
  // Without allow_extra_args(false) the option would also take the words after its value, and read "[a,b]" as a list.
  return app.add_option(name, values, help)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

template <typename Number>
CLI::Option* in_range(CLI::Option* option, Number low, Number high) {
  return option->check(CLI::Validator(
      [low, high](const std::string& text) {
        const auto number = parse_number<Number>(text);
        if (number && *number >= low && *number <= high) return std::string();
        return fmt::format("must be a {}number from {} to {}; got \"{}\"", std::floating_point<Number> ? "" : "whole ",
                           low, high, printable(text));
      },
      ""));
}

template CLI::Option* in_range(CLI::Option*, std::int32_t, std::int32_t);
template CLI::Option* in_range(CLI::Option*, std::uint32_t, std::uint32_t);
template CLI::Option* in_range(CLI::Option*, std::uint64_t, std::uint64_t);
template CLI::Option* in_range(CLI::Option*, float, float);
template CLI::Option* in_range(CLI::Option*, double, double);

CLI::Option* add_token_ids(CLI::App& app, std::optional<std::string>& tokens, const std::string& help) {
  // Not bound to the text itself, because CLI11 takes an empty value of an optional for none.
  return app
      .add_option_function<std::string>(
          "--tokens", [&tokens](const std::string& text) { tokens = text; }, help)
      ->type_name("IDS");
}

std::vector<std::uint32_t> token_ids(const std::string& text) {
  std::vector<std::uint32_t> ids;
  if (text.empty()) fail(ErrorCode::usage, "--tokens is empty; give ids as 1,2,3");
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string entry = text.substr(begin, end - begin);
    const auto id = parse_number<std::uint32_t>(entry);
    if (!id)
      fail(ErrorCode::usage, "--tokens: entry {} is {}; give ids as 1,2,3", ids.size() + 1,
           entry.empty() ? "empty" : fmt::format("\"{}\", which is no token id", printable(entry)));
    ids.push_back(*id);
    begin = end + 1;
  }
  return ids;
}

}  // namespace candor::cli
