// A conversation on a terminal: a line in, an answer out, until the person leaves.
#pragma once

#include "cli/conversation.h"
#include "engine/engine.h"

namespace candor::cli {

struct ChatOptions {
  double memory_bandwidth = 0;  ///< for reports, as RunReport has it
  bool quiet = false;
};

/// `request` is each turn's, its prompt apart. Prompts and reports go to standard error, answers to standard output.
/// Returns the exit status.
int chat(Engine& engine, Conversation& conversation, TextRequest request, const ChatOptions& options);

}  // namespace candor::cli
