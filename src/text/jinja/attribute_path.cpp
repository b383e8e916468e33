#include "text/jinja/attribute_path.h"

#include "text/jinja/attribute.h"
#include "text/jinja/number.h"
#include "text/jinja/text_class.h"
#include "text/jinja/text_split.h"
#include "text/jinja/unicode.h"

namespace candor::jinja {

AttributePath::AttributePath(Runtime& runtime, const Value& attribute) {
  if (attribute.is_none()) return;
  if (!attribute.is_text()) {
    keys_.push_back(attribute);
    return;
  }
  split_at(attribute.view(), ".", -1, [&](std::string_view part) {
    if (!all_of(part, is_digit)) return keys_.push_back(runtime.text(part));
    bool too_large = false;
    const auto index = parse_integer(part, 10, too_large);
    if (!index) runtime.fail("'{}' is not an index", printable(part));
    keys_.push_back(Value::integer(*index));
  });
}

Value AttributePath::get(Runtime& runtime, const Value& item, const Value& fallback) const {
  Value value = item;
  for (const Value& key : keys_) {
    value = get_item(runtime, value, key);
    if (value.is_undefined() && !fallback.is_none()) value = fallback;
  }
  return value;
}

Value ignore_case(Runtime& runtime, const Value& value) {
  if (!value.is_text()) return value;
  runtime.scan(value.view().size());
  return runtime.text(lower(value.view()), value.is_markup());
}

}  // namespace candor::jinja
