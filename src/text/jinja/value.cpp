#include "text/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "text/jinja/number.h"
#include "text/jinja/runtime.h"
#include "text/jinja/unicode.h"

namespace candor::jinja {
namespace {

/// The rank of a key's type in the order of keys; numbers share one.
int key_rank(const Value& value) {
  return value.is_number() ? 3 : static_cast<int>(value.storage().index());
}

/// -1, 0 or 1. NaNs are one key, as the identical object is in Python.
int compare_number_keys(const Value& a, const Value& b) {
  const bool a_nan = a.is<double>() && std::isnan(std::get<double>(a.storage()));
  const bool b_nan = b.is<double>() && std::isnan(std::get<double>(b.storage()));
  if (a_nan || b_nan) return static_cast<int>(a_nan) - static_cast<int>(b_nan);
  const auto order = compare_numbers(a, b);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

int compare_keys(const Value& a, const Value& b) {
  if (const int rank = key_rank(a) - key_rank(b); rank != 0) return rank;
  if (a.is_number()) return compare_number_keys(a, b);
  if (a.is_text()) return a.view().compare(b.view());
  if (a.is<SequencePtr>()) {
    const auto& x = a.sequence().items;
    const auto& y = b.sequence().items;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (const int order = compare_keys(x[i], y[i]); order != 0) return order;
    return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
  }
  if (a.is<Object*>()) return a.object() < b.object() ? -1 : a.object() > b.object() ? 1 : 0;
  if (a.is<RangePtr>()) {
    const Range& x = *std::get<RangePtr>(a.storage());
    const Range& y = *std::get<RangePtr>(b.storage());
    const auto key = [](const Range& r) {
      return std::tuple(r.length, r.length > 0 ? r.start : 0, r.length > 1 ? r.step : 0);
    };
    return key(x) < key(y) ? -1 : key(y) < key(x) ? 1 : 0;
  }
  return 0;  // None is None; undefined values are equal to each other
}

}  // namespace

Value Value::constant_text(std::string bytes) {
  const std::size_t length = count_code_points(bytes);
  return Value(Storage(std::make_shared<const Text>(Text{std::move(bytes), length, false, {}})));
}

bool Value::is_list() const {
  return is<SequencePtr>() && sequence().kind == SequenceKind::list;
}
bool Value::is_tuple() const {
  return is<SequencePtr>() && sequence().kind != SequenceKind::list;
}

bool KeyLess::operator()(const Value& a, const Value& b) const {
  return compare_keys(a, b) < 0;
}

std::size_t Dict::position(const Value& key) const {
  if (entries_.size() >= kIndexFrom) {
    const auto found = index_.find(key);
    return found == index_.end() ? entries_.size() : found->second;
  }
  std::size_t at = 0;
  while (at < entries_.size() && compare_keys(entries_[at].first, key) != 0) ++at;
  return at;
}

const Value* Dict::find(const Value& key) const {
  const std::size_t at = position(key);
  return at == entries_.size() ? nullptr : &entries_[at].second;
}

const Value* Dict::find(std::string_view key) const {
  if (entries_.size() < kIndexFrom) {
    for (const auto& [name, value] : entries_)
      if (name.is_text() && name.view() == key) return &value;
    return nullptr;
  }
  return find(Value::constant_text(std::string(key)));
}

void Dict::set(Value key, Value value) {
  const std::size_t at = position(key);
  if (at < entries_.size()) {
    entries_[at].second = std::move(value);
    return;
  }
  if (entries_.size() >= kIndexFrom) index_.emplace(key, at);
  entries_.emplace_back(std::move(key), std::move(value));
  if (entries_.size() == kIndexFrom)
    for (std::size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].first, i);
}

Dict Dict::copy() const {
  Dict result;
  result.entries_ = entries_;
  result.index_ = index_;
  return result;
}

Value Object::call(Runtime& runtime, Arguments) {
  runtime.fail("'{}' object is not callable", type_name());
}

std::optional<Value> Object::next(Runtime& runtime) {
  runtime.fail("'{}' object is not iterable", type_name());
}

std::string_view type_name(const Value& value) {
  if (value.is_undefined() || value.is_missing()) return "Undefined";
  if (value.is_none()) return "NoneType";
  if (value.is<bool>()) return "bool";
  if (value.is<Int>()) return "int";
  if (value.is<double>()) return "float";
  if (value.is_text()) return value.is_markup() ? "Markup" : "str";
  if (value.is<SequencePtr>()) return value.is_list() ? "list" : "tuple";
  if (value.is_dict()) return "dict";
  if (value.is<RangePtr>()) return "range";
  if (value.is<DictViewPtr>()) {
    switch (std::get<DictViewPtr>(value.storage())->kind) {
      case DictView::Kind::keys:
        return "dict_keys";
      case DictView::Kind::values:
        return "dict_values";
      case DictView::Kind::items:
        return "dict_items";
    }
  }
  return value.object()->type_name();
}

std::uint32_t value_depth(const Value& value) {
  if (value.is<SequencePtr>()) return value.sequence().depth;
  if (value.is_dict()) return value.dict().depth;
  if (value.is<DictViewPtr>()) return value_depth(std::get<DictViewPtr>(value.storage())->dict);
  return 0;
}

}  // namespace candor::jinja
