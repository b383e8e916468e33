#include "text/jinja/print.h"

#include "text/jinja/number.h"
#include "text/jinja/unicode.h"

namespace candor::jinja {
namespace {

/// repr(str): the quote that needs no escape, and escapes for what cannot be printed.
void append_quoted(Buffer& out, std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  out.append(quote);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t c = next_code_point(text, at);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out.append('\\');
      out.append(static_cast<char>(c));
    } else if (c == '\n') {
      out.append("\\n");
    } else if (c == '\r') {
      out.append("\\r");
    } else if (c == '\t') {
      out.append("\\t");
    } else if (is_printable(c)) {
      out.append(text.substr(start, at - start));
    } else {
      out.append(escaped_code_point(c));
    }
  }
  out.append(quote);
}

void print_sequence(Runtime& runtime, Buffer& out, const Sequence& sequence) {
  const bool is_list = sequence.kind == SequenceKind::list;
  out.append(is_list ? '[' : '(');
  bool first = true;
  for (const Value& item : sequence.items) {
    if (!first) out.append(", ");
    first = false;
    print_repr(runtime, out, item);
  }
  if (!is_list && sequence.items.size() == 1) out.append(',');
  out.append(is_list ? ']' : ')');
}

void print_dict(Runtime& runtime, Buffer& out, const Dict& dict) {
  out.append('{');
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) out.append(", ");
    first = false;
    print_repr(runtime, out, key);
    out.append(": ");
    print_repr(runtime, out, value);
  }
  out.append('}');
}

void print_view(Runtime& runtime, Buffer& out, const DictView& view, std::string_view type) {
  out.append(type);
  out.append("([");
  bool first = true;
  for (const auto& [key, value] : view.dict.dict().entries()) {
    if (!first) out.append(", ");
    first = false;
    if (view.kind == DictView::Kind::items) out.append('(');
    if (view.kind != DictView::Kind::values) print_repr(runtime, out, key);
    if (view.kind == DictView::Kind::items) out.append(", ");
    if (view.kind != DictView::Kind::keys) print_repr(runtime, out, value);
    if (view.kind == DictView::Kind::items) out.append(')');
  }
  out.append("])");
}

void print_range(Buffer& out, const Range& range) {
  out.append("range(" + to_string(range.start) + ", " + to_string(range.stop));
  if (range.step != 1) out.append(", " + to_string(range.step));
  out.append(')');
}

void print_object(Runtime& runtime, Buffer& out, Object& object) {
  const auto text = object.print(runtime);
  if (!text) runtime.fail("a '{}' object cannot be printed", object.type_name());
  out.append(*text);
}

}  // namespace

void print(Runtime& runtime, Buffer& out, const Value& value) {
  if (value.is_text()) {
    out.append(value.view());
  } else if (!value.is_undefined()) {
    print_repr(runtime, out, value);
  }
}

void print_repr(Runtime& runtime, Buffer& out, const Value& value) {
  const Runtime::Nested nested(runtime);
  runtime.step();
  if (value.is_text()) {
    if (value.is_markup()) out.append("Markup(");
    append_quoted(out, value.view());
    if (value.is_markup()) out.append(')');
  } else if (value.is_none()) {
    out.append("None");
  } else if (value.is<bool>()) {
    out.append(value.integral() != 0 ? "True" : "False");
  } else if (value.is<Int>()) {
    out.append(to_string(value.integral()));
  } else if (value.is<double>()) {
    out.append(to_string(as_double(value)));
  } else if (value.is_undefined() || value.is_missing()) {
    out.append("Undefined");
  } else if (value.is<SequencePtr>()) {
    print_sequence(runtime, out, value.sequence());
  } else if (value.is_dict()) {
    print_dict(runtime, out, value.dict());
  } else if (value.is<RangePtr>()) {
    print_range(out, *std::get<RangePtr>(value.storage()));
  } else if (value.is<DictViewPtr>()) {
    print_view(runtime, out, *std::get<DictViewPtr>(value.storage()), type_name(value));
  } else {
    print_object(runtime, out, *value.object());
  }
}

void print_ascii(Runtime& runtime, Buffer& out, const Value& value) {
  Buffer shown(runtime);
  print_repr(runtime, shown, value);
  const std::string_view text = shown.view();
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (c < 0x80) {
      out.append(static_cast<char>(c));
    } else {
      out.append(escaped_code_point(c));
    }
  }
}

Value to_text(Runtime& runtime, const Value& value) {
  if (value.is_text() && !value.is_markup()) return value;
  Buffer out(runtime);
  print(runtime, out, value);
  return out.finish();
}

Value to_soft_text(Runtime& runtime, const Value& value) {
  return value.is_text() ? value : to_text(runtime, value);
}

void append_escaped(Buffer& out, std::string_view text) {
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string_view replacement;
    switch (text[at]) {
      case '&':
        replacement = "&amp;";
        break;
      case '<':
        replacement = "&lt;";
        break;
      case '>':
        replacement = "&gt;";
        break;
      case '\'':
        replacement = "&#39;";
        break;
      case '"':
        replacement = "&#34;";
        break;
      default:
        continue;
    }
    out.append(text.substr(done, at - done));
    out.append(replacement);
    done = at + 1;
  }
  out.append(text.substr(done));
}

Value escape(Runtime& runtime, const Value& value) {
  if (value.is_markup()) return value;
  const Value text = to_text(runtime, value);
  Buffer out(runtime);
  append_escaped(out, text.view());
  return out.finish(true);
}

}  // namespace candor::jinja
