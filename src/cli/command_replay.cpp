#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/receipt_file.h"

namespace candor::cli {
namespace {

using runtime::Receipt;
using runtime::ReceiptCommand;

struct ReplayArguments {
  std::string receipt;
  std::string model;
  LoadArguments load;
  bool anyway = false;
  bool json = false;
};

/// "the receipt has no token 3, now it is 17" and the like.
std::string describe_other(const Receipt& receipt, const Replay& result) {
  const std::size_t at = *result.first_other;
  const auto token = [&](const std::vector<std::uint32_t>& tokens) {
    return at < tokens.size() ? fmt::format("token {}", tokens[at]) : std::string("the end");
  };
  return fmt::format("the first that differs is number {}: {} in the receipt, {} now", at + 1, token(receipt.tokens),
                     token(result.tokens));
}

std::string verdict(const Receipt& receipt, const Replay& result) {
  if (receipt.command == ReceiptCommand::logits)
    return result.same ? fmt::format("The logits of {} are the same to the bit.", counted(result.compared, "position"))
                       : fmt::format("The logits differ: {} in the receipt, {} now.", receipt.logits, result.logits);
  if (result.same)
    return fmt::format("The answer is the same: {}, {}.", counted(result.compared, "token"), receipt.stop_reason);
  if (result.first_other) return fmt::format("The answer differs: {}.", describe_other(receipt, result));
  return fmt::format("The tokens are the same, but the answer ended by {}; in the receipt by {}.", result.stop_reason,
                     receipt.stop_reason);
}

/// One line of everything that differs, with whole digests.
std::string describe(const std::vector<plan::Change>& changes) {
  std::vector<std::string> parts;
  for (const plan::Change& change : changes)
    parts.push_back(fmt::format("{}: {} in the receipt, {} now", printable(change.subject),
                                change.before.empty() ? "nothing" : printable(change.before),
                                change.after.empty() ? "nothing" : printable(change.after)));
  constexpr std::size_t kShown = 4;
  const std::size_t more = parts.size() > kShown ? parts.size() - kShown : 0;
  parts.resize(parts.size() - more);
  return fmt::format("{}{}", fmt::join(parts, "; "), more > 0 ? fmt::format("; and {} more", more) : std::string());
}

Json replay_json(const Receipt& receipt, const Replay& result, const std::vector<plan::Change>& changes) {
  Json list = Json::array();
  for (const plan::Change& change : changes) list.push_back(change.to_json());
  Json out{{"same", result.same},
           {"command", runtime::to_string(receipt.command)},
           {"compared", result.compared},
           {"firstOther", result.first_other ? Json(*result.first_other) : Json()},
           {"digestsThatDiffer", std::move(list)}};
  if (receipt.command == ReceiptCommand::run) {
    out["tokens"] = result.tokens;
    out["stop"] = result.stop_reason;
  } else {
    out["logits"] = result.logits;
  }
  return out;
}

int replay_receipt(const ReplayArguments& arguments) {
  catch_interrupts();
  const Receipt receipt = read_receipt(arguments.receipt);
  EngineOptions options = replay_options(receipt);
  const std::uint32_t context = options.load.context;
  options.load = load_options(arguments.load, !arguments.json);
  options.load.context = context;
  options.verify = *parse_verify_mode(arguments.load.verify);
  Engine engine(arguments.model.empty() ? receipt.model_path : arguments.model, options);
  ThreadPool pool(options.load.threads);
  const auto changes = runtime::diff_facts(
      receipt.model,
      model_facts(engine.model().compiled(), engine.has_tokenizer() ? &engine.tokenizer() : nullptr, pool));
  if (!changes.empty() && !arguments.anyway)
    fail(ErrorCode::integrity,
         "{}: this is not what the receipt is of: {}; candor plan diff compares them, and --anyway runs it all the "
         "same",
         arguments.receipt, describe(changes));
  const Replay result = replay(engine, receipt, interrupted);
  if (arguments.json) {
    print_json(replay_json(receipt, result, changes));
  } else {
    print(verdict(receipt, result) + "\n");
    if (!changes.empty()) report(fmt::format("What differs from the receipt: {}", describe(changes)));
  }
  if (!result.same) return kDiffersStatus;
  return changes.empty() ? 0 : exit_status(ErrorCode::integrity);
}

}  // namespace

void add_replay(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand(
      "replay", "Run what a receipt says again: status 0 if the answer is the same, 11 if not, 7 if a digest differs");
  auto arguments = std::make_shared<ReplayArguments>();
  app.add_option("RECEIPT", arguments->receipt, "What --receipt wrote")->required();
  add_model(app, arguments->model, "The model, where it is not at the path that the receipt says")->required(false);
  app.add_flag("--anyway", arguments->anyway, "Run also a model or plan that is not the receipt's");
  add_threads(app, arguments->load.threads);
  add_isa(app, arguments->load.isa);
  add_adapter(app, arguments->load.webgpu_library, arguments->load.adapter);
  add_verify(app, arguments->load.verify);
  add_prefill_chunk(app, arguments->load.prefill_chunk);
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), replay_receipt);
}

}  // namespace candor::cli
