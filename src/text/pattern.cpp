#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pattern.h"

#include <pcre2.h>

#include <array>

#include "base/error.h"
#include "text/oniguruma.h"
#include "text/unicode.h"

namespace candor::text {

/// A deleter that calls a function of PCRE2.
template <auto Free>
struct Pcre2Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Pcre2Code = std::unique_ptr<pcre2_code, Pcre2Deleter<pcre2_code_free>>;

namespace {

// One match of a tokenizer's pattern takes a few dozen steps; these bounds stop a pattern that backtracks without end.
constexpr std::uint32_t kMatchLimit = 50'000'000;
constexpr std::uint32_t kHeapLimitKiB = 64 * 1024;
constexpr std::size_t kStackStart = 32 * 1024;
constexpr std::size_t kStackLimit = 16 * 1024 * 1024;
constexpr std::size_t kPatternBytes = 65'536;

using CompileContext = std::unique_ptr<pcre2_compile_context, Pcre2Deleter<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Pcre2Deleter<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Pcre2Deleter<pcre2_match_data_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Pcre2Deleter<pcre2_jit_stack_free>>;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

Pcre2Code compile(std::string_view pattern, std::string_view label) {
  const CompileContext context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_max_pattern_length(context.get(), kPatternBytes);
  int error = 0;
  PCRE2_SIZE position = 0;
  Pcre2Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                               PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &position,
                               context.get()));
  if (!code)
    fail(ErrorCode::format, "{}: pattern \"{}\" is not valid at byte {}: {}", label, printable(pattern, 300), position,
         message_of(error));
  // Where the processor has no JIT, PCRE2 interprets: the same matches, slower.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

}  // namespace

struct Pattern::Compiled {
  Pcre2Code code;
};

namespace {

/// What one match needs. A thread has one for all patterns: a match reads its result before the next begins.
struct Workspace {
  MatchContext context{pcre2_match_context_create(nullptr)};
  JitStack stack{pcre2_jit_stack_create(kStackStart, kStackLimit, nullptr)};
  MatchData data{pcre2_match_data_create(1, nullptr)};

  Workspace() {
    if (!context || !data) fail(ErrorCode::resource, "no memory to match a pattern");
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimitKiB);
    if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

Workspace& workspace() {
  thread_local Workspace workspace;
  return workspace;
}

}  // namespace

Pattern::Pattern(std::string_view source) : source_(source) {}
Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

Pattern Pattern::regex(std::string_view oniguruma, std::string_view label) {
  Pattern pattern(oniguruma);
  pattern.compiled_ = std::make_unique<Compiled>(Compiled{compile(pcre2_from_oniguruma(oniguruma, label), label)});
  return pattern;
}

Pattern Pattern::pcre2(std::string_view text, std::string_view label) {
  Pattern pattern(text);
  pattern.compiled_ = std::make_unique<Compiled>(Compiled{compile(text, label)});
  return pattern;
}

Pattern Pattern::literal(std::string_view text) {
  return Pattern(text);
}

std::optional<Pattern::Span> Pattern::Search::next() {
  return pattern_.is_literal() ? next_literal() : next_regex();
}

std::optional<Pattern::Span> Pattern::Search::next_literal() {
  const std::string& wanted = pattern_.source_;
  if (wanted.empty()) return std::nullopt;
  const std::size_t found = text_.find(wanted, at_);
  if (found == std::string_view::npos) return std::nullopt;
  at_ = found + wanted.size();
  return Span{found, at_};
}

std::optional<Pattern::Span> Pattern::Search::next_regex() {
  const Workspace& work = workspace();
  while (at_ <= text_.size()) {
    const int result = pcre2_match(pattern_.compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(text_.data()),
                                   text_.size(), at_, PCRE2_NO_UTF_CHECK, work.data.get(), work.context.get());
    if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (result < 0)
      fail(ErrorCode::text, "pattern \"{}\" cannot be matched at byte {} of the text: {}",
           printable(pattern_.source_, 300), at_, message_of(result));
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(work.data.get());
    const Span span{offsets[0], offsets[1]};
    if (span.begin > span.end)
      fail(ErrorCode::text, "pattern \"{}\" ends before it begins", printable(pattern_.source_, 300));
    if (span.begin == span.end && span.end == last_end_) {
      if (at_ == text_.size()) return std::nullopt;
      at_ += unicode::sequence_length(text_[at_]);
      continue;
    }
    at_ = last_end_ = span.end;
    return span;
  }
  return std::nullopt;
}

}  // namespace candor::text
