#include "text/jinja/filters.h"

#include "text/jinja/format.h"
#include "text/jinja/methods.h"

namespace candor::jinja {
const FilterEntry* find_filter(std::string_view) {
  return nullptr;
}
Value format_percent(Runtime& runtime, const Value&, const Value&) {
  runtime.fail("% on strings is not done yet");
}
std::span<const Method> text_methods() {
  return {};
}
std::span<const Method> dict_methods() {
  return {};
}
std::span<const Method> list_methods() {
  return {};
}
std::span<const Method> tuple_methods() {
  return {};
}
std::span<const Method> range_methods() {
  return {};
}
std::span<const Method> integer_methods() {
  return {};
}
std::span<const Method> float_methods() {
  return {};
}
}  // namespace candor::jinja
