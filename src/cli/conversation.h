// How a person's text becomes a prompt: through the model's chat template, with the turns so far, or as it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace candor::cli {

struct ConversationOptions {
  bool raw = false;    ///< the text as it is, although the model has a template
  std::string system;  ///< the system's turn; empty for none
  Json tools;          ///< an array of tools, or null
};

class Conversation {
 public:
  /// Says on standard error where a model has no template, so that text goes in as it is. Throws Error(usage) if a
  /// system turn or tools could not be put anywhere.
  Conversation(const Engine& engine, ConversationOptions options);

  [[nodiscard]] bool has_turns() const { return has_turns_; }

  /// The prompt for this text, which becomes the next turn. Throws Error(usage) for an empty turn.
  [[nodiscard]] std::vector<std::uint32_t> ask(const std::string& text);
  /// The model's turn.
  void answer(const std::string& text);
  /// Takes the last ask() back.
  void take_back();
  /// Forgets all turns.
  void reset();

  /// The last prompt as text: rendered, or as it is.
  [[nodiscard]] const std::string& prompt_text() const { return prompt_text_; }

 private:
  const Engine& engine_;
  ConversationOptions options_;
  bool has_turns_ = false;
  ChatInput chat_;
  std::string prompt_text_;
};

}  // namespace candor::cli
