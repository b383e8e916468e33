// The values of a template: Python's objects as far as a template can meet them. Strings, lists, tuples and dicts are
// immutable and counted; what a template can change (namespaces, loops, iterators) is an Object that the Runtime owns
// until the rendering ends, so that cycles cannot leak. Integers have 128 bits, so that each 64-bit integer of a JSON
// context is exact; beyond them arithmetic is an error, never a wrap.
// Rejected: nlohmann::json as the value type: it has no tuples, undefined values, iterators or marked-up strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace candor::jinja {

__extension__ typedef __int128 Int;

class Runtime;
class Object;
class Value;
class Dict;

/// Bytes that the values of one rendering hold.
struct MemoryAccount {
  std::uint64_t used = 0;
};

/// A share of an account, given back when the value dies. Constants of a template have none.
class Charge {
 public:
  Charge() = default;
  Charge(MemoryAccount* account, std::uint64_t bytes) : account_(account), bytes_(bytes) {}
  Charge(Charge&& other) noexcept : account_(std::exchange(other.account_, nullptr)), bytes_(other.bytes_) {}
  Charge& operator=(Charge&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge() {
    if (account_ != nullptr) account_->used -= bytes_;
  }

 private:
  MemoryAccount* account_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// A string: well-formed UTF-8, with its length in code points. `markup` marks text that is HTML already.
struct Text {
  std::string bytes;
  std::size_t length = 0;
  bool markup = false;
  Charge charge;

  [[nodiscard]] bool ascii() const { return length == bytes.size(); }
};

/// Why a value is undefined: the message that its use raises.
struct UndefinedInfo {
  std::string message;
};

struct Missing {};  ///< a variable that has no value at all; never seen by a template
struct None {};

struct Sequence;
struct Range;
struct DictView;

using TextPtr = std::shared_ptr<const Text>;
using UndefinedPtr = std::shared_ptr<const UndefinedInfo>;
using SequencePtr = std::shared_ptr<const Sequence>;
using DictPtr = std::shared_ptr<const Dict>;
using RangePtr = std::shared_ptr<const Range>;
using DictViewPtr = std::shared_ptr<const DictView>;

class Value {
 public:
  using Storage = std::variant<Missing, UndefinedPtr, None, bool, Int, double, TextPtr, SequencePtr, DictPtr, RangePtr,
                               DictViewPtr, Object*>;

  Value() = default;
  explicit Value(Storage storage) : storage_(std::move(storage)) {}

  [[nodiscard]] static Value none() { return Value(Storage(None{})); }
  [[nodiscard]] static Value boolean(bool value) { return Value(Storage(std::in_place_type<bool>, value)); }
  [[nodiscard]] static Value integer(Int value) { return Value(Storage(std::in_place_type<Int>, value)); }
  [[nodiscard]] static Value floating(double value) { return Value(Storage(std::in_place_type<double>, value)); }
  [[nodiscard]] static Value object(Object* value) { return Value(Storage(std::in_place_type<Object*>, value)); }
  /// A string outside any rendering's account: a constant of the template.
  [[nodiscard]] static Value constant_text(std::string bytes);

  [[nodiscard]] const Storage& storage() const { return storage_; }
  template <typename T>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<T>(storage_);
  }

  [[nodiscard]] bool is_missing() const { return is<Missing>(); }
  [[nodiscard]] bool is_undefined() const { return is<UndefinedPtr>(); }
  [[nodiscard]] bool is_none() const { return is<None>(); }
  [[nodiscard]] bool is_text() const { return is<TextPtr>(); }
  [[nodiscard]] bool is_markup() const { return is_text() && text().markup; }
  [[nodiscard]] bool is_dict() const { return is<DictPtr>(); }
  /// An int or a bool, which is one in Python.
  [[nodiscard]] bool is_integral() const { return is<Int>() || is<bool>(); }
  [[nodiscard]] bool is_number() const { return is_integral() || is<double>(); }
  [[nodiscard]] bool is_list() const;
  [[nodiscard]] bool is_tuple() const;

  [[nodiscard]] const Text& text() const { return *std::get<TextPtr>(storage_); }
  [[nodiscard]] std::string_view view() const { return text().bytes; }
  [[nodiscard]] const Sequence& sequence() const { return *std::get<SequencePtr>(storage_); }
  [[nodiscard]] const Dict& dict() const { return *std::get<DictPtr>(storage_); }
  [[nodiscard]] Object* object() const { return is<Object*>() ? std::get<Object*>(storage_) : nullptr; }
  /// The value of an int or a bool.
  [[nodiscard]] Int integral() const { return is<bool>() ? Int{std::get<bool>(storage_)} : std::get<Int>(storage_); }

 private:
  Storage storage_;
};

enum class SequenceKind : std::uint8_t {
  list,
  tuple,
  group,  ///< groupby's tuple, whose parts are also called grouper and list
};

/// A list or a tuple. `depth` is its nesting, which is capped so that walking a value needs bounded stack.
struct Sequence {
  std::vector<Value> items;
  SequenceKind kind = SequenceKind::list;
  std::uint32_t depth = 1;
  Charge charge;
};

/// A range(start, stop, step) of `length` numbers.
struct Range {
  Int start = 0;
  Int stop = 0;
  Int step = 1;
  std::size_t length = 0;

  [[nodiscard]] Value at(std::size_t index) const { return Value::integer(start + step * static_cast<Int>(index)); }
};

/// A total order of hashable values in which equal values of Python are equal: 1, 1.0 and true are one key.
struct KeyLess {
  bool operator()(const Value& a, const Value& b) const;
};

/// A dict: entries in insertion order. Larger ones are indexed by an ordered map, which no choice of keys makes slow.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] const Value* find(const Value& key) const;
  [[nodiscard]] const Value* find(std::string_view key) const;
  /// Sets `key`, which must be hashable; an existing key keeps its place.
  void set(Value key, Value value);
  /// The same entries, charged to nobody.
  [[nodiscard]] Dict copy() const;

  std::uint32_t depth = 1;
  Charge charge;

 private:
  [[nodiscard]] std::size_t position(const Value& key) const;

  static constexpr std::size_t kIndexFrom = 12;
  std::vector<Entry> entries_;
  std::map<Value, std::size_t, KeyLess> index_;  // filled once the dict is large
};

/// What dict.keys(), values() and items() return.
struct DictView {
  enum class Kind : std::uint8_t { keys, values, items };
  Value dict;
  Kind kind = Kind::keys;
};

/// Arguments of a call, in order.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// What has state or code: namespaces, macros, loops, iterators, functions. The Runtime owns each.
class Object {
 public:
  /// Bytes that an object typically holds outside itself and its values' own charges.
  static constexpr std::size_t kHeldOutside = 64;

  virtual ~Object() = default;
  /// Python's name of the type, for messages.
  [[nodiscard]] virtual std::string_view type_name() const = 0;
  [[nodiscard]] virtual std::optional<Value> attribute(Runtime&, std::string_view) { return std::nullopt; }
  [[nodiscard]] virtual bool callable() const { return false; }
  /// Called only if callable().
  [[nodiscard]] virtual Value call(Runtime& runtime, Arguments arguments);
  [[nodiscard]] virtual bool iterable() const { return false; }
  /// The next element of an iterator; called only if iterable().
  [[nodiscard]] virtual std::optional<Value> next(Runtime& runtime);
  [[nodiscard]] virtual std::optional<std::size_t> length(Runtime&) { return std::nullopt; }
  /// str() of the object; absent where Python would print an address.
  [[nodiscard]] virtual std::optional<std::string> print(Runtime&) { return std::nullopt; }
};

/// Python's name of a value's type: "str", "dict", "NoneType".
[[nodiscard]] std::string_view type_name(const Value& value);

/// Nesting of a value: 0 for what contains nothing.
[[nodiscard]] std::uint32_t value_depth(const Value& value);

}  // namespace candor::jinja
