// Between JSON and the values of a template.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "text/jinja/runtime.h"

namespace candor::jinja {

/// A JSON value as Python's json module reads it. `path` names it in errors, as "context.messages".
/// Throws Error(text): a string that is not UTF-8, or nesting beyond the limit.
[[nodiscard]] Value from_json(Runtime& runtime, const Json& json, const std::string& path);

/// How json.dumps prints.
struct JsonStyle {
  bool ensure_ascii = false;
  bool pretty = false;  ///< each element on a line of its own, indented by `indent` a level
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

/// json.dumps(value). Fails for what JSON has no form for.
void print_json(Runtime& runtime, Buffer& out, const Value& value, const JsonStyle& style);

}  // namespace candor::jinja
