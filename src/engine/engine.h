// The engine: a loaded model together with its tokenizer and chat template, text in and text out. What the command
// line, the server and the public API (include/candor/candor.h) share. Not a goal: arguments, terminals, HTTP.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "formats/artifact_verify.h"
#include "runtime/generate.h"
#include "runtime/loaded_model.h"
#include "runtime/session.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace candor {

/// The tokenizer of a model's files; nothing if they hold none (GGUF model "none", a folder without one).
[[nodiscard]] std::unique_ptr<Tokenizer> load_tokenizer(const ModelSource& source);

struct EngineOptions {
  runtime::PlanOptions plan;
  runtime::LoadOptions load;
  VerifyMode verify = VerifyMode::header;
};

/// One conversation to render: `messages` is an array of {role, content, …}; `tools` and `documents` may be null.
struct ChatInput {
  Json messages = Json::array();
  Json tools;
  Json documents;
  Json variables = Json::object();  ///< further variables for the template
  bool add_generation_prompt = true;
  std::optional<LocalTime> now;
};

struct TextRequest {
  std::vector<std::uint32_t> prompt;
  std::uint32_t max_tokens = 0;  ///< 0: until a stop or the end of the context
  SamplerParameters sampler;
  std::vector<std::string> stop_strings;  ///< end the answer; not part of it
  bool ignore_stop_tokens = false;
  std::function<bool()> cancelled;
};

struct TextResult {
  std::string text;
  std::vector<std::uint32_t> tokens;
  runtime::StopReason reason = runtime::StopReason::length;
  std::string stop;  ///< the stop token or stop string that ended it, as text
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;  ///< of these, how many the prefix cache had
  std::uint64_t seed = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
  std::uint64_t bytes_per_token = 0;  ///< weights and KV read by the last decode step
};

class Engine {
 public:
  Engine(const std::filesystem::path& path, const EngineOptions& options);

  [[nodiscard]] runtime::LoadedModel& model() { return *model_; }
  [[nodiscard]] runtime::Session& session() { return *session_; }
  /// What was hashed before the model was loaded.
  [[nodiscard]] const Verification& verification() const { return verification_; }
  /// Throws Error(unsupported) if the model has no tokenizer, saying which commands work without.
  [[nodiscard]] const Tokenizer& tokenizer() const;
  [[nodiscard]] bool has_tokenizer() const { return tokenizer_ != nullptr; }
  /// Nothing if the model has no chat template.
  [[nodiscard]] const ChatTemplate* chat_template() const { return template_ ? &*template_ : nullptr; }

  /// Ids of a text as it is; `add_special` puts BOS first where the tokenizer adds one. An empty text is BOS alone;
  /// throws Error(usage) if there is none.
  [[nodiscard]] std::vector<std::uint32_t> encode_raw(std::string_view text, bool add_special = true) const;
  /// Renders the model's own template and encodes it without adding special tokens (the template wrote them). Throws
  /// Error(unsupported) without a template, Error(text) if it fails.
  [[nodiscard]] std::string render_chat(const ChatInput& input) const;
  [[nodiscard]] std::vector<std::uint32_t> encode_chat(const ChatInput& input) const;

  /// Runs `request.prompt` on a new sequence and streams whole characters to `on_text` as soon as no stop string can
  /// begin in them.
  [[nodiscard]] TextResult generate(const TextRequest& request, const std::function<void(std::string_view)>& on_text);

  /// Logits of all positions, [tokens, vocabulary] row-major float32. The plan must select all rows.
  [[nodiscard]] std::vector<float> logits(std::span<const std::uint32_t> tokens);

 private:
  Verification verification_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> template_;
  std::unique_ptr<runtime::LoadedModel> model_;
  std::unique_ptr<runtime::Session> session_;
};

}  // namespace candor
