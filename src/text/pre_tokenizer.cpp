#include "text/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/byte_level.h"
#include "text/unicode.h"

namespace candor::text {
namespace {

constexpr std::size_t kMostSteps = 64;

/// A stretch of a piece: a match of the delimiter, or the text between two.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool match = false;
};

/// Calls visit(stretch) for the matches of `pattern` and the text between them, in order.
template <typename Visit>
void for_each_stretch(const Pattern& pattern, std::string_view text, const Visit& visit) {
  std::size_t done = 0;
  pattern.for_each_match(text, [&](Pattern::Span span) {
    if (done != span.begin) visit(Stretch{done, span.begin, false});
    visit(Stretch{span.begin, span.end, true});
    done = span.end;
  });
  if (done != text.size()) visit(Stretch{done, text.size(), false});
}

/// The same for single characters that `is_delimiter` accepts.
template <typename Predicate, typename Visit>
void for_each_stretch(const Predicate& is_delimiter, std::string_view text, const Visit& visit) {
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto [value, length] = unicode::first(text.substr(at));
    if (is_delimiter(value)) {
      if (done != at) visit(Stretch{done, at, false});
      visit(Stretch{at, at + length, true});
      done = at + length;
    }
    at += length;
  }
  if (done != text.size()) visit(Stretch{done, text.size(), false});
}

/// Joins stretches as `behavior` says, for the behaviors that look at neighbours.
std::vector<Stretch> join(std::vector<Stretch> stretches, SplitBehavior behavior) {
  const bool backwards = behavior == SplitBehavior::merged_with_next;
  if (backwards) std::reverse(stretches.begin(), stretches.end());
  std::vector<Stretch> joined;
  bool previous_match = false;
  for (const Stretch& stretch : stretches) {
    const bool same =
        behavior == SplitBehavior::contiguous ? stretch.match == previous_match : stretch.match && !previous_match;
    previous_match = stretch.match;
    if (!same || joined.empty()) {
      joined.push_back(stretch);
    } else if (backwards) {
      joined.back().begin = stretch.begin;
    } else {
      joined.back().end = stretch.end;
    }
  }
  if (backwards) std::reverse(joined.begin(), joined.end());
  return joined;
}

/// Cuts `text` at `delimiter` (a Pattern or a predicate) and calls piece(begin, end) for what remains.
template <typename Delimiter, typename Piece>
void cut(const Delimiter& delimiter, SplitBehavior behavior, bool invert, std::string_view text, const Piece& piece) {
  const auto give = [&](const Stretch& stretch) {
    if (stretch.begin != stretch.end) piece(stretch.begin, stretch.end);
  };
  if (behavior == SplitBehavior::isolated) return for_each_stretch(delimiter, text, give);
  if (behavior == SplitBehavior::removed)
    return for_each_stretch(delimiter, text, [&](const Stretch& stretch) {
      if (stretch.match == invert) give(stretch);
    });
  std::vector<Stretch> stretches;
  for_each_stretch(delimiter, text, [&](const Stretch& stretch) {
    stretches.push_back({stretch.begin, stretch.end, stretch.match != invert});
  });
  for (const Stretch& stretch : join(std::move(stretches), behavior)) give(stretch);
}

bool (*predicate(CharacterSplit::Class characters))(char32_t) {
  switch (characters) {
    case CharacterSplit::Class::white_space:
      return unicode::is_white_space;
    case CharacterSplit::Class::punctuation:
      return unicode::is_punctuation;
    case CharacterSplit::Class::number:
      return unicode::is_number;
  }
  fail(ErrorCode::internal, "character class {} does not exist", static_cast<int>(characters));
}

template <typename Piece>
void apply(const PatternSplit& step, std::string_view text, bool, const Piece& piece) {
  cut(step.pattern, step.behavior, step.invert, text,
      [&](std::size_t begin, std::size_t end) { piece(text.substr(begin, end - begin), begin == 0); });
}

template <typename Piece>
void apply(const CharacterSplit& step, std::string_view text, bool, const Piece& piece) {
  cut(predicate(step.characters), step.behavior, false, text,
      [&](std::size_t begin, std::size_t end) { piece(text.substr(begin, end - begin), begin == 0); });
}

template <typename Piece>
void apply(const Metaspace& step, std::string_view text, bool at_start, const Piece& piece) {
  std::string mark;
  unicode::append(mark, step.replacement);
  const bool starts_with_mark = text.starts_with(mark) || text.starts_with(' ');
  const bool wanted = step.scheme == Metaspace::Scheme::always || (step.scheme == Metaspace::Scheme::first && at_start);
  std::string marked = wanted && !starts_with_mark ? mark : std::string();
  for (const char c : text) {
    if (c == ' ') {
      marked += mark;
    } else {
      marked += c;
    }
  }
  const std::string_view view = marked;
  if (!step.split) return piece(view, true);
  const auto is_mark = [&](char32_t c) { return c == step.replacement; };
  cut(is_mark, SplitBehavior::merged_with_next, false, view,
      [&](std::size_t begin, std::size_t end) { piece(view.substr(begin, end - begin), begin == 0); });
}

template <typename Piece>
void apply(const ByteLevelSplit& step, std::string_view text, bool, const Piece& piece) {
  std::string prefixed;
  if (step.add_prefix_space && !text.starts_with(' ')) {
    prefixed.reserve(text.size() + 1);
    prefixed.append(" ").append(text);
    text = prefixed;
  }
  const auto give = [&](std::size_t begin, std::size_t end) {
    const std::string_view word = text.substr(begin, end - begin);
    if (step.spell) {
      piece(byte_level::spell(word), begin == 0);
    } else {
      piece(word, begin == 0);
    }
  };
  if (step.pattern) {
    cut(*step.pattern, SplitBehavior::isolated, false, text, give);
  } else {
    give(0, text.size());
  }
}

template <typename Piece>
void apply(const FixedLengthSplit& step, std::string_view text, bool, const Piece& piece) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = begin;
    for (std::size_t n = 0; n < step.length && end < text.size(); ++n) end += unicode::sequence_length(text[end]);
    piece(text.substr(begin, end - begin), begin == 0);
    begin = end;
  }
}

std::string_view name(const PatternSplit&) {
  return "Split";
}
std::string_view name(const CharacterSplit& step) {
  return step.characters == CharacterSplit::Class::white_space   ? "WhitespaceSplit"
         : step.characters == CharacterSplit::Class::punctuation ? "Punctuation"
                                                                 : "Digits";
}
std::string_view name(const Metaspace&) {
  return "Metaspace";
}
std::string_view name(const ByteLevelSplit&) {
  return "ByteLevel";
}
std::string_view name(const FixedLengthSplit&) {
  return "FixedLength";
}

}  // namespace

Pattern gpt2_pattern() {
  return Pattern::regex(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", "ByteLevel");
}

PreTokenizer::PreTokenizer(std::vector<PreTokenizerStep> steps, std::string_view label) : steps_(std::move(steps)) {
  if (steps_.size() > kMostSteps)
    fail(ErrorCode::unsupported, "{}: {} pre-tokenizer steps, more than the limit of {}", label, steps_.size(),
         kMostSteps);
}

void PreTokenizer::run(std::size_t step, std::string_view text, bool at_start, Sink& sink) const {
  if (step == steps_.size()) {
    sink.word(text);
    return;
  }
  const auto next = [&](std::string_view piece, bool first) { run(step + 1, piece, at_start && first, sink); };
  std::visit([&](const auto& typed) { apply(typed, text, at_start, next); }, steps_[step]);
}

bool PreTokenizer::ends_in_byte_level() const {
  const auto is_byte_level = [](const PreTokenizerStep& step) { return std::holds_alternative<ByteLevelSplit>(step); };
  return !steps_.empty() && is_byte_level(steps_.back()) &&
         std::count_if(steps_.begin(), steps_.end(), is_byte_level) == 1;
}

void PreTokenizer::leave_bytes_raw() {
  std::get<ByteLevelSplit>(steps_.back()).spell = false;
}

std::vector<std::string> PreTokenizer::names() const {
  std::vector<std::string> names;
  for (const auto& step : steps_) names.emplace_back(std::visit([](const auto& typed) { return name(typed); }, step));
  return names;
}

}  // namespace candor::text
