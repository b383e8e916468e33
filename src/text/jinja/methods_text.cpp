#include <algorithm>
#include <functional>
#include <optional>

#include "text/jinja/binding.h"
#include "text/jinja/format.h"
#include "text/jinja/iterate.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/text_class.h"
#include "text/jinja/text_edit.h"
#include "text/jinja/text_search.h"
#include "text/jinja/text_split.h"
#include "text/jinja/unicode.h"

namespace candor::jinja {
namespace {

/// A text argument; for marked-up text it is escaped first.
Value text_argument(Runtime& runtime, const Value& self, const Bound& bound, std::size_t i) {
  (void)bound.text(i, {});  // fails for other types
  return self.is_markup() ? escape(runtime, bound[i]) : bound[i];
}

// ---- Case -----------------------------------------------------------------------------------------------------------

template <std::string (*convert)(std::string_view)>
Value converted(Runtime& runtime, const Value& self, const Arguments& arguments) {
  (void)positional(runtime, arguments, "the method", {}, 0);
  runtime.check_room(self.view().size(), 3);  // no case mapping is longer
  runtime.scan(self.view().size());
  return runtime.text(convert(self.view()), self.is_markup());
}

Value casefolded(Runtime& runtime, const Value& self, const Arguments& arguments) {
  (void)positional(runtime, arguments, "casefold", {}, 0);
  runtime.check_room(self.view().size(), 3);
  runtime.scan(self.view().size());
  return runtime.text(casefold(self.view()));
}

// ---- Questions ------------------------------------------------------------------------------------------------------

using Question = bool (*)(std::string_view);

template <Question ask>
Value answered(Runtime& runtime, const Value& self, const Arguments& arguments) {
  (void)positional(runtime, arguments, "the method", {}, 0);
  runtime.scan(self.view().size());
  return Value::boolean(ask(self.view()));
}

bool alnum(std::string_view text) {
  return all_of(text, [](char32_t c) { return is_alpha(c) || is_numeric(c); });
}
bool alpha(std::string_view text) {
  return all_of(text, is_alpha);
}
bool decimal(std::string_view text) {
  return all_of(text, is_decimal);
}
bool digit(std::string_view text) {
  return all_of(text, is_digit);
}
bool numeric(std::string_view text) {
  return all_of(text, is_numeric);
}
bool space(std::string_view text) {
  return all_of(text, is_space);
}
bool printable_text(std::string_view text) {
  return text.empty() || all_of(text, is_printable);
}
bool ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// ---- Searching ------------------------------------------------------------------------------------------------------

/// text[start:end] with its position; nothing if start lies behind the end.
struct Window {
  std::string_view text;
  std::size_t start = 0;  // in code points
};

std::optional<Window> window(Runtime& runtime, const Value& self, const Bound& bound, std::size_t start_at) {
  const Int size = static_cast<Int>(self.text().length);
  const auto index = [&](std::size_t i, Int fallback) {
    if (!bound.has(i) || bound[i].is_none()) return fallback;
    const Int value = bound.integer(i, 0);
    return value < 0 ? std::max<Int>(value + size, 0) : value;
  };
  const Int start = index(start_at, 0);
  const Int end = std::min(index(start_at + 1, size), size);
  if (start > end) return std::nullopt;
  runtime.walk(self.view().size());
  const std::string_view text = self.view();
  const bool plain = self.text().ascii();
  const auto offset = [&](Int i) {
    return plain ? static_cast<std::size_t>(i) : byte_offset(text, static_cast<std::size_t>(i));
  };
  const std::size_t first = offset(start);
  return Window{text.substr(first, offset(end) - first), static_cast<std::size_t>(start)};
}

/// The position of the first or last `needle` in code points, or −1.
Int position(Runtime& runtime, const Value& self, const Bound& bound, bool from_right) {
  const auto part = window(runtime, self, bound, 1);
  const std::string_view needle = bound.text(0, {});
  if (!part) return -1;
  const std::size_t found = from_right ? find_last_text(part->text, needle) : find_text(part->text, needle);
  if (found == std::string_view::npos) return -1;
  return static_cast<Int>(part->start + count_code_points(part->text.substr(0, found)));
}

template <bool from_right, bool required>
Value find_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = positional(runtime, arguments, "find", {"sub", "start", "end"}, 1);
  const Int found = position(runtime, self, bound, from_right);
  if (required && found < 0) runtime.fail("index: substring not found");
  return Value::integer(found);
}

Value count_text_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = positional(runtime, arguments, "count", {"sub", "start", "end"}, 1);
  const auto part = window(runtime, self, bound, 1);
  const std::string_view needle = bound.text(0, {});
  if (!part) return Value::integer(0);
  if (needle.empty()) return Value::integer(static_cast<Int>(count_code_points(part->text)) + 1);
  Int count = 0;
  for (std::size_t at = find_text(part->text, needle); at != std::string_view::npos;
       at = find_text(part->text, needle, at + needle.size()))
    ++count;
  return Value::integer(count);
}

template <bool at_end>
Value starts_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const std::string_view name = at_end ? "endswith" : "startswith";
  const Bound bound = positional(runtime, arguments, name, {"prefix", "start", "end"}, 1);
  const auto part = window(runtime, self, bound, 1);
  const auto matches = [&](const Value& affix) {
    if (!affix.is_text()) runtime.fail("{}: expected a string or a tuple of strings, not '{}'", name, type_name(affix));
    if (!part) return false;
    return at_end ? part->text.ends_with(affix.view()) : part->text.starts_with(affix.view());
  };
  if (!bound[0].is_tuple()) return Value::boolean(matches(bound[0]));
  for (const Value& affix : bound[0].sequence().items)
    if (matches(affix)) return Value::boolean(true);
  return Value::boolean(false);
}

// ---- Cutting --------------------------------------------------------------------------------------------------------

/// Collects the pieces of a text as values.
class Pieces {
 public:
  Pieces(Runtime& runtime, bool markup) : runtime_(runtime), markup_(markup) {}

  void operator()(std::string_view piece) {
    if (items_.size() == items_.capacity()) runtime_.check_room(2 * items_.size() + 1, sizeof(Value));
    items_.push_back(runtime_.text(piece, markup_));
  }

  [[nodiscard]] Value list(bool reversed) {
    if (reversed) std::reverse(items_.begin(), items_.end());
    return runtime_.list(std::move(items_));
  }

 private:
  Runtime& runtime_;
  bool markup_;
  std::vector<Value> items_;
};

template <bool from_right>
Value split_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "split", {"sep", "maxsplit"}, 0);
  const Int wanted = bound.integer(1, -1);
  const std::int64_t limit = wanted < 0 || wanted > INT64_MAX ? -1 : static_cast<std::int64_t>(wanted);
  const std::string_view text = self.view();
  runtime.scan(text.size());
  Pieces pieces(runtime, self.is_markup());
  if (!bound.has(0) || bound[0].is_none()) {
    from_right ? split_space_from_right(text, limit, std::ref(pieces)) : split_space(text, limit, std::ref(pieces));
    return pieces.list(from_right);
  }
  const std::string_view separator = bound.text(0, {});
  if (separator.empty()) runtime.fail("split: empty separator");
  from_right ? split_at_from_right(text, separator, limit, std::ref(pieces))
             : split_at(text, separator, limit, std::ref(pieces));
  return pieces.list(from_right);
}

Value splitlines_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "splitlines", {"keepends"}, 0);
  runtime.scan(self.view().size());
  Pieces pieces(runtime, self.is_markup());
  split_lines(self.view(), bound.truth(0, false), std::ref(pieces));
  return pieces.list(false);
}

template <bool from_right>
Value partition_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = positional(runtime, arguments, "partition", {"sep"}, 1);
  const Value separator = text_argument(runtime, self, bound, 0);
  if (separator.view().empty()) runtime.fail("partition: empty separator");
  const std::string_view text = self.view();
  runtime.walk(text.size());
  const std::size_t found = from_right ? find_last_text(text, separator.view()) : find_text(text, separator.view());
  const auto piece = [&](std::string_view view) { return runtime.text(view, self.is_markup()); };
  if (found != std::string_view::npos)
    return runtime.tuple(
        {piece(text.substr(0, found)), piece(separator.view()), piece(text.substr(found + separator.view().size()))});
  if (from_right) return runtime.tuple({piece({}), piece({}), piece(text)});
  return runtime.tuple({piece(text), piece({}), piece({})});
}

template <bool left, bool right>
Value strip_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = positional(runtime, arguments, "strip", {"chars"}, 0);
  std::string_view text = self.view();
  runtime.scan(text.size());
  if (!bound.has(0) || bound[0].is_none()) {
    if (left) text = trim_left(text);
    if (right) text = trim_right(text);
  } else {
    const Value set = text_argument(runtime, self, bound, 0);
    runtime.scan(set.view().size() * 8);
    if (left) text = strip_left(text, set.view());
    if (right) text = strip_right(text, set.view());
  }
  return runtime.text(text, self.is_markup());
}

template <bool at_end>
Value remove_affix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = positional(runtime, arguments, "removeprefix", {"prefix"}, 1);
  std::string_view text = self.view();
  const std::string_view affix = bound.text(0, {});
  if (at_end && text.ends_with(affix)) text.remove_suffix(affix.size());
  if (!at_end && text.starts_with(affix)) text.remove_prefix(affix.size());
  return runtime.text(text);
}

// ---- Editing --------------------------------------------------------------------------------------------------------

Value replace_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = positional(runtime, arguments, "replace", {"old", "new", "count"}, 2);
  const Value old = text_argument(runtime, self, bound, 0);
  const Value replacement = text_argument(runtime, self, bound, 1);
  return replace_text(runtime, self, old.view(), replacement.view(), bound.integer(2, -1));
}

Value join_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = positional(runtime, arguments, "join", {"iterable"}, 1);
  std::vector<Value> items = to_vector(runtime, bound[0]);
  if (self.is_markup())
    for (Value& item : items) item = escape(runtime, item);
  return join_text(runtime, self, items);
}

template <Align align>
Value pad_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = positional(runtime, arguments, "center", {"width", "fillchar"}, 1);
  const Value fill = bound.has(1) ? text_argument(runtime, self, bound, 1) : runtime.text(" ");
  if (fill.text().length != 1) runtime.fail("the fill character must be exactly one character long");
  return pad_text(runtime, self, bound.integer(0, 0), fill.view(), align);
}

Value zfill_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = positional(runtime, arguments, "zfill", {"width"}, 1);
  const std::string_view text = self.view();
  const bool signed_text = text.starts_with('+') || text.starts_with('-');
  const Value digits = runtime.text(text.substr(signed_text ? 1 : 0), self.is_markup());
  const Value padded = pad_text(runtime, digits, bound.integer(0, 0) - (signed_text ? 1 : 0), "0", Align::right);
  if (!signed_text) return padded;
  Buffer out(runtime);
  out.append(text[0]);
  out.append(padded.view());
  return out.finish(self.is_markup());
}

Value expandtabs_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "expandtabs", {"tabsize"}, 0);
  const Int size = std::min<Int>(bound.integer(0, 8), INT32_MAX);
  const std::string_view text = self.view();
  Buffer out(runtime);
  Int column = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t c = next_code_point(text, at);
    if (c == '\t') {
      const Int spaces = size > 0 ? size - column % size : 0;
      out.append_repeated(" ", static_cast<std::uint64_t>(spaces));
      column += spaces;
    } else {
      out.append(text.substr(start, at - start));
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  }
  return out.finish(self.is_markup());
}

Value format_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return format_braces(runtime, self, arguments);
}

Value format_map_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Bound bound = positional(runtime, arguments, "format_map", {"mapping"}, 1);
  require_defined(runtime, bound[0]);
  if (!bound[0].is_dict()) runtime.fail("format_map needs a dict, not '{}'", type_name(bound[0]));
  Arguments named;
  for (const auto& [key, value] : bound[0].dict().entries())
    if (key.is_text()) named.named.emplace_back(std::string(key.view()), value);
  return format_braces(runtime, self, named);
}

Value unsupported(Runtime& runtime, const Value&, const Arguments&) {
  runtime.fail("this method of str is not supported in templates: encode, maketrans and translate need other types");
}

constexpr Method kMethods[] = {
    {"capitalize", converted<capitalize>},
    {"casefold", casefolded},
    {"center", pad_method<Align::center>},
    {"count", count_text_method},
    {"encode", unsupported},
    {"endswith", starts_method<true>},
    {"expandtabs", expandtabs_method},
    {"find", find_method<false, false>},
    {"format", format_method},
    {"format_map", format_map_method},
    {"index", find_method<false, true>},
    {"isalnum", answered<alnum>},
    {"isalpha", answered<alpha>},
    {"isascii", answered<ascii>},
    {"isdecimal", answered<decimal>},
    {"isdigit", answered<digit>},
    {"isidentifier", answered<is_identifier>},
    {"islower", answered<is_lower_text>},
    {"isnumeric", answered<numeric>},
    {"isprintable", answered<printable_text>},
    {"isspace", answered<space>},
    {"istitle", answered<is_title_text>},
    {"isupper", answered<is_upper_text>},
    {"join", join_method},
    {"ljust", pad_method<Align::left>},
    {"lower", converted<lower>},
    {"lstrip", strip_method<true, false>},
    {"maketrans", unsupported},
    {"partition", partition_method<false>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"replace", replace_method},
    {"rfind", find_method<true, false>},
    {"rindex", find_method<true, true>},
    {"rjust", pad_method<Align::right>},
    {"rpartition", partition_method<true>},
    {"rsplit", split_method<true>},
    {"rstrip", strip_method<false, true>},
    {"split", split_method<false>},
    {"splitlines", splitlines_method},
    {"startswith", starts_method<false>},
    {"strip", strip_method<true, true>},
    {"swapcase", converted<swapcase>},
    {"title", converted<title>},
    {"translate", unsupported},
    {"upper", converted<upper>},
    {"zfill", zfill_method},
};

}  // namespace

std::span<const Method> text_methods() {
  return kMethods;
}

}  // namespace candor::jinja
