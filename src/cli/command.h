// Subcommands: each has a file command_<name>.cpp with one function that declares its arguments and says what it does.
// main.cpp lists them. Here stands what they share: no more than how one is declared. Nothing is computed in this
// folder; what a subcommand shows is asked of the layer that knows it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace candor::cli {

/// What was chosen on the command line: run once all arguments are read and checked.
struct Invocation {
  std::function<int()> action;  ///< returns the exit status
};

/// Makes `app` run `action(arguments)` when it is the subcommand chosen, and none of its own is.
void on_chosen(CLI::App& app, Invocation& invocation, std::function<int()> action);

template <typename Arguments>
void on_chosen(CLI::App& app, Invocation& invocation, std::shared_ptr<Arguments> arguments,
               int (*action)(const Arguments&)) {
  on_chosen(app, invocation, [arguments = std::move(arguments), action] { return action(*arguments); });
}

/// `--json`: every subcommand that prints something has it.
CLI::Option* add_json(CLI::App& app, bool& json);

/// An option that may be given several times, one value each.
CLI::Option* add_repeated(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                          const std::string& help);

/// The option takes numbers from `low` to `high`; anything else is refused with the option, the value and this range.
template <typename Number>
CLI::Option* in_range(CLI::Option* option, Number low, Number high);

/// Token ids as "1,2,3"; `tokens` is what was given. See token_ids().
CLI::Option* add_token_ids(CLI::App& app, std::optional<std::string>& tokens, const std::string& help);
/// The ids in the value of --tokens. Throws Error(usage) naming the place of an entry that is none.
[[nodiscard]] std::vector<std::uint32_t> token_ids(const std::string& text);

/// The subcommands, in the order of --help.
void add_run(CLI::App& program, Invocation& invocation);
void add_replay(CLI::App& program, Invocation& invocation);
void add_plan(CLI::App& program, Invocation& invocation);
void add_compare(CLI::App& program, Invocation& invocation);
void add_inspect(CLI::App& program, Invocation& invocation);
void add_logits(CLI::App& program, Invocation& invocation);
void add_embed(CLI::App& program, Invocation& invocation);
void add_rerank(CLI::App& program, Invocation& invocation);
void add_eval(CLI::App& program, Invocation& invocation);
void add_tokenize(CLI::App& program, Invocation& invocation);
void add_template(CLI::App& program, Invocation& invocation);
void add_kernels(CLI::App& program, Invocation& invocation);
void add_rebind(CLI::App& program, Invocation& invocation);
void add_convert(CLI::App& program, Invocation& invocation);
void add_pull(CLI::App& program, Invocation& invocation);
void add_list(CLI::App& program, Invocation& invocation);
void add_verify(CLI::App& program, Invocation& invocation);
void add_synth(CLI::App& program, Invocation& invocation);
void add_bench(CLI::App& program, Invocation& invocation);
void add_bench_kernels(CLI::App& bench, Invocation& invocation);
void add_device(CLI::App& program, Invocation& invocation);
void add_version(CLI::App& program, Invocation& invocation);

}  // namespace candor::cli
