#include "text/jinja/runtime.h"

#include <algorithm>

#include "text/jinja/unicode.h"

namespace candor::jinja {
namespace {

constexpr std::uint64_t kAllocation = 32;  // what the allocator and the reference count add to a value
constexpr std::uint64_t kDictEntry = 192;  // an entry, with its place in the index

}  // namespace

Runtime::~Runtime() {
  // Values that objects hold give their charges back to memory_, which is declared before them.
  objects_.clear();
}

void Runtime::fail_with(const std::string& message) const {
  candor::fail(ErrorCode::text, "{}, line {}: {}", label_, line_, message);
}

void Runtime::fail_steps() const {
  fail("the template takes more than {} steps; it loops for too long", limits::template_steps);
}

void Runtime::fail_depth() const {
  fail("evaluation is nested deeper than {} levels; a macro or loop calls itself too often",
       limits::template_recursion);
}

Charge Runtime::charge(std::uint64_t bytes) {
  check_room(bytes, 1);
  memory_.used += bytes;
  return Charge(&memory_, bytes);
}

void Runtime::check_room(std::uint64_t count, std::uint64_t size) const {
  const std::uint64_t room = limits::template_memory - std::min(memory_.used, limits::template_memory);
  if (count > room / size) fail("the template needs more than {} bytes of memory", limits::template_memory);
}

Value Runtime::text(std::string bytes, bool markup) {
  walk(bytes.size());
  Charge held = charge(bytes.size() + sizeof(Text) + kAllocation);
  const std::size_t length = count_code_points(bytes);
  return Value(Value::Storage(std::make_shared<const Text>(Text{std::move(bytes), length, markup, std::move(held)})));
}

Value Runtime::sequence(std::vector<Value> items, SequenceKind kind) {
  step(1 + items.size() / 4);
  Charge held = charge(items.capacity() * sizeof(Value) + sizeof(Sequence) + kAllocation);
  std::uint32_t depth = 0;
  for (const Value& item : items) depth = std::max(depth, value_depth(item));
  if (depth >= limits::template_value_depth)
    fail("a value is nested deeper than {} levels", limits::template_value_depth);
  return Value(
      Value::Storage(std::make_shared<const Sequence>(Sequence{std::move(items), kind, depth + 1, std::move(held)})));
}

Value Runtime::pair(Value first, Value second) {
  std::vector<Value> items;
  items.reserve(2);
  items.push_back(std::move(first));
  items.push_back(std::move(second));
  return tuple(std::move(items));
}

void Runtime::charge_dict(Dict& dict) {
  step(1 + dict.size());
  dict.charge = charge(dict.size() * kDictEntry + sizeof(Dict) + kAllocation);
}

Value Runtime::dict(Dict dict) {
  charge_dict(dict);
  std::uint32_t depth = 0;
  for (const auto& [key, value] : dict.entries()) depth = std::max({depth, value_depth(key), value_depth(value)});
  if (depth >= limits::template_value_depth)
    fail("a value is nested deeper than {} levels", limits::template_value_depth);
  dict.depth = depth + 1;
  return Value(Value::Storage(std::make_shared<const Dict>(std::move(dict))));
}

Value Runtime::undefined(std::string message) const {
  return Value(Value::Storage(std::make_shared<const UndefinedInfo>(UndefinedInfo{std::move(message)})));
}

Value Runtime::undefined_attribute(const Value& owner, std::string_view name) const {
  return undefined(fmt::format("'{}' object has no attribute '{}'", type_name(owner), printable(name)));
}

void Runtime::keep(std::unique_ptr<Object> object, std::uint64_t bytes) {
  step();
  check_room(bytes + sizeof(object), 1);
  memory_.used += bytes + sizeof(object);
  objects_.push_back(std::move(object));
}

LocalTime Runtime::now() {
  if (!now_) now_ = LocalTime::now();
  return *now_;
}

void Buffer::append(std::string_view piece) {
  runtime_.walk(piece.size());
  if (text_.size() + piece.size() > charged_) {
    const std::uint64_t more = std::max({text_.size() + piece.size() - charged_, charged_, kGrain});
    charges_.push_back(runtime_.charge(more));
    charged_ += more;
  }
  text_ += piece;
}

void Buffer::append_repeated(std::string_view piece, std::uint64_t count) {
  if (piece.empty() || count == 0) return;
  runtime_.check_room(count, piece.size());
  for (std::uint64_t i = 0; i < count; ++i) append(piece);
}

std::string Buffer::take() {
  charges_.clear();
  charged_ = 0;
  return std::exchange(text_, {});
}

Value Buffer::finish(bool markup) {
  return runtime_.text(take(), markup);
}

}  // namespace candor::jinja
