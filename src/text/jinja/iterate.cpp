#include "text/jinja/iterate.h"

#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"

namespace candor::jinja {

bool is_iterable(const Value& value) {
  if (Object* object = value.object()) return object->iterable();
  return value.is_undefined() || value.is_text() || value.is<SequencePtr>() || value.is_dict() ||
         value.is<RangePtr>() || value.is<DictViewPtr>();
}

Cursor::Cursor(Runtime& runtime, Value value) : value_(std::move(value)) {
  if (!is_iterable(value_)) runtime.fail("'{}' object is not iterable", type_name(value_));
}

std::optional<Value> Cursor::next(Runtime& runtime) {
  runtime.step();
  if (value_.is_undefined()) return std::nullopt;
  if (Object* object = value_.object()) return object->next(runtime);
  if (value_.is_text()) {
    const std::string_view text = value_.view();
    if (at_ >= text.size()) return std::nullopt;
    const std::size_t start = at_;
    (void)next_code_point(text, at_);
    return runtime.text(text.substr(start, at_ - start));
  }
  if (value_.is<SequencePtr>()) {
    const auto& items = value_.sequence().items;
    if (at_ >= items.size()) return std::nullopt;
    return items[at_++];
  }
  if (value_.is<RangePtr>()) {
    const Range& range = *std::get<RangePtr>(value_.storage());
    if (at_ >= range.length) return std::nullopt;
    return range.at(at_++);
  }
  const bool is_view = value_.is<DictViewPtr>();
  const Value& owner = is_view ? std::get<DictViewPtr>(value_.storage())->dict : value_;
  const auto kind = is_view ? std::get<DictViewPtr>(value_.storage())->kind : DictView::Kind::keys;
  const auto& entries = owner.dict().entries();
  if (at_ >= entries.size()) return std::nullopt;
  const auto& [key, element] = entries[at_++];
  switch (kind) {
    case DictView::Kind::keys:
      return key;
    case DictView::Kind::values:
      return element;
    case DictView::Kind::items:
      break;
  }
  return runtime.pair(key, element);
}

std::vector<Value> to_vector(Runtime& runtime, const Value& value) {
  std::vector<Value> items;
  Cursor cursor(runtime, value);
  while (auto item = cursor.next(runtime)) {
    if (items.size() == items.capacity()) runtime.check_room(2 * items.size() + 1, sizeof(Value));
    items.push_back(std::move(*item));
  }
  return items;
}

std::optional<Value> Generator::next(Runtime& runtime) {
  if (finished_) return std::nullopt;
  if (running_) runtime.fail("an iterator is already being iterated");
  const Runtime::Nested nested(runtime);
  running_ = true;
  auto value = next_(runtime);
  running_ = false;
  finished_ = !value;
  return value;
}

}  // namespace candor::jinja
