// The variable `loop` of a for loop.
#pragma once

#include <functional>

#include "text/jinja/iterate.h"

namespace candor::jinja {

class LoopObject : public Object {
 public:
  /// Renders the loop's body for other elements; absent unless the loop is recursive.
  using Recurse = std::function<Value(const Value& iterable, std::uint32_t depth)>;

  LoopObject(Runtime& runtime, Value iterable, Recurse recurse, std::uint32_t depth)
      : iterable_(iterable), cursor_(runtime, std::move(iterable)), recurse_(std::move(recurse)), depth_(depth) {}

  /// The element of the next iteration.
  [[nodiscard]] std::optional<Value> advance(Runtime& runtime);

  [[nodiscard]] std::string_view type_name() const override { return "LoopContext"; }
  [[nodiscard]] std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  [[nodiscard]] bool callable() const override { return true; }
  [[nodiscard]] Value call(Runtime& runtime, Arguments arguments) override;
  [[nodiscard]] std::optional<std::size_t> length(Runtime& runtime) override;
  [[nodiscard]] std::optional<std::string> print(Runtime& runtime) override;
  [[nodiscard]] bool iterable() const override { return true; }
  [[nodiscard]] std::optional<Value> next(Runtime& runtime) override;

  [[nodiscard]] Value cycle(Runtime& runtime, const Arguments& arguments) const;
  [[nodiscard]] bool changed(Runtime& runtime, const Arguments& arguments);

 private:
  [[nodiscard]] const std::optional<Value>& peek(Runtime& runtime);

  Value iterable_;
  Cursor cursor_;
  Recurse recurse_;
  std::uint32_t depth_;
  std::int64_t index0_ = -1;
  std::optional<std::size_t> length_;
  std::optional<Value> after_;  // the next element, if it was looked at
  Value current_;
  Value before_;
  Value last_changed_;
};

}  // namespace candor::jinja
