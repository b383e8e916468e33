#include "text/jinja/text_edit.h"

#include "text/jinja/print.h"
#include "text/jinja/text_search.h"
#include "text/jinja/unicode.h"

namespace candor::jinja {
namespace {

/// An empty `old` stands before every code point and at the end.
void replace_everywhere(Buffer& out, std::string_view text, std::string_view replacement, std::uint64_t count) {
  std::size_t at = 0;
  for (; count > 0; --count) {
    out.append(replacement);
    if (at == text.size()) return;
    const std::size_t start = at;
    (void)next_code_point(text, at);
    out.append(text.substr(start, at - start));
  }
  out.append(text.substr(at));
}

}  // namespace

Value replace_text(Runtime& runtime, const Value& text, std::string_view old, std::string_view replacement, Int count) {
  std::uint64_t left = count < 0 || count > INT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(count);
  const std::string_view source = text.view();
  runtime.walk(source.size());
  Buffer out(runtime);
  if (old.empty()) {
    replace_everywhere(out, source, replacement, left);
    return out.finish(text.is_markup());
  }
  std::size_t done = 0;
  for (; left > 0; --left) {
    const std::size_t found = find_text(source, old, done);
    if (found == std::string_view::npos) break;
    out.append(source.substr(done, found - done));
    out.append(replacement);
    done = found + old.size();
  }
  out.append(source.substr(done));
  return out.finish(text.is_markup());
}

Value join_text(Runtime& runtime, const Value& separator, const std::vector<Value>& items) {
  Buffer out(runtime);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_text()) runtime.fail("join: item {} is of type '{}', not a string", i, type_name(items[i]));
    if (i > 0) out.append(separator.view());
    out.append(separator.is_markup() ? escape(runtime, items[i]).view() : items[i].view());
  }
  return out.finish(separator.is_markup());
}

Value pad_text(Runtime& runtime, const Value& text, Int width, std::string_view fill, Align align) {
  const Int size = static_cast<Int>(text.text().length);
  if (width <= size) return text;
  if (width > INT64_MAX) runtime.fail("a width of more than 63 bits");
  const auto padding = static_cast<std::uint64_t>(width - size);
  std::uint64_t before = 0;
  if (align == Align::right) before = padding;
  if (align == Align::center) before = padding / 2 + (padding & static_cast<std::uint64_t>(width) & 1);
  Buffer out(runtime);
  out.append_repeated(fill, before);
  out.append(text.view());
  out.append_repeated(fill, padding - before);
  return out.finish(text.is_markup());
}

}  // namespace candor::jinja
