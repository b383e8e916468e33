#include "text/chat_template.h"

#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "text/jinja/ast.h"
#include "text/jinja/globals.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/json.h"
#include "text/jinja/parser.h"
#include "text/jinja/scope.h"

namespace candor {

/// A parsed and resolved template.
class jinja::Program {
 public:
  Program(std::string_view source, const std::string& label) : tree_(Parser(source, label).parse()) {
    resolve(tree_, label);
  }

  [[nodiscard]] const Template& tree() const { return tree_; }

 private:
  Template tree_;
};

ChatTemplate::ChatTemplate(std::string source, std::string label)
    : source_(std::move(source)), label_(std::move(label)) {
  if (source_.size() > limits::template_bytes)
    fail(ErrorCode::text, "{}: a template of {} bytes, more than the limit of {}", label_, source_.size(),
         limits::template_bytes);
  if (!is_utf8(source_)) fail(ErrorCode::text, "{}: the template is not valid UTF-8", label_);
  program_ = std::make_unique<const jinja::Program>(source_, label_);
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const Json& context, std::optional<LocalTime> now) const {
  if (!context.is_object()) fail(ErrorCode::text, "{}: the context must be a JSON object", label_);
  jinja::Runtime runtime(label_, now);
  jinja::Context variables = jinja::make_globals(runtime);
  for (const auto& [name, value] : context.get_ref<const Json::object_t&>())
    variables.set(runtime.text(name), jinja::from_json(runtime, value, "context." + printable(name)));
  return jinja::Interpreter(runtime, program_->tree(), std::move(variables)).render();
}

std::string ChatTemplate::digest() const {
  return "sha256:" + sha256_hex(source_);
}

}  // namespace candor
