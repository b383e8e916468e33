// Filters: value|name(arguments). The table has those of Jinja2 that make sense in a chat template; the others are
// known by name and fail when they are reached.
#pragma once

#include <string_view>

#include "text/jinja/runtime.h"

namespace candor::jinja {

struct FilterEntry {
  std::string_view name;
  Value (*run)(Runtime& runtime, const Value& subject, const Arguments& arguments);
};

[[nodiscard]] const FilterEntry* find_filter(std::string_view name);

}  // namespace candor::jinja
