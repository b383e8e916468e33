#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "cli/bench_contestant.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/run_report.h"
#include "cli/table.h"
#include "kernels/cpu/probe.h"

namespace candor::cli {
namespace {

struct BenchArguments {
  PlanArguments plan;
  LoadArguments load;
  BenchWork work;
  std::uint32_t rounds = 5;
  std::string vs;
  std::string vs_overlay;
  bool json = false;
};

std::string percent(double share) {
  return fmt::format("{:.0f} %", share * 100);
}

/// "2.20 G".
std::string with_unit(double count) {
  if (count >= 1e9) return short_number(count / 1e9) + " G";
  return count >= 1e6 ? short_number(count / 1e6) + " M" : short_number(count);
}

/// Measures prompts and decoding of each contestant in turn, and between the rounds what the machine itself can do, so
/// that all meet the same conditions.
class Bench {
 public:
  Bench(std::vector<std::unique_ptr<BenchContestant>> contestants, const BenchArguments& arguments)
      : contestants_(std::move(contestants)),
        arguments_(arguments),
        work_(arguments.work),
        pool_(arguments.load.threads),
        probe_(pool_) {}

  void run() {
    for (const auto& contestant : contestants_) {
      contestant->round();  // touches every weight and page once
      contestant->forget_rates();
    }
    for (std::uint32_t i = 0; i < arguments_.rounds; ++i) {
      measure_machine();
      // Who comes first changes from round to round, so that neither always follows the same.
      for (std::size_t j = 0; j < contestants_.size(); ++j) contestants_[(i + j) % contestants_.size()]->round();
    }
  }

  void print_tables() {
    for (const auto& contestant : contestants_) {
      if (contestants_.size() > 1)
        print(fmt::format("{} · plan {}\n", contestant->name(), short_digest(plan_digest(*contestant))));
      print_rates(*contestant);
      if (contestants_.size() > 1) print("\n");
    }
    if (contestants_.size() > 1) print_ratios();
    const std::string machine =
        peaks_.empty()
            ? fmt::format("{} · {:.1f} GB/s copied", device().describe().value("adapter", ""), bandwidth() / 1e9)
            : fmt::format("{} · {:.1f} GB/s read, {:.0f} GFLOP/s (f32 FMA)", counted(pool_.size(), "thread"),
                          bandwidth() / 1e9, Spread(peaks_).median / 1e9);
    print(fmt::format("\n{}, measured between the rounds · {}", machine, counted(arguments_.rounds, "round")));
    if (contestants_.size() == 1) print(fmt::format(" · plan {}", short_digest(plan_digest(*contestants_.front()))));
    print("\n");
  }

  [[nodiscard]] Json to_json() {
    Json out = to_json(*contestants_.front());
    out["rounds"] = arguments_.rounds;
    out["prompt"] = work_.prompt;
    out["generated"] = work_.generated;
    out["depth"] = work_.depth;
    out["sequences"] = work_.sequences;
    out["memoryBandwidth"] = Spread(bandwidths_).to_json();
    out["cacheBytes"] = cache_bytes() == 0 ? Json() : Json(cache_bytes());
    out["fmaPeak"] = peaks_.empty() ? Json() : Spread(peaks_).to_json();
    if (contestants_.size() == 1) return out;
    out["vs"] = to_json(*contestants_.back());
    out["ratio"] = Json::object();
    if (work_.prompt > 0) out["ratio"]["prompt"] = ratio(&BenchContestant::prompt_rates).to_json();
    if (work_.generated > 0) out["ratio"]["decode"] = ratio(&BenchContestant::decode_rates).to_json();
    return out;
  }

 private:
  [[nodiscard]] Backend& device() { return contestants_.front()->engine().model().backend(); }
  [[nodiscard]] double bandwidth() const { return Spread(bandwidths_).median; }
  static const std::string& plan_digest(BenchContestant& contestant) {
    return contestant.engine().model().compiled().plan_digest;
  }

  /// What the plan's backend runs on: the memory that it reads, and on the CPU the arithmetic.
  void measure_machine() {
    const std::optional<double> copy = device().measure_copy();
    bandwidths_.push_back(copy ? *copy : probe_.measure());
    if (!copy) peaks_.push_back(cpu::measure_fma_peak(pool_));
  }

  void print_rates(BenchContestant& contestant) const {
    Table table({"test", ">tokens/s", "lowest to highest", ">each", ">read a token", ">operations", ">bandwidth",
                 ">arithmetic"});
    if (work_.prompt > 0) {
      const Spread rate(contestant.prompt_rates());
      const double operations = contestant.prompt_operations() / work_.prompt;
      table.add({fmt::format("prompt {}", work_.prompt), short_number(rate.median), rate.range(), "", "",
                 with_unit(operations), "", arithmetic_share(rate.median, operations)});
    }
    if (work_.generated > 0) {
      const Spread rate(contestant.decode_rates());
      const double each = rate.median / work_.sequences;
      const std::uint64_t bytes = contestant.bytes_per_step();
      const double operations = contestant.decode_operations();
      table.add({decode_name(), short_number(rate.median), rate.range(),
                 work_.sequences > 1 ? short_number(each) : std::string(), format_bytes(bytes / work_.sequences),
                 with_unit(operations), describe_bandwidth(each * static_cast<double>(bytes) / bandwidth(), bytes),
                 arithmetic_share(rate.median, operations)});
    }
    table.print();
  }

  void print_ratios() const {
    Table table({"first to second", ">times", "lowest to highest"});
    const auto add = [&](const std::string& name, const Spread& ratio) {
      table.add({name, fmt::format("{:.3f}", ratio.median), fmt::format("{:.3f} to {:.3f}", ratio.low, ratio.high)});
    };
    if (work_.prompt > 0) add(fmt::format("prompt {}", work_.prompt), ratio(&BenchContestant::prompt_rates));
    if (work_.generated > 0) add(decode_name(), ratio(&BenchContestant::decode_rates));
    table.print();
  }

  /// The first one's rate to the second's, round by round: what slows the machine for a while slows both.
  [[nodiscard]] Spread ratio(const std::vector<double>& (BenchContestant::*rates)() const) const {
    std::vector<double> values = (*contestants_.front().*rates)();
    const std::vector<double>& others = (*contestants_.back().*rates)();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] /= others[i];
    return Spread(std::move(values));
  }

  [[nodiscard]] Json to_json(BenchContestant& contestant) const {
    Json out{{"model", contestant.name()},
             {"planDigest", plan_digest(contestant)},
             {"backend", contestant.engine().model().backend().describe()}};
    if (work_.prompt > 0) {
      out["promptTokensPerSecond"] = Spread(contestant.prompt_rates()).to_json();
      out["promptOperationsPerToken"] = contestant.prompt_operations() / work_.prompt;
    }
    if (work_.generated > 0) {
      out["decodeTokensPerSecond"] = Spread(contestant.decode_rates()).to_json();
      out["bytesPerToken"] = contestant.bytes_per_step() / work_.sequences;
      out["operationsPerToken"] = contestant.decode_operations();
    }
    return out;
  }

  [[nodiscard]] std::string arithmetic_share(double rate, double operations) const {
    return peaks_.empty() ? std::string() : percent(rate * operations / Spread(peaks_).median);
  }

  [[nodiscard]] std::string decode_name() const {
    std::string name = fmt::format("decode {}", work_.generated);
    if (work_.sequences > 1) name += fmt::format(" x {} sequences", work_.sequences);
    if (work_.depth > 0) name += fmt::format(" at depth {}", work_.depth);
    return name;
  }

  std::vector<std::unique_ptr<BenchContestant>> contestants_;
  const BenchArguments& arguments_;
  const BenchWork& work_;
  ThreadPool pool_;
  cpu::ReadProbe probe_;
  std::vector<double> bandwidths_, peaks_;
};

/// The second contestant's plan: as the first one's, or with an overlay of its own.
PlanArguments other_plan(const BenchArguments& arguments) {
  PlanArguments plan = arguments.plan;
  plan.model = arguments.vs;
  if (arguments.vs_overlay.empty()) return plan;
  plan.overlay = arguments.vs_overlay;
  plan.session.clear();
  plan.patch.clear();
  return plan;
}

int bench(const BenchArguments& arguments) {
  if (arguments.plan.model.empty()) fail(ErrorCode::usage, "MODEL is missing: name one, or say `bench kernels`");
  const BenchWork& work = arguments.work;
  if (work.prompt == 0 && work.generated == 0) fail(ErrorCode::usage, "-p 0 -n 0 measures nothing; give one of them");
  if (arguments.vs.empty() && !arguments.vs_overlay.empty())
    fail(ErrorCode::usage, "--vs-overlay is for the second model; name it with --vs, which may be MODEL again");
  const std::uint32_t decoded = work.generated == 0 ? 0 : std::max(work.depth, 1u) + work.generated;
  const std::uint32_t needed = std::max(work.prompt, decoded);
  std::vector<std::unique_ptr<BenchContestant>> contestants;
  const auto add = [&](const PlanArguments& plan) {
    EngineOptions options = engine_options(plan, arguments.load, !arguments.json);
    options.load.sequences = work.sequences + 1;
    if (options.load.context == 0) options.load.context = needed;
    if (options.load.context < needed)
      fail(ErrorCode::usage, "--context {} is too short for this measurement, which takes {} positions",
           options.load.context, needed);
    contestants.push_back(std::make_unique<BenchContestant>(plan.model, options, work));
  };
  add(arguments.plan);
  if (!arguments.vs.empty()) add(other_plan(arguments));
  Bench bench(std::move(contestants), arguments);
  bench.run();
  if (arguments.json) {
    print_json(bench.to_json());
  } else {
    bench.print_tables();
  }
  return 0;
}

}  // namespace

void add_bench(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("bench", "Measure a model's speed beside this machine's limits");
  auto arguments = std::make_shared<BenchArguments>();
  add_bench_kernels(app, invocation);
  add_plan_options(app, arguments->plan);
  app.get_option("MODEL")->required(false);  // not with `bench kernels`
  const auto add = [&](const std::string& name, std::uint32_t& value, const std::string& help, unsigned low,
                       unsigned high) {
    in_range(app.add_option(name, value, help), low, high)->type_name("N")->capture_default_str();
  };
  constexpr auto kLongest = static_cast<unsigned>(limits::context);
  add("-p,--prompt", arguments->work.prompt, "Tokens of the prompt; 0 leaves it out", 0, kLongest);
  add("-n,--generated", arguments->work.generated, "Tokens decoded after it; 0 leaves it out", 0, kLongest);
  add("-d,--depth", arguments->work.depth, "Tokens in the cache when decoding begins", 0, kLongest);
  add("-b,--sequences", arguments->work.sequences, "Sequences decoded together", 1, 1024);
  add("-r,--rounds", arguments->rounds, "Measurements, of which the middle is shown", 1, 1000);
  add_model(app, arguments->vs, "A second model, or MODEL again, measured in turn with the same options", "--vs")
      ->required(false)
      ->type_name("OTHER");
  app.add_option("--vs-overlay", arguments->vs_overlay,
                 "{session, executionPatch} of the second one's plan in place of --session, --patch and --overlay")
      ->type_name("FILE");
  add_load_options(app, arguments->load);
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), bench);
}

}  // namespace candor::cli
