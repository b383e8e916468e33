// A template, and after a zero byte a JSON context: rendered or refused with an Error(text), to the same UTF-8 each
// time.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/chat_template.h"

namespace {

constexpr std::string_view kContext =
    R"({"messages": [{"role": "user", "content": "Hi é"}, {"role": "tool", "content": null, "calls": [1, 2.5, true]}],)"
    R"( "tools": {"b": {"x": [1]}, "a": []}, "n": 3, "s": "a,b c"})";

candor::Json read_context(std::string_view text) {
  try {
    candor::Json context = candor::parse_json(text, "context");
    if (context.is_object()) return context;
  } catch (const candor::Error&) {
  }
  return candor::parse_json(kContext, "context");
}

std::optional<std::string> render(const candor::ChatTemplate& chat_template, const candor::Json& context) {
  try {
    return chat_template.render(context, candor::LocalTime{2026, 3, 14, 9, 26, 53});
  } catch (const candor::Error& error) {
    if (error.code() != candor::ErrorCode::text) std::abort();
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = input.find('\0');
  const std::string source(input.substr(0, zero));
  const candor::Json context = read_context(zero == std::string_view::npos ? "" : input.substr(zero + 1));
  std::optional<candor::ChatTemplate> chat_template;
  try {
    chat_template.emplace(source, "input");
  } catch (const candor::Error& error) {
    if (error.code() != candor::ErrorCode::text) std::abort();
    return 0;
  }
  const auto text = render(*chat_template, context);
  if (text && !candor::is_utf8(*text)) std::abort();
  if (size < 1000 && render(*chat_template, context) != text) std::abort();
  return 0;
}
