// Going through the elements of a value, as Python's iter() and next() do.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "text/jinja/runtime.h"

namespace candor::jinja {

[[nodiscard]] bool is_iterable(const Value& value);

/// The elements of one value, in order. Holds the value.
class Cursor {
 public:
  /// Fails if the value cannot be iterated. An undefined value has no elements.
  Cursor(Runtime& runtime, Value value);

  [[nodiscard]] std::optional<Value> next(Runtime& runtime);

 private:
  Value value_;
  std::size_t at_ = 0;
};

/// list(value).
[[nodiscard]] std::vector<Value> to_vector(Runtime& runtime, const Value& value);

/// An iterator that a function makes: what Python's generators and reversed() are here. Its elements come once.
class Generator : public Object {
 public:
  static constexpr std::size_t kHeldOutside = 512;  // what the function captures
  using Next = std::function<std::optional<Value>(Runtime&)>;

  Generator(std::string_view type, Next next) : type_(type), next_(std::move(next)) {}

  [[nodiscard]] std::string_view type_name() const override { return type_; }
  [[nodiscard]] bool iterable() const override { return true; }
  [[nodiscard]] std::optional<Value> next(Runtime& runtime) override;

 private:
  std::string_view type_;
  Next next_;
  bool running_ = false;
  bool finished_ = false;
};

}  // namespace candor::jinja
