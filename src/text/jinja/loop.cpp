#include "text/jinja/loop.h"

#include "text/jinja/attribute.h"
#include "text/jinja/binding.h"
#include "text/jinja/operators.h"

namespace candor::jinja {

std::optional<Value> LoopObject::advance(Runtime& runtime) {
  std::optional<Value> value = std::exchange(after_, std::nullopt);
  if (!value) value = cursor_.next(runtime);
  if (!value) return std::nullopt;
  ++index0_;
  before_ = std::move(current_);
  current_ = *value;
  return value;
}

const std::optional<Value>& LoopObject::peek(Runtime& runtime) {
  if (!after_) after_ = cursor_.next(runtime);
  return after_;
}

/// The number of elements. What has no length is read to its end.
std::optional<std::size_t> LoopObject::length(Runtime& runtime) {
  if (length_) return length_;
  length_ = jinja::length(runtime, iterable_);
  if (!length_) {
    const Value rest = runtime.list(to_vector(
        runtime, Value::object(runtime.make<Generator>("iterator", [this](Runtime& r) { return cursor_.next(r); }))));
    cursor_ = Cursor(runtime, rest);
    length_ = rest.sequence().items.size() + static_cast<std::size_t>(index0_ + 1) + (after_ ? 1 : 0);
  }
  return length_;
}

std::optional<Value> LoopObject::attribute(Runtime& runtime, std::string_view name) {
  const auto size = [&] { return static_cast<Int>(*length(runtime)); };
  if (name == "index") return Value::integer(index0_ + 1);
  if (name == "index0") return Value::integer(index0_);
  if (name == "first") return Value::boolean(index0_ == 0);
  if (name == "last") return Value::boolean(!peek(runtime));
  if (name == "length") return Value::integer(size());
  if (name == "revindex") return Value::integer(size() - index0_);
  if (name == "revindex0") return Value::integer(size() - index0_ - 1);
  if (name == "depth") return Value::integer(depth_ + 1);
  if (name == "depth0") return Value::integer(depth_);
  if (name == "previtem") return index0_ == 0 ? runtime.undefined("there is no previous item") : before_;
  if (name == "nextitem") {
    const auto& after = peek(runtime);
    return after ? *after : runtime.undefined("there is no next item");
  }
  const auto method = [&](Function::Run run) {
    return Value::object(runtime.make<Function>(Value::object(this), run));
  };
  if (name == "cycle")
    return method([](Runtime& r, const Value& self, const Arguments& arguments) {
      return static_cast<LoopObject*>(self.object())->cycle(r, arguments);
    });
  if (name == "changed")
    return method([](Runtime& r, const Value& self, const Arguments& arguments) {
      return Value::boolean(static_cast<LoopObject*>(self.object())->changed(r, arguments));
    });
  return std::nullopt;
}

Value LoopObject::call(Runtime& runtime, Arguments arguments) {
  const Bound bound = bind(runtime, arguments, "loop", {"iterable"}, 1);
  if (!recurse_) runtime.fail("the loop must have the 'recursive' marker to be called recursively");
  return recurse_(bound[0], depth_ + 1);
}

std::optional<std::string> LoopObject::print(Runtime& runtime) {
  return fmt::format("<LoopContext {}/{}>", index0_ + 1, *length(runtime));
}

std::optional<Value> LoopObject::next(Runtime& runtime) {
  auto value = advance(runtime);
  if (!value) return std::nullopt;
  return runtime.pair(std::move(*value), Value::object(this));
}

Value LoopObject::cycle(Runtime& runtime, const Arguments& arguments) const {
  if (!arguments.named.empty()) runtime.fail("loop.cycle takes no keyword arguments");
  if (arguments.positional.empty()) runtime.fail("loop.cycle needs at least one value");
  return arguments.positional[static_cast<std::size_t>(index0_) % arguments.positional.size()];
}

bool LoopObject::changed(Runtime& runtime, const Arguments& arguments) {
  if (!arguments.named.empty()) runtime.fail("loop.changed takes no keyword arguments");
  Value values = runtime.tuple(arguments.positional);
  if (!last_changed_.is_missing() && equal(runtime, last_changed_, values)) return false;
  last_changed_ = std::move(values);
  return true;
}

}  // namespace candor::jinja
