// The attribute argument of filters like map, sort and groupby: "address.city", "scores.0", or an index.
#pragma once

#include <string_view>
#include <vector>

#include "text/jinja/runtime.h"

namespace candor::jinja {

class AttributePath {
 public:
  /// An empty path, which leaves elements as they are.
  AttributePath() = default;
  /// From a string with dots, or any other key. None is the empty path.
  AttributePath(Runtime& runtime, const Value& attribute);

  /// The attribute of `item`; an undefined step is replaced by `fallback` unless that is None.
  [[nodiscard]] Value get(Runtime& runtime, const Value& item, const Value& fallback = Value::none()) const;

 private:
  std::vector<Value> keys_;
};

/// What strings are compared by where case does not count.
[[nodiscard]] Value ignore_case(Runtime& runtime, const Value& value);

}  // namespace candor::jinja
