// One rendering: its limits, where it is in the template, and what it has allocated. Everything that a template makes
// the program do goes through step() and charge(), so that any template ends within limits::template_steps and
// limits::template_memory. Not thread-safe: one Runtime a rendering.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/limits.h"
#include "text/jinja/clock.h"
#include "text/jinja/value.h"

namespace candor::jinja {

class Runtime {
 public:
  Runtime(std::string_view label, std::optional<LocalTime> now) : label_(label), now_(now) {}
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// Throws Error(text): "LABEL, line N: message".
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_with(fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void fail_with(const std::string& message) const;

  /// The line that errors name.
  void at_line(std::uint32_t line) { line_ = line; }
  [[nodiscard]] std::uint32_t line() const { return line_; }

  /// Counts `count` units of work. Throws Error(text) past the limit.
  void step(std::uint64_t count = 1) {
    steps_ += count;
    if (steps_ > limits::template_steps) fail_steps();
  }
  /// Counts the work of copying, comparing or searching `bytes` bytes of text.
  void walk(std::uint64_t bytes) { step(1 + bytes / 32); }
  /// Counts the work of looking at each code point of `bytes` bytes of text.
  void scan(std::uint64_t bytes) { step(1 + bytes / 8); }

  /// Counts `bytes` as held until the Charge dies. Throws Error(text) past the limit. To be called before allocating.
  [[nodiscard]] Charge charge(std::uint64_t bytes);
  /// Throws if `count` × `size` bytes more would be past the limit.
  void check_room(std::uint64_t count, std::uint64_t size) const;

  // Values of this rendering. Text must be well-formed UTF-8.
  [[nodiscard]] Value text(std::string bytes, bool markup = false);
  [[nodiscard]] Value text(std::string_view bytes, bool markup = false) { return text(std::string(bytes), markup); }
  [[nodiscard]] Value text(const char* bytes, bool markup = false) { return text(std::string(bytes), markup); }
  [[nodiscard]] Value sequence(std::vector<Value> items, SequenceKind kind);
  [[nodiscard]] Value list(std::vector<Value> items) { return sequence(std::move(items), SequenceKind::list); }
  [[nodiscard]] Value tuple(std::vector<Value> items) { return sequence(std::move(items), SequenceKind::tuple); }
  [[nodiscard]] Value pair(Value first, Value second);
  [[nodiscard]] Value dict(Dict dict);
  /// Counts the work and memory of a dict that does not become a value.
  void charge_dict(Dict& dict);
  /// An undefined value whose use fails with `message`.
  [[nodiscard]] Value undefined(std::string message) const;
  [[nodiscard]] Value undefined_attribute(const Value& owner, std::string_view name) const;

  /// Makes an Object that lives as long as the rendering.
  template <typename T, typename... Args>
  T* make(Args&&... args) {
    auto object = std::make_unique<T>(std::forward<Args>(args)...);
    T* raw = object.get();
    keep(std::move(object), sizeof(T) + T::kHeldOutside);
    return raw;
  }

  /// Counts one level of evaluation within evaluation while it lives.
  class Nested {
   public:
    explicit Nested(Runtime& runtime) : runtime_(runtime) {
      if (++runtime.depth_ > limits::template_recursion) {
        --runtime.depth_;
        runtime.fail_depth();
      }
    }
    ~Nested() { --runtime_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Runtime& runtime_;
  };

  [[nodiscard]] LocalTime now();

  /// Whether {% autoescape %} is on where the template runs.
  bool autoescape = false;

 private:
  void keep(std::unique_ptr<Object> object, std::uint64_t bytes);
  [[noreturn]] void fail_steps() const;
  [[noreturn]] void fail_depth() const;

  std::string label_;
  std::optional<LocalTime> now_;
  std::uint32_t line_ = 1;
  std::uint32_t depth_ = 0;
  std::uint64_t steps_ = 0;
  MemoryAccount memory_;
  std::vector<std::unique_ptr<Object>> objects_;
};

/// Text under construction, counted as it grows.
class Buffer {
 public:
  explicit Buffer(Runtime& runtime) : runtime_(runtime) {}

  void append(std::string_view piece);
  void append(char c) { append(std::string_view(&c, 1)); }
  void append_repeated(std::string_view piece, std::uint64_t count);
  [[nodiscard]] std::string_view view() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  [[nodiscard]] std::string take();
  /// The text as a value.
  [[nodiscard]] Value finish(bool markup = false);

 private:
  static constexpr std::uint64_t kGrain = 4096;

  Runtime& runtime_;
  std::string text_;
  std::uint64_t charged_ = 0;
  std::vector<Charge> charges_;
};

}  // namespace candor::jinja
