#include "text/jinja/binding.h"
#include "text/jinja/filter_tables.h"
#include "text/jinja/iterate.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace candor::jinja {
namespace {

Value escape_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "escape", {}, 0);
  return escape(runtime, subject);
}

Value force_escape_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "forceescape", {}, 0);
  return escape(runtime, to_text(runtime, subject));
}

Value safe_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "safe", {}, 0);
  if (subject.is_markup()) return subject;
  return runtime.text(to_text(runtime, subject).view(), true);
}

/// Percent-encodes all but letters, digits, "_.-~" and, in paths, "/" (RFC 3986); in queries a space becomes "+".
void append_quoted(Buffer& out, std::string_view text, bool query) {
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                       c == '.' || c == '-' || c == '~' || (c == '/' && !query);
    if (plain) {
      out.append(c);
    } else if (c == ' ' && query) {
      out.append('+');
    } else {
      out.append(fmt::format("%{:02X}", static_cast<unsigned char>(c)));
    }
  }
}

Value urlencode_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "urlencode", {}, 0);
  Buffer out(runtime);
  if (subject.is_text() || !is_iterable(subject)) {
    append_quoted(out, to_text(runtime, subject).view(), false);
    return out.finish();
  }
  const Value items =
      subject.is_dict()
          ? Value(Value::Storage(std::make_shared<const DictView>(DictView{subject, DictView::Kind::items})))
          : subject;
  Cursor cursor(runtime, items);
  while (const auto item = cursor.next(runtime)) {
    const auto pair = to_vector(runtime, *item);
    if (pair.size() != 2) runtime.fail("urlencode: expected pairs of key and value");
    if (!out.empty()) out.append('&');
    append_quoted(out, to_text(runtime, pair[0]).view(), true);
    out.append('=');
    append_quoted(out, to_text(runtime, pair[1]).view(), true);
  }
  return out.finish();
}

Value xmlattr_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "xmlattr", {"autospace"}, 0);
  require_defined(runtime, subject);
  if (!subject.is_dict()) runtime.fail("xmlattr: expected a dict, got '{}'", type_name(subject));
  Buffer out(runtime);
  const bool autospace = bound.truth(0, true);
  for (const auto& [key, value] : subject.dict().entries()) {
    if (value.is_none() || value.is_undefined()) continue;
    if (!key.is_text() || key.view().find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos)
      runtime.fail("xmlattr: invalid character in an attribute name");
    if (!out.empty() || autospace) out.append(' ');
    out.append(escape(runtime, key).view());
    out.append("=\"");
    out.append(escape(runtime, value).view());
    out.append('"');
  }
  return out.finish(runtime.autoescape);
}

constexpr FilterEntry kHtmlFilters[] = {
    {"e", escape_filter},  {"escape", escape_filter},       {"forceescape", force_escape_filter},
    {"safe", safe_filter}, {"urlencode", urlencode_filter}, {"xmlattr", xmlattr_filter},
};

}  // namespace

std::span<const FilterEntry> html_filters() {
  return kHtmlFilters;
}

}  // namespace candor::jinja
