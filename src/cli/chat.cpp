#include "cli/chat.h"

#include <cstdio>
#include <utility>

#include "base/error.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/run_report.h"

namespace candor::cli {
namespace {

constexpr const char* kHelp =
    "/reset forgets the conversation, /quit or Ctrl-D leaves; Ctrl-C stops an answer, and leaves where there is none";

class Chat {
 public:
  Chat(Engine& engine, Conversation& conversation, TextRequest request, const ChatOptions& options)
      : engine_(engine), conversation_(conversation), request_(std::move(request)), options_(options) {}

  int run() {
    if (!options_.quiet) report(greeting());
    while (const auto line = read_line("> ")) {
      if (line->empty()) continue;
      if (*line == "/quit" || *line == "/exit") return 0;
      if (line->starts_with('/')) {
        obey(*line);
      } else {
        take_turn(*line);
      }
    }
    std::fputs("\n", stderr);
    return interrupted() ? exit_status(ErrorCode::cancelled) : 0;
  }

 private:
  [[nodiscard]] std::string greeting() const {
    const runtime::CompiledModel& compiled = engine_.model().compiled();
    const char* manner = conversation_.has_turns() ? "" : "; each line is continued on its own";
    return fmt::format("{}, plan {}, context {}{}. /help lists the commands.",
                       compiled.manifest.value("modelId", "model"), short_digest(compiled.plan_digest),
                       engine_.model().context(), manner);
  }

  void obey(const std::string& command) {
    if (command == "/reset") {
      conversation_.reset();
      report("The conversation is forgotten.");
    } else {
      report(command == "/help" ? kHelp : fmt::format("{} is no command. {}", printable(command), kHelp));
    }
  }

  /// A turn that fails is taken back, so that the conversation can go on.
  void take_turn(const std::string& text) {
    bool asked = false;
    try {
      request_.prompt = conversation_.ask(text);
      asked = true;
      const TextResult result = engine_.generate(request_, print_model_text);
      print("\n");
      flush_output();
      conversation_.answer(result.text);
      if (!options_.quiet) report(RunReport{result, engine_, request_.sampler, options_.memory_bandwidth}.line());
    } catch (const Error& error) {
      if (asked) conversation_.take_back();
      (void)report_error(error.code(), error.what(), false);
    }
    clear_interrupt();
  }

  Engine& engine_;
  Conversation& conversation_;
  TextRequest request_;
  ChatOptions options_;
};

}  // namespace

int chat(Engine& engine, Conversation& conversation, TextRequest request, const ChatOptions& options) {
  return Chat(engine, conversation, std::move(request), options).run();
}

}  // namespace candor::cli
