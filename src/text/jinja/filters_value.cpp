#include "text/jinja/attribute.h"
#include "text/jinja/binding.h"
#include "text/jinja/filter_tables.h"
#include "text/jinja/iterate.h"
#include "text/jinja/json.h"
#include "text/jinja/operators.h"

namespace candor::jinja {
namespace {

Value default_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "default", {"default_value", "boolean"}, 0);
  const bool replaced = subject.is_undefined() || (bound.truth(1, false) && !truth(runtime, subject));
  return replaced ? bound.or_else(0, runtime.text("")) : subject;
}

Value attr_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "attr", {"name"}, 1);
  return get_attribute_only(runtime, subject, bound.text(0, {}));
}

/// Hugging Face's tojson: json.dumps with ensure_ascii off.
Value tojson_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  JsonStyle style;
  style.ensure_ascii = bound.truth(0, false);
  style.sort_keys = bound.truth(3, false);
  if (bound.has(1) && !bound[1].is_none()) {
    style.pretty = true;
    style.item_separator.assign(1, ',');
    if (bound[1].is_text()) {
      style.indent = bound[1].view();
    } else {
      const Int width = std::max<Int>(bound.integer(1, 0), 0);
      if (width > 1000) runtime.fail("tojson: an indent of more than 1000");
      style.indent.assign(static_cast<std::size_t>(width), ' ');
    }
  }
  if (bound.has(2) && !bound[2].is_none()) {
    const auto separators = to_vector(runtime, bound[2]);
    if (separators.size() != 2 || !separators[0].is_text() || !separators[1].is_text())
      runtime.fail("tojson: separators must be two strings");
    style.item_separator = separators[0].view();
    style.key_separator = separators[1].view();
  }
  Buffer out(runtime);
  print_json(runtime, out, subject, style);
  return out.finish();
}

Value unsupported(Runtime& runtime, const Value&, const Arguments&) {
  runtime.fail("the filters pprint, random, striptags, urlize and wordwrap are not supported in chat templates");
}

constexpr FilterEntry kValueFilters[] = {
    {"attr", attr_filter},      {"d", default_filter},   {"default", default_filter},
    {"tojson", tojson_filter},  {"pprint", unsupported}, {"random", unsupported},
    {"striptags", unsupported}, {"urlize", unsupported}, {"wordwrap", unsupported},
};

}  // namespace

std::span<const FilterEntry> value_filters() {
  return kValueFilters;
}

}  // namespace candor::jinja
