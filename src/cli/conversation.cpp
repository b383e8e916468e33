#include "cli/conversation.h"

#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/output.h"

namespace candor::cli {
namespace {

/// A template that writes BOS, encoded by a tokenizer that adds it, or a person who wrote it where it is added.
void note_doubled_bos(const Tokenizer& tokenizer, const std::vector<std::uint32_t>& ids) {
  const auto bos = tokenizer.bos_id();
  if (bos && ids.size() >= 2 && ids[0] == *bos && ids[1] == *bos)
    note("the prompt begins with {} twice, which models are not trained on; leave it out of the text",
         printable(tokenizer.token(*bos)));
}

/// A tokenizer or template would say so too, but of itself.
void check_utf8(std::string_view what, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_sequence_length(text.substr(at));
    if (length == 0)
      fail(ErrorCode::text, "{} is not UTF-8 at byte {} (0x{:02x})", what, at, static_cast<unsigned char>(text[at]));
    at += length;
  }
}

}  // namespace

Conversation::Conversation(const Engine& engine, ConversationOptions options)
    : engine_(engine), options_(std::move(options)) {
  check_utf8("--system", options_.system);
  has_turns_ = engine.chat_template() != nullptr && !options_.raw;
  if (!has_turns_ && (!options_.system.empty() || !options_.tools.is_null()))
    fail(ErrorCode::usage, "--system and --tools are for chat templates, and {}",
         options_.raw ? "--raw passes the text as it is" : "this model has none");
  if (!has_turns_ && !options_.raw) note("the model has no chat template; the text goes in as it is, as with --raw");
  chat_.tools = options_.tools;
  reset();
}

std::vector<std::uint32_t> Conversation::ask(const std::string& text) {
  check_utf8("the prompt", text);
  std::vector<std::uint32_t> ids;
  if (has_turns_) {
    if (text.empty()) fail(ErrorCode::usage, "the prompt is empty; give a text, or --raw to start from BOS");
    chat_.messages.push_back({{"role", "user"}, {"content", text}});
    try {
      prompt_text_ = engine_.render_chat(chat_);
    } catch (...) {
      take_back();
      throw;
    }
    ids = engine_.tokenizer().encode(prompt_text_, {.add_special = false, .parse_special = true});
  } else {
    prompt_text_ = text;
    ids = engine_.encode_raw(text);
  }
  note_doubled_bos(engine_.tokenizer(), ids);
  return ids;
}

void Conversation::answer(const std::string& text) {
  if (has_turns_) chat_.messages.push_back({{"role", "assistant"}, {"content", text}});
}

void Conversation::take_back() {
  if (has_turns_ && !chat_.messages.empty()) chat_.messages.erase(chat_.messages.size() - 1);
}

void Conversation::reset() {
  chat_.messages = Json::array();
  if (!options_.system.empty()) chat_.messages.push_back({{"role", "system"}, {"content", options_.system}});
}

}  // namespace candor::cli
