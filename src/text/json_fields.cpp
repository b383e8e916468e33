#include "text/json_fields.h"

#include "base/error.h"
#include "text/unicode.h"

namespace candor::text {
namespace {

/// A root's path ends in ": ", which is no part of its name.
std::string_view place(std::string_view path) {
  return path.ends_with(": ") ? path.substr(0, path.size() - 2) : path;
}

}  // namespace

void JsonField::require(bool condition, std::string_view expected) const {
  if (!condition) fail(ErrorCode::format, "{}: expected {}, found {}", place(path_), expected, value_->type_name());
}

std::optional<JsonField> JsonField::find(const char* name) const {
  require(value_->is_object(), "an object");
  const auto member = value_->find(name);
  if (member == value_->end() || member->is_null()) return std::nullopt;
  return JsonField(*member, fmt::format("{}{}{}", path_, path_.ends_with(' ') ? "" : ".", name));
}

JsonField JsonField::at(const char* name) const {
  auto member = find(name);
  if (!member) fail(ErrorCode::format, "{}: the field \"{}\" is missing", place(path_), name);
  return std::move(*member);
}

std::vector<JsonField> JsonField::elements() const {
  require(value_->is_array(), "an array");
  std::vector<JsonField> fields;
  fields.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) fields.emplace_back((*value_)[i], fmt::format("{}[{}]", path_, i));
  return fields;
}

const std::string& JsonField::string() const {
  require(value_->is_string(), "a string");
  return value_->get_ref<const std::string&>();
}

bool JsonField::boolean() const {
  require(value_->is_boolean(), "true or false");
  return value_->get<bool>();
}

std::uint64_t JsonField::integer() const {
  require(value_->is_number_unsigned(), "a non-negative integer");
  return value_->get<std::uint64_t>();
}

double JsonField::number() const {
  require(value_->is_number(), "a number");
  return value_->get<double>();
}

char32_t JsonField::character() const {
  const std::string& text = string();
  if (unicode::length(text) != 1)
    fail(ErrorCode::format, "{}: expected one character, found \"{}\"", place(path_), printable(text));
  return unicode::first(text).value;
}

bool JsonField::boolean_or(const char* name, bool fallback) const {
  const auto member = find(name);
  return member ? member->boolean() : fallback;
}

std::string JsonField::string_or_empty(const char* name) const {
  const auto member = find(name);
  return member ? member->string() : std::string();
}

}  // namespace candor::text
