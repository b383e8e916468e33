#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/run_report.h"
#include "cli/table.h"
#include "kernels/cpu/probe.h"

namespace candor::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchArguments {
  PlanArguments plan;
  LoadArguments load;
  std::uint32_t prompt = 256;
  std::uint32_t generated = 128;
  std::uint32_t depth = 0;
  std::uint32_t sequences = 1;
  std::uint32_t rounds = 5;
  bool json = false;
};

/// The middle of several measurements, and the lowest and highest.
struct Rate {
  double median = 0;
  double low = 0;
  double high = 0;

  explicit Rate(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    median = values[values.size() / 2];
    low = values.front();
    high = values.back();
  }

  [[nodiscard]] std::string spread() const { return fmt::format("{} to {}", short_number(low), short_number(high)); }
  [[nodiscard]] Json to_json() const { return {{"median", median}, {"low", low}, {"high", high}}; }
};

/// Measures prompts and decoding in turn, and between them what the machine itself can do, so that both meet the same
/// conditions.
class Bench {
 public:
  Bench(Engine& engine, const BenchArguments& arguments)
      : engine_(engine), arguments_(arguments), pool_(arguments.load.threads), probe_(pool_) {}

  void run() {
    round();  // touches every weight and page once
    prompt_rates_.clear();
    decode_rates_.clear();
    for (std::uint32_t i = 0; i < arguments_.rounds; ++i) {
      measure_machine();
      round();
    }
  }

  void print_table() const {
    const Rate bandwidth(bandwidths_);
    Table table({"test", ">tokens/s", "lowest to highest", ">read a token", ">bandwidth", ">arithmetic"});
    if (!prompt_rates_.empty()) {
      const Rate rate(prompt_rates_);
      table.add({fmt::format("prompt {}", arguments_.prompt), short_number(rate.median), rate.spread(), "", "",
                 arithmetic_share(rate.median)});
    }
    if (!decode_rates_.empty()) {
      const Rate rate(decode_rates_);
      const double steps = rate.median / arguments_.sequences;
      table.add(
          {decode_name(), short_number(rate.median), rate.spread(), format_bytes(bytes_per_token()),
           describe_bandwidth(steps * static_cast<double>(bytes_per_token()) / bandwidth.median, bytes_per_token()),
           arithmetic_share(rate.median)});
    }
    table.print();
    const runtime::CompiledModel& compiled = engine_.model().compiled();
    const std::string machine =
        peaks_.empty() ? fmt::format("{} · {:.1f} GB/s copied",
                                     engine_.model().backend().describe().value("adapter", ""), bandwidth.median / 1e9)
                       : fmt::format("{} · {:.1f} GB/s read, {:.0f} GFLOP/s (f32 FMA)", counted(pool_.size(), "thread"),
                                     bandwidth.median / 1e9, Rate(peaks_).median / 1e9);
    print(fmt::format("\n{}, measured between the rounds · {} · plan {}\n", machine,
                      counted(arguments_.rounds, "round"), short_digest(compiled.plan_digest)));
  }

  [[nodiscard]] Json to_json() const {
    const runtime::CompiledModel& compiled = engine_.model().compiled();
    Json out{{"model", arguments_.plan.model},
             {"planDigest", compiled.plan_digest},
             {"backend", engine_.model().backend().describe()},
             {"rounds", arguments_.rounds},
             {"prompt", arguments_.prompt},
             {"generated", arguments_.generated},
             {"depth", arguments_.depth},
             {"sequences", arguments_.sequences},
             {"bytesPerToken", bytes_per_token()},
             {"operationsPerToken", operations_per_token()},
             {"memoryBandwidth", Rate(bandwidths_).to_json()},
             {"cacheBytes", cache_bytes() == 0 ? Json() : Json(cache_bytes())},
             {"fmaPeak", peaks_.empty() ? Json() : Rate(peaks_).to_json()}};
    if (!prompt_rates_.empty()) out["promptTokensPerSecond"] = Rate(prompt_rates_).to_json();
    if (!decode_rates_.empty()) out["decodeTokensPerSecond"] = Rate(decode_rates_).to_json();
    return out;
  }

 private:
  /// What the plan's backend runs on: the memory that it reads, and on the CPU the arithmetic.
  void measure_machine() {
    const std::optional<double> copy = engine_.model().backend().measure_copy();
    bandwidths_.push_back(copy ? *copy : probe_.measure());
    if (!copy) peaks_.push_back(cpu::measure_fma_peak(pool_));
  }

  [[nodiscard]] std::string arithmetic_share(double rate) const {
    return peaks_.empty() ? std::string() : percent(rate * operations_per_token() / Rate(peaks_).median);
  }

  static std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

  [[nodiscard]] std::string decode_name() const {
    std::string name = fmt::format("decode {}", arguments_.generated);
    if (arguments_.sequences > 1) name += fmt::format(" x {} sequences", arguments_.sequences);
    if (arguments_.depth > 0) name += fmt::format(" at depth {}", arguments_.depth);
    return name;
  }

  /// Ids that look alike to every model: which tokens they are changes no cost.
  [[nodiscard]] std::vector<std::uint32_t> some_tokens(std::uint32_t count) const {
    const std::uint64_t vocabulary = engine_.model().compiled().vocabulary;
    std::vector<std::uint32_t> tokens(count);
    for (std::uint32_t i = 0; i < count; ++i) tokens[i] = static_cast<std::uint32_t>((i * 7919ull + 1) % vocabulary);
    return tokens;
  }

  void round() {
    runtime::Session& session = engine_.session();
    if (arguments_.prompt > 0) {
      runtime::Sequence sequence;
      const auto start = Clock::now();
      (void)session.prefill(sequence, some_tokens(arguments_.prompt));
      prompt_rates_.push_back(arguments_.prompt / seconds_since(start));
      session.truncate(sequence, 0);
    }
    if (arguments_.generated > 0) decode();
  }

  void decode() {
    runtime::Session& session = engine_.session();
    std::vector<runtime::Sequence> sequences(arguments_.sequences);
    std::vector<runtime::Sequence*> pointers;
    std::vector<std::uint32_t> tokens;
    for (runtime::Sequence& sequence : sequences) {
      pointers.push_back(&sequence);
      tokens.push_back(session.prefill(sequence, some_tokens(std::max(arguments_.depth, 1u))));
    }
    const auto start = Clock::now();
    for (std::uint32_t i = 0; i < arguments_.generated; ++i) tokens = session.decode(pointers, tokens);
    decode_rates_.push_back(static_cast<double>(arguments_.generated) * arguments_.sequences / seconds_since(start));
    for (runtime::Sequence& sequence : sequences) session.truncate(sequence, 0);
  }

  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  /// Weights and cache that a step of decoding reads, in the middle of the run. Several sequences share the weights.
  [[nodiscard]] std::uint64_t bytes_per_token() const {
    const std::uint32_t depth = arguments_.depth + arguments_.generated / 2;
    const std::uint64_t weights = engine_.session().bytes_per_token(0);
    return weights + (engine_.session().bytes_per_token(depth) - weights) * arguments_.sequences;
  }

  /// Multiplications and additions in the matrix products of one token.
  [[nodiscard]] double operations_per_token() const {
    const Program& program = engine_.model().program();
    double operations = 0;
    for (const Instruction& instruction : program.phase(Phase::decode).instructions) {
      if (!instruction.operation.starts_with("matmul") && instruction.operation != "expert_matmul") continue;
      double share = 1;
      if (instruction.operation == "expert_matmul")
        share = static_cast<double>(instruction.constants.integer(1)) /
                static_cast<double>(instruction.constants.integer(0));
      for (const std::uint32_t index : instruction.weights)
        operations += 2 * share * static_cast<double>(program.weights[index].rows * program.weights[index].cols);
    }
    return operations;
  }

  Engine& engine_;
  const BenchArguments& arguments_;
  ThreadPool pool_;
  cpu::ReadProbe probe_;
  std::vector<double> prompt_rates_, decode_rates_, bandwidths_, peaks_;
};

int bench(const BenchArguments& arguments) {
  if (arguments.prompt == 0 && arguments.generated == 0)
    fail(ErrorCode::usage, "-p 0 -n 0 measures nothing; give one of them");
  EngineOptions options = engine_options(arguments.plan, arguments.load, !arguments.json);
  options.load.sequences = arguments.sequences;
  const std::uint32_t needed = std::max(arguments.prompt, std::max(arguments.depth, 1u) + arguments.generated);
  if (options.load.context == 0) options.load.context = needed;
  if (options.load.context < needed)
    fail(ErrorCode::usage, "--context {} is too short for this measurement, which takes {} positions",
         options.load.context, needed);
  Engine engine(arguments.plan.model, options);
  Bench bench(engine, arguments);
  bench.run();
  if (arguments.json) {
    print_json(bench.to_json());
  } else {
    bench.print_table();
  }
  return 0;
}

}  // namespace

void add_bench(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("bench", "Measure a model's speed beside this machine's limits");
  auto arguments = std::make_shared<BenchArguments>();
  add_plan_options(app, arguments->plan);
  const auto add = [&](const std::string& name, std::uint32_t& value, const std::string& help, unsigned low,
                       unsigned high) {
    in_range(app.add_option(name, value, help), low, high)->type_name("N")->capture_default_str();
  };
  constexpr auto kLongest = static_cast<unsigned>(limits::context);
  add("-p,--prompt", arguments->prompt, "Tokens of the prompt; 0 leaves it out", 0, kLongest);
  add("-n,--generated", arguments->generated, "Tokens decoded after it; 0 leaves it out", 0, kLongest);
  add("-d,--depth", arguments->depth, "Tokens in the cache when decoding begins", 0, kLongest);
  add("-b,--sequences", arguments->sequences, "Sequences decoded together", 1, 1024);
  add("-r,--rounds", arguments->rounds, "Measurements, of which the middle is shown", 1, 1000);
  add_load_options(app, arguments->load);
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), bench);
}

}  // namespace candor::cli
