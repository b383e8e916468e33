// Chat templates: Jinja2 exactly as Hugging Face's tokenizers run it (an immutable sandbox with trim_blocks and
// lstrip_blocks, loop controls, the generation block, tojson without HTML escapes, raise_exception, strftime_now).
// Goals: the same text for the same context, or an error that names the line; bounded time and memory for any template.
// Not goals: loading other templates (include, extends, import fail when reached), random and lipsum, plugins.
// Rejected: recognising a template by its text and formatting natively: a template that fails is an error, never a
// default.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "text/jinja/clock.h"

namespace candor {

namespace jinja {
class Program;
}

/// A parsed template. Immutable: one object renders in many threads at once.
class ChatTemplate {
 public:
  /// `label` names the template in errors. Throws Error(text) with the line: a syntax error, an unknown filter or test,
  /// invalid UTF-8, or more than limits::template_bytes.
  ChatTemplate(std::string source, std::string label);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  /// The template's text for `context`, a JSON object of variables: messages, tools, documents, add_generation_prompt,
  /// bos_token, eos_token and any others. `now` is what strftime_now sees; without it, the computer's clock.
  /// Throws Error(text) with line and message: raise_exception, an undefined value used, a type error, a limit.
  [[nodiscard]] std::string render(const Json& context, std::optional<LocalTime> now = std::nullopt) const;

  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] const std::string& label() const { return label_; }
  /// "sha256:" and the digest of the source.
  [[nodiscard]] std::string digest() const;

 private:
  std::string source_;
  std::string label_;
  std::unique_ptr<const jinja::Program> program_;
};

}  // namespace candor
