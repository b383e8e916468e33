// Tests: value is name(arguments).
#pragma once

#include <string_view>

#include "text/jinja/runtime.h"

namespace candor::jinja {

struct TestEntry {
  std::string_view name;
  bool (*run)(Runtime& runtime, const Value& subject, const Arguments& arguments);
};

[[nodiscard]] const TestEntry* find_test(std::string_view name);

}  // namespace candor::jinja
