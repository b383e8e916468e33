#include <algorithm>

#include "text/jinja/binding.h"
#include "text/jinja/filter_tables.h"
#include "text/jinja/format.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/text_edit.h"
#include "text/jinja/text_search.h"
#include "text/jinja/text_split.h"
#include "text/jinja/unicode.h"

namespace candor::jinja {
namespace {

template <std::string (*convert)(std::string_view)>
Value converted(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "the filter", {}, 0);
  const Value text = to_soft_text(runtime, subject);
  runtime.check_room(text.view().size(), 3);
  runtime.scan(text.view().size());
  return runtime.text(convert(text.view()), text.is_markup());
}

/// The filter's own idea of a word: it starts after white space, a hyphen or an opening bracket.
std::string title_words(std::string_view text) {
  std::string out;
  std::size_t at = 0;
  const auto is_break = [](char32_t c) {
    return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  while (at < text.size()) {
    std::size_t end = at;
    std::size_t next = at;
    const bool breaking = is_break(next_code_point(text, next));
    const std::size_t first_end = next;
    for (end = next; end < text.size(); end = next)
      if (is_break(next_code_point(text, next)) != breaking) break;
    out += upper(text.substr(at, first_end - at));
    out += lower(text.substr(first_end, end - first_end));
    at = end;
  }
  return out;
}

Value title_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "title", {}, 0);
  const Value text = to_soft_text(runtime, subject);
  runtime.check_room(text.view().size(), 3);
  runtime.scan(text.view().size());
  return runtime.text(title_words(text.view()));
}

Value center_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "center", {"width"}, 0);
  return pad_text(runtime, to_soft_text(runtime, subject), bound.integer(0, 80), " ", Align::center);
}

Value trim_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "trim", {"chars"}, 0);
  const Value text = to_soft_text(runtime, subject);
  runtime.scan(text.view().size());
  if (!bound.has(0) || bound[0].is_none()) return runtime.text(trim_right(trim_left(text.view())), text.is_markup());
  (void)bound.text(0, {});
  const Value set = text.is_markup() ? escape(runtime, bound[0]) : bound[0];
  runtime.scan(set.view().size() * 8);
  return runtime.text(strip_right(strip_left(text.view(), set.view()), set.view()), text.is_markup());
}

/// Under autoescape, marked-up text or arguments make the result marked-up, with the rest escaped.
Value replace_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "replace", {"old", "new", "count"}, 2);
  const Int count = bound.has(2) && !bound[2].is_none() ? bound.integer(2, -1) : -1;
  if (!runtime.autoescape) {
    const Value old = to_text(runtime, bound[0]);
    const Value replacement = to_text(runtime, bound[1]);
    return replace_text(runtime, to_text(runtime, subject), old.view(), replacement.view(), count);
  }
  const bool escapes = bound[0].is_markup() || (bound[1].is_markup() && !subject.is_markup());
  const Value text = escapes ? escape(runtime, subject) : to_soft_text(runtime, subject);
  const auto argument = [&](const Value& value) {
    return text.is_markup() ? escape(runtime, value) : to_soft_text(runtime, value);
  };
  const Value old = argument(bound[0]);
  const Value replacement = argument(bound[1]);
  return replace_text(runtime, text, old.view(), replacement.view(), count);
}

Value format_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Value text = to_soft_text(runtime, subject);
  if (arguments.named.empty()) return format_percent(runtime, text, runtime.tuple(arguments.positional));
  if (!arguments.positional.empty()) runtime.fail("format: positional and keyword arguments cannot be mixed");
  Dict named;
  for (const auto& [name, value] : arguments.named) named.set(runtime.text(name), value);
  return format_percent(runtime, text, runtime.dict(std::move(named)));
}

Value indent_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "indent", {"width", "first", "blank"}, 0);
  const bool first = bound.truth(1, false);
  const bool blank = bound.truth(2, false);
  const bool markup = subject.is_markup();
  Value indention;
  if (bound.has(0) && bound[0].is_text()) {
    indention = markup ? runtime.text(bound[0].view(), true) : bound[0];
  } else {
    Buffer spaces(runtime);
    const Int width = std::clamp<Int>(bound.integer(0, 4), 0, INT64_MAX);
    spaces.append_repeated(" ", static_cast<std::uint64_t>(width));
    indention = spaces.finish(markup);
  }
  // A line break at the end makes the last line one of its own, as an empty line.
  const Value text = binary(runtime, BinaryOp::add, subject, runtime.text("\n", markup));
  Buffer out(runtime);
  if (first) out.append(indention.view());
  bool first_line = true;
  split_lines(text.view(), false, [&](std::string_view line) {
    if (!first_line) {
      out.append('\n');
      if (blank || !line.empty()) out.append(indention.view());
    }
    first_line = false;
    out.append(line);
  });
  return out.finish(markup);
}

Value truncate_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "truncate", {"length", "killwords", "end", "leeway"}, 0);
  const Int length = bound.integer(0, 255);
  const Value end = bound.has(2) ? bound[2] : runtime.text("...");
  const Int leeway = bound.has(3) && !bound[3].is_none() ? bound.integer(3, 5) : 5;
  const auto end_length = jinja::length(runtime, end);
  if (!end_length || length < static_cast<Int>(*end_length))
    runtime.fail("truncate: the length is less than that of the end");
  if (leeway < 0) runtime.fail("truncate: the leeway is negative");
  const auto size = jinja::length(runtime, subject);
  if (!size) runtime.fail("truncate: object of type '{}' has no length", type_name(subject));
  if (static_cast<Int>(*size) <= length + leeway) return subject;
  if (!subject.is_text()) runtime.fail("truncate: expected a string, got '{}'", type_name(subject));
  const auto kept = static_cast<std::size_t>(length) - *end_length;
  std::string_view text = subject.view().substr(0, byte_offset(subject.view(), kept));
  if (!bound.truth(1, false)) {
    const std::size_t space = find_last_text(text, " ");
    if (space != std::string_view::npos) text = text.substr(0, space);
  }
  return binary(runtime, BinaryOp::add, runtime.text(text, subject.is_markup()), end);
}

Value wordcount_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "wordcount", {}, 0);
  const Value text = to_soft_text(runtime, subject);
  runtime.scan(text.view().size());
  Int words = 0;
  bool in_word = false;
  for (std::size_t at = 0; at < text.view().size();) {
    const bool word = is_word(next_code_point(text.view(), at));
    if (word && !in_word) ++words;
    in_word = word;
  }
  return Value::integer(words);
}

Value string_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "string", {}, 0);
  return to_soft_text(runtime, subject);
}

constexpr FilterEntry kTextFilters[] = {
    {"capitalize", converted<capitalize>},
    {"center", center_filter},
    {"format", format_filter},
    {"indent", indent_filter},
    {"lower", converted<lower>},
    {"replace", replace_filter},
    {"string", string_filter},
    {"title", title_filter},
    {"trim", trim_filter},
    {"truncate", truncate_filter},
    {"upper", converted<upper>},
    {"wordcount", wordcount_filter},
};

}  // namespace

std::span<const FilterEntry> text_filters() {
  return kTextFilters;
}

}  // namespace candor::jinja
