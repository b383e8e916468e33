#include "text/jinja/globals.h"

#include <vector>

#include "text/jinja/attribute.h"
#include "text/jinja/binding.h"
#include "text/jinja/clock.h"
#include "text/jinja/iterate.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace candor::jinja {
namespace {

constexpr std::size_t kMaxRange = 100'000;  // of Jinja2's sandbox

Value make_range(Runtime& runtime, const Value&, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "range", {"start", "stop", "step"}, 1, Naming::positional_only);
  Range range;
  range.start = bound.has(1) ? bound.integer(0, 0) : 0;
  range.stop = bound.has(1) ? bound.integer(1, 0) : bound.integer(0, 0);
  range.step = bound.integer(2, 1);
  if (range.step == 0) runtime.fail("range() step must not be zero");
  constexpr Int kFar = Int{1} << 100;
  const auto near = [](Int value) { return value > -kFar && value < kFar; };
  if (!near(range.start) || !near(range.stop) || !near(range.step))
    runtime.fail("range() with numbers that are too large");
  const Int distance = range.step > 0 ? range.stop - range.start : range.start - range.stop;
  const Int stride = range.step > 0 ? range.step : -range.step;
  const Int count = distance <= 0 ? 0 : (distance + stride - 1) / stride;
  if (count > static_cast<Int>(kMaxRange)) runtime.fail("range too big: more than {} numbers", kMaxRange);
  range.length = static_cast<std::size_t>(count);
  return Value(Value::Storage(std::make_shared<const Range>(range)));
}

/// What dict() makes of its arguments.
Dict build_dict(Runtime& runtime, const Arguments& arguments) {
  Dict dict;
  if (arguments.positional.size() > 1) runtime.fail("dict takes at most 1 positional argument");
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is_dict()) {
      dict = source.dict().copy();
    } else {
      Cursor cursor(runtime, source);
      while (const auto item = cursor.next(runtime)) {
        const std::vector<Value> pair = to_vector(runtime, *item);
        if (pair.size() != 2)
          runtime.fail("dict: an element of the sequence has length {}; 2 is required", pair.size());
        require_hashable(runtime, pair[0]);
        dict.set(pair[0], pair[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) dict.set(runtime.text(name), value);
  return dict;
}

Value make_dict(Runtime& runtime, const Value&, const Arguments& arguments) {
  return runtime.dict(build_dict(runtime, arguments));
}

Value make_namespace(Runtime& runtime, const Value&, const Arguments& arguments) {
  Dict attributes = build_dict(runtime, arguments);
  runtime.charge_dict(attributes);
  return Value::object(runtime.make<Namespace>(std::move(attributes)));
}

Value raise_exception(Runtime& runtime, const Value&, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "raise_exception", {"message"}, 1);
  runtime.fail_with(std::string(to_text(runtime, bound[0]).view()));
}

Value strftime_now(Runtime& runtime, const Value&, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "strftime_now", {"format"}, 1);
  const auto text = format_time(runtime.now(), std::string(bound.text(0, {})));
  if (!text) runtime.fail("strftime_now: the format is invalid or its result too long");
  return runtime.text(*text);
}

Value lipsum(Runtime& runtime, const Value&, const Arguments&) {
  runtime.fail("lipsum is not supported: its text is random");
}

/// cycler(a, b, …).
class Cycler : public Object {
 public:
  /// `items` is a tuple.
  explicit Cycler(Value items) : items_(std::move(items)) {}

  [[nodiscard]] std::string_view type_name() const override { return "Cycler"; }

  [[nodiscard]] std::optional<Value> attribute(Runtime& runtime, std::string_view name) override {
    if (name == "current") return current();
    if (name == "pos") return Value::integer(static_cast<Int>(position_));
    if (name == "items") return items_;
    if (name == "next") return Value::object(runtime.make<Function>(Value::object(this), next_item));
    if (name == "reset") return Value::object(runtime.make<Function>(Value::object(this), reset));
    return std::nullopt;
  }

 private:
  [[nodiscard]] Value current() const { return items_.sequence().items[position_]; }

  static Value next_item(Runtime& runtime, const Value& self, const Arguments& arguments) {
    (void)bind(runtime, arguments, "next", {}, 0);
    auto& cycler = *static_cast<Cycler*>(self.object());
    Value item = cycler.current();
    cycler.position_ = (cycler.position_ + 1) % cycler.items_.sequence().items.size();
    return item;
  }

  static Value reset(Runtime& runtime, const Value& self, const Arguments& arguments) {
    (void)bind(runtime, arguments, "reset", {}, 0);
    static_cast<Cycler*>(self.object())->position_ = 0;
    return Value::none();
  }

  Value items_;
  std::size_t position_ = 0;
};

Value make_cycler(Runtime& runtime, const Value&, const Arguments& arguments) {
  if (!arguments.named.empty()) runtime.fail("cycler takes no keyword arguments");
  if (arguments.positional.empty()) runtime.fail("cycler needs at least one item");
  return Value::object(runtime.make<Cycler>(runtime.tuple(arguments.positional)));
}

/// joiner(separator): nothing at the first call, then the separator.
class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}

  [[nodiscard]] std::string_view type_name() const override { return "Joiner"; }
  [[nodiscard]] bool callable() const override { return true; }

  [[nodiscard]] Value call(Runtime& runtime, Arguments arguments) override {
    (void)bind(runtime, arguments, "joiner", {}, 0);
    return std::exchange(used_, true) ? separator_ : runtime.text("");
  }

  [[nodiscard]] std::optional<Value> attribute(Runtime&, std::string_view name) override {
    if (name == "sep") return separator_;
    if (name == "used") return Value::boolean(used_);
    return std::nullopt;
  }

 private:
  Value separator_;
  bool used_ = false;
};

Value make_joiner(Runtime& runtime, const Value&, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "joiner", {"sep"}, 0);
  return Value::object(runtime.make<Joiner>(bound.or_else(0, runtime.text(", "))));
}

}  // namespace

std::optional<Value> Namespace::attribute(Runtime&, std::string_view name) {
  const Value* found = attributes_.find(name);
  if (found == nullptr) return std::nullopt;
  return *found;
}

std::optional<std::string> Namespace::print(Runtime& runtime) {
  if (printing_) return "<Namespace {...}>";
  printing_ = true;
  Buffer out(runtime);
  out.append("<Namespace ");
  print_repr(runtime, out, runtime.dict(attributes_.copy()));
  out.append('>');
  printing_ = false;
  return out.take();
}

void Namespace::set(Runtime& runtime, std::string_view name, Value value) {
  attributes_.set(runtime.text(name), std::move(value));
}

Dict make_globals(Runtime& runtime) {
  Dict globals;
  const auto add = [&](const char* name, Function::Run run) {
    globals.set(runtime.text(name), Value::object(runtime.make<Function>(Value::none(), run)));
  };
  add("range", make_range);
  add("dict", make_dict);
  add("namespace", make_namespace);
  add("cycler", make_cycler);
  add("joiner", make_joiner);
  add("lipsum", lipsum);
  add("raise_exception", raise_exception);
  add("strftime_now", strftime_now);
  return globals;
}

}  // namespace candor::jinja
